"""What is said to programs: JSON that every reader accepts."""

from __future__ import annotations

import json
import math
from typing import Any


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
