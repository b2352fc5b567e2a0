"""Files of all formats as a `manifoldknn.tables.table.Table`.

`textfile` is CSV and TSV, cut up by `records`, its bytes from a `source` in any encoding;
`arrowfile` is Parquet, Arrow and Feather, `frame` a frame in memory, `numpyfile` NPY and NPZ,
`xlsxfile` a sheet of Excel.
"""
