"""What is said to programs: JSON that every reader accepts, of errors too."""

import json
import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from manifoldknn.cli.screen import say

SCHEMA = 1  # of what is said; it counts up when something is renamed or taken away


def fail(message: str, code: int, as_json: bool, on_stderr: bool = False) -> None:
    """Say in one line what is wrong; to programs also, where they look for their answer.

    That is standard output, unless a table goes there: then it is `on_stderr`, and nothing else.
    """
    message = " ".join(message.split())
    if not (as_json and on_stderr):
        say(f"manifoldknn: error: {message}", sys.stderr)
    if as_json:
        stream = sys.stderr if on_stderr else sys.stdout
        data = {"schema": SCHEMA, "error": message, "exit_code": code}
        say(json_text(data, encoding=getattr(stream, "encoding", None)), stream)


def fail_early(message: str, code: int, given: Sequence[str]) -> None:
    """`fail` where options were only `given` and not understood yet."""
    outs = [value for option, value in pairwise(given) if option == "--out"]
    outs += [one.removeprefix("--out=") for one in given if one.startswith("--out=")]
    fills_stdout = "-" in (outs or given) and {*given[:1]} <= {"classify", "predict"}
    fail(message, code, "--json" in given, fills_stdout)


def json_text(data: Any, *, encoding: str | None = None) -> str:
    r"""Return data as one line of JSON, with null for numbers that are not finite.

    Dictionaries, lists, tuples, text and numbers; anything else is written as its text. Text that
    the encoding of the stream cannot hold is escaped as JSON does it.

    Examples
    --------
    >>> from manifoldknn.cli.json_text import json_text
    >>> json_text({"sigma": 0.5, "dimension": float("nan"), "id": "ü"})
    '{"sigma": 0.5, "dimension": null, "id": "ü"}'
    >>> json_text("ü", encoding="ascii")
    '"\\u00fc"'
    """
    plain = _finite(data)
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, default=str)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(plain, allow_nan=False, default=str)
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
