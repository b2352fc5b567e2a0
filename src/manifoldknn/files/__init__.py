"""Model files: `persist` saves and loads, `archive` is the form, nothing in it is run."""
