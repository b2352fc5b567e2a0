"""Files → typed columns → features; answers → files.

`inputs` says where a table comes from; `table` is one of any of the `formats`. `cells` reads single
cells, `profile` finds out what columns hold, `column_uses` tells people, `features` makes numbers
of columns. `session` goes from a file to a fitted classifier, `linkfile` brings links by hand, and
`outputs` writes answers.
"""
