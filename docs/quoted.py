"""The role and the directive by which pages quote measured numbers and tables."""

from __future__ import annotations

from typing import Any

import measured
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList


def _number(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> Any:
    del name, lineno, inliner
    return [nodes.inline(rawtext, measured.value(text), classes=["measured"])], []


class MeasuredTable(Directive):
    """A table from ``measured.toml``, with the files it comes from below."""

    required_arguments = 1

    def run(self) -> list[Any]:
        """Return the table."""
        name = self.arguments[0]
        head, rows = measured.table(name)
        lines = [
            ".. list-table::",
            "   :header-rows: 1",
            "   :stub-columns: 1",
            "   :class: measured",
            "",
        ]
        for row in [head, *rows]:
            lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
        lines += ["", ".. rst-class:: origin", "", f"From {measured.origin(name)}.", ""]
        node = nodes.container(classes=["measured-table"])
        self.state.nested_parse(
            StringList(lines, source="measured.toml"), self.content_offset, node
        )
        return [node]


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx about both."""
    app.add_role("measured", _number)
    app.add_directive("measured", MeasuredTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
