"""Model files; nothing in them is run.

`persist` saves and loads, `archive` is the form: arrays and JSON in one file. `streamfile` is what
a model needs to go on learning, `indexfile` the names of its rows; `plain` and `jsontext` are
values as JSON.
"""
