"""Put right in the finished pages what theme and gallery leave unnamed for readers of screens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REPLACED = (
    # The arrow of the navigation has no name.
    (r'<summary>(<span class="toctree-toggle")', r'<summary aria-label="Pages below">\1'),
    # The name of the button must hold what is written on it.
    (r'(search-button-field[^>]*) aria-label="Search"', r'\1 aria-label="Search Ctrl+K"'),
    # References are no items of a list.
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
    # Titles of thumbnails stand beside their links.
    (
        r'<a class="reference internal" href="(\w+\.html[^"]*)">'
        r'<span class="[^"]*">([^<]*)</span></a>'
        r"(?=</p>\s*<div class=\"sphx-glr-thumbnail-title\")",
        r'<a class="reference internal" href="\1" aria-label="\2"><span>\2</span></a>',
    ),
)


def _finish(app: Any, error: Any) -> None:
    if error is not None or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = finished = path.read_text(encoding="utf-8")
        for pattern, better in REPLACED:
            finished = re.sub(pattern, better, finished)
        if finished != text and path.name != "report.html":
            path.write_text(finished, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx about it."""
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
