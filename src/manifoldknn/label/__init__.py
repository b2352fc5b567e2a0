"""Labelling in a browser, from no label at all: journal, board, learner, desk and page.

An entry of the `journal` says what somebody did; the `board` is what all entries say together. The
`learner` walks in the background and queues rows. The `desk` answers what the page asks about
`rows`; `app` and `guard` do so over HTTP, and `serve` is the command. `project` opens a file,
`exchange` writes and reads labels. `widget` is the page in a notebook, ``manifoldknn.label``.
"""

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """The room, which is also the function of its name."""

    def __call__(self, frame: Any, **options: Any) -> Any:
        from manifoldknn.label.widget import label

        return label(frame, **options)


sys.modules[__name__].__class__ = _Room
