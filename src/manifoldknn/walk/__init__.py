"""Columns of (D - αW)⁻¹ (equations 1 and 4).

`choose` names the way taken, and why; `label_columns` is the walk from labels. Rows with few
neighbours go first (`elimination`, `reduction`). `parts` that hardly touch are solved one after the
other, each by `levels` of accuracy. A level is solved by `iteration` (with `blockcg` and
`aggregates`), or by a `factor` if `factor_cost` says that it pays. `normalized` is S itself.
"""
