"""Who is near whom: exact, by inverted lists, or the caller's own.

`engines` chooses. `neighbors` is the exact search, by a `treesearch` or a `flat` comparison of all
pairs; `inverted` the approximate one; `user_searches` are brought along. `repeated` searches equal
rows once, `growing` takes rows that come later.
"""
