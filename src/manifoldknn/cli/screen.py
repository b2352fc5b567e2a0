"""What is shown to people: text of which no character does anything to the screen."""

import re
import sys
from collections.abc import Sequence
from typing import Any

# Beside control characters those that turn the direction of text, or break lines.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)  # fmt: skip


def visible(text: str) -> str:
    r"""Return text with control characters escaped, as JSON does it; line ends and tabs stay.

    >>> from manifoldknn.cli.screen import visible
    >>> print(visible("a\x1b[2Jb"))
    a\u001b[2Jb
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def named(path: Any) -> str:
    """Return the name of a file on one line."""
    return visible(str(path).replace("\n", "\\n"))


def say(text: str, stream: Any) -> None:
    """Print text, with nothing hidden in it; nobody minds if the stream is closed."""
    if stream is not None and not stream.closed:
        print(visible(text), file=stream)


def warn(warnings: Sequence[str], options: Any) -> None:
    """Say where everybody sees it what must not be overlooked; in JSON it is said anyway."""
    for warning in () if options.json else warnings:
        say(f"manifoldknn: warning: {warning}", sys.stderr)
