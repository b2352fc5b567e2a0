"""Model files; nothing in them is run.

`persist` saves and loads, `archive` is the form: arrays and JSON in one file, none of them trusted.
`learning_state` is what a model needs to go on learning, `forest` its partner. `json_values` writes
single values and the names of rows.
"""
