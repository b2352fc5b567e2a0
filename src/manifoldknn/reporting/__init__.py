"""One page to look at, and what the command says in words.

`findings` are what a run found out, `summary` says it as data and text. `page` is the page, with
`dots` for its map and `raster` for its picture; `report` writes it from Python.
"""
