"""Labelling in a browser, from no label at all: journal, board, learner, desk and page.

An entry of the `journal` says what somebody did; the `board` is what all entries say together. The
`learner` walks in the background and queues rows. The `desk` answers what the page asks about
`rows`; `app` and `guard` do so over HTTP, and `serve` is the command. `project` opens a file,
`exchange` writes and reads labels. `widget` is the page in a notebook, ``manifoldknn.label``.
"""
