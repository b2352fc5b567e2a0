"""Columns of (D - αW)⁻¹ (equations 1 and 4).

`columns` is the walk from labels. Rows with few neighbours go first (`elimination`, `reduction`);
`parts` that hardly touch are solved one after the other, each by `levels` of accuracy; a level
is a `restriction` of the graph, iterated (`blockcg`, `aggregates`) or factorised (`factor`, if
`fill` says that it pays).
"""
