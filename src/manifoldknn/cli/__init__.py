"""The command ``manifoldknn``: a table in, a table out.

`command` begins before anything slow is imported, `options` are read, `main` runs a command and
`prediction` is one of them. `json_text` is what is said to programs, `screen` what is shown to
people.
"""
