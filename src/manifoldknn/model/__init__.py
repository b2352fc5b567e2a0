"""What a fit leaves, and how it changes.

`fitted` is all of it in one object; `state` takes back a change that fails. `answering` turns
similarities into answers, `quality` says how well rows fit in. `stream` takes rows and labels in
later (section 5 of the paper), `arrivals` are those rows. `cautions` are said before and after a
fit, `rowids` are what a user calls rows.
"""
