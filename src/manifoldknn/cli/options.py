"""The options of the command line."""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NoReturn

import manifoldknn
from manifoldknn.cli.json_text import fail_early


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and as JSON if that is wanted."""

    given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and remember what was given."""
        self.given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        fail_early(f"{message} (see {self.prog} --help)", 2, [*self.prog.split()[1:], *self.given])
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command ``manifoldknn``, as ``options.toml`` describes it.

    >>> options = build_parser().parse_args(["classify", "a.csv", "--label", "y", "--alpha", "0.9"])
    >>> options.command, options.alpha, options.graph_neighbors
    ('classify', 0.9, None)
    """
    told = tomllib.loads((resources.files(__package__) / "options.toml").read_text("utf-8"))
    parser = _Parser(
        prog="manifoldknn",
        description="Label a whole table from a handful of labels.",
        epilog=told["epilogs"]["manifoldknn"],
    )
    version = f"manifoldknn {manifoldknn.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, of_command in told["commands"].items():
        text, epilog = of_command["help"], told["epilogs"].get(of_command.get("epilog"))
        command = commands.add_parser(name, help=text, description=text, epilog=epilog)
        for section in of_command["sections"]:
            title = told["titles"].get(section)
            group = command if title is None else command.add_argument_group(title)
            for option, how in told["sections"][section].items():
                _add(group, option, **how)
    return parser


def _add(group: Any, option: str, **how: Any) -> None:
    """Add an option; one with an underscore can be written with hyphens too."""
    if "type" in how:
        how["type"] = _TYPES[how["type"]]
    spellings = dict.fromkeys((option.replace("_", "-"), option))
    group.add_argument(*spellings, **how)


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, at least 1")
    return number


def _seed(text: str) -> int:
    if not text.isdigit() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 0 to 2147483647")
    return int(text)


def _share(text: str) -> float:
    share = float(text) if re.fullmatch(r"[01]?\.?\d+", text) else 2.0
    if share > 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number from 0 to 1")
    return share


def _number(text: str) -> float | str:
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number or auto") from None


def _prior(text: str) -> Any:
    """Return a word, shares in the order of classes, or shares by the names of classes."""
    if text in ("equal", "labeled"):
        return text
    try:
        if "=" not in text:
            return [float(part) for part in text.split(",")]
        pairs = [part.rsplit("=", 1) for part in text.split(",")]
        shares = {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        shares = {}
    if len(shares) != text.count(",") + 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be equal, labeled, or shares such as cat=0.7,dog=0.3 or 0.7,0.3"
        )
    return shares


_TYPES: dict[str, Callable[[str], Any]] = {
    "float": float, "int": int, "number": _number, "positive": _positive, "prior": _prior,
    "seed": _seed, "share": _share,
}  # fmt: skip
