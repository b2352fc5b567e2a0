"""Columns of (D - αW)⁻¹ (equations 1 and 4).

`choose` names the way taken, and why; `columns` is the walk from labels. Rows with few neighbours
go first (`elimination`, `reduction`). `parts` that hardly touch are solved one after the other,
each by `levels` of accuracy. A level is a `restriction` of the graph, iterated (`blockcg`,
`aggregates`), or factorised (`factor`, if `fill` says that it pays). `normalized` is S itself.
"""
