"""Model files; nothing in them is run.

`persist` saves and loads, `archive` is the form: arrays and JSON in one file. `learning_state` is
what a model needs to go on learning, `row_index` the names of its rows. `json_values` writes single
values, `checked_arrays` trusts no array that was read.
"""
