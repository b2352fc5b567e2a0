"""Files of all formats as a `manifoldknn.tables.table.Table`.

`textfile` is CSV and TSV, cut up by `records`; `arrowfile` Parquet, Arrow and Feather; `numpyfile`
NPY and NPZ.
"""
