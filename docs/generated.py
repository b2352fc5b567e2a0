"""Pages that are made from the package: public names, options of the command, JSON, changes."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pkgutil
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import manifoldknn

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "manifoldknn"


def public_names() -> dict[str, list[str]]:
    """Return the public modules, and what each of them offers."""
    found = {"manifoldknn": list(manifoldknn.__all__)}
    for module in sorted(pkgutil.iter_modules(manifoldknn.__path__), key=lambda m: m.name):
        # Rooms have no __all__; what has one is for everybody.
        if "__all__ = " in _source(module.name):
            name = f"manifoldknn.{module.name}"
            found[name] = list(importlib.import_module(name).__all__)
    return found


def _source(module: str) -> str:
    path = PACKAGE / f"{module}.py"
    path = path if path.exists() else PACKAGE / module / "__init__.py"
    return path.read_text(encoding="utf-8")


def _headed(title: str, mark: str = "=") -> str:
    return f"{title}\n{mark * len(title)}\n"


def api_page() -> str:
    """Return the reference of exactly the public names."""
    lines = [_headed("Python reference")]
    lines += ["These are all public names. Anything else may change without notice.\n"]
    for module, names in public_names().items():
        lines += [_headed(module, "-"), f".. currentmodule:: {module}\n"]
        lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in sorted(names, key=str.lower)] + [""]
    return "\n".join(lines)


def cli_page() -> str:
    """Return the reference of the command, from ``cli/options.toml``."""
    told = tomllib.loads((PACKAGE / "cli" / "options.toml").read_text(encoding="utf-8"))
    uses: dict[str, list[str]] = {}
    for name, command in told["commands"].items():
        for section in command["sections"]:
            uses.setdefault(section, []).append(name)
    shared = [section for section, names in uses.items() if len(names) > 2]
    lines = [_headed("Command-line reference")]
    lines += [told["epilogs"]["manifoldknn"], ""]
    for name, command in told["commands"].items():
        lines += [_headed(f"manifoldknn {name}", "-"), _sentence(command["help"]), ""]
        if command.get("epilog"):
            lines += [_sentence(told["epilogs"][command["epilog"]]), ""]
        own = [section for section in command["sections"] if section not in shared]
        lines += [f".. program:: manifoldknn {name}", ""]
        for section in own:
            lines += _options(told["sections"][section])
        others = [section for section in command["sections"] if section in shared]
        links = ", ".join(f":ref:`{_title(told, s)} <options-{s}>`" for s in others)
        lines += [f"Further options: {links}.", ""]
    lines += [_headed("Options of several commands", "-")]
    for section in shared:
        lines += [f".. _options-{section}:", "", _headed(_title(told, section), "~")]
        lines += [f"For {', '.join(f'``{name}``' for name in uses[section])}.", ""]
        lines += [f".. program:: options of {section}", "", *_options(told["sections"][section])]
    return "\n".join(lines)


def _title(told: dict[str, Any], section: str) -> str:
    title = told["titles"].get(
        section, {"speech": "output", "force": "replacing files"}.get(section, section)
    )
    return (title[0].upper() + title[1:]).split(" (")[0]


def _sentence(text: str) -> str:
    text = _plain(text[0].upper() + text[1:])
    return text if text.endswith(".") else text + "."


def _plain(text: str) -> str:
    """Escape what reStructuredText would read as markup."""
    return re.sub(r"([*`|_\\])", r"\\\1", text).replace("--", "\\-\\-")


def _options(options: dict[str, Any]) -> list[str]:
    lines = []
    for option, how in options.items():
        meant = how.get("metavar") or ("" if "action" in how else option.strip("-").upper())
        name = option.replace("_", "-") if option.startswith("-") else how.get("metavar", option)
        shown = f"{name} {meant}" if option.startswith("-") and meant else name
        choices = how.get("choices")
        says = f" One of: {', '.join(choices)}." if isinstance(choices, list) else ""
        lines += [f".. option:: {shown}", "", f"   {_sentence(how['help'])}{says}", ""]
    return lines


def json_page() -> str:
    """Return what ``--json`` prints, from what it really prints on ``examples/flowers.csv``."""
    from manifoldknn.cli.json_text import SCHEMA
    from manifoldknn.cli.main import main

    flowers, lines = str(ROOT / "examples" / "flowers.csv"), [_headed("What --json prints")]
    lines += [
        "With ``--json`` a command prints one line of JSON on standard output.",
        "Where the table itself goes there (``--out -``), the line goes to standard error.\n",
        f"``schema`` is {SCHEMA}. It counts up when a name changes or goes. New names may come.",
        "Numbers that are not finite are ``null``.\n",
        "An error is an object of ``schema``, ``error`` (one sentence) and ``exit_code``.\n",
        _headed("Exit codes", "-"),
        "====  ==============================",
        "Code  Meaning",
        "====  ==============================",
        "0     done",
        "1     something unforeseen",
        "2     input or options to correct",
        "130   interrupted by the keyboard",
        "141   the reader of the output left",
        "====  ==============================\n",
        "No file is ever left half written.\n",
    ]
    with tempfile.TemporaryDirectory() as folder:
        model, out = f"{folder}/m.mknn", f"{folder}/o.csv"
        of_file = [flowers, "--label", "species", "--id", "id", "--json", "--quiet"]
        calls = {
            "classify": [*of_file, "--out", out, "--save", model],
            "predict": [model, flowers, "--out", f"{folder}/p.csv", "--json", "--quiet"],
            "suggest": [*of_file, "-n", "2"],
            "check": of_file,
            "inspect": of_file,
        }
        for command, options in calls.items():
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                if main([command, *options]):
                    raise RuntimeError(said.getvalue())
            lines += [_headed(f"manifoldknn {command} --json", "-")]
            lines += [*_fields(json.loads(said.getvalue().splitlines()[-1])), ""]
    return "\n".join(lines)


_BY_CLASS = ("labels_per_class", "predicted_per_class", "class_prior")


def _fields(data: dict[str, Any], above: str = "") -> list[str]:
    lines = []
    for name, value in data.items():
        inner = value[0] if isinstance(value, list) and value else value
        named = f"{above}{name}" + ("[]" if isinstance(value, list) else "")
        lines.append(
            f"- ``{named}``: " + ("number of each class" if name in _BY_CLASS else _kind(value))
        )
        nested = isinstance(inner, dict) and name not in _BY_CLASS
        if nested and len(named.split(".")) < 3:
            lines += _fields(inner, f"{named}.")
    return lines


def _kind(value: Any) -> str:
    kinds = {
        bool: "true or false",
        int: "whole number",
        float: "number",
        str: "text",
        dict: "object",
    }
    if isinstance(value, list):
        return f"list of {_kind(value[0])}s" if value else "list"
    return "null where there is none" if value is None else kinds[type(value)]


def changelog_page() -> str:
    """Return CHANGELOG.md as reStructuredText: as much of Markdown as it has."""
    lines = []
    for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines():
        level = len(line) - len(line.lstrip("#"))
        if level:
            lines += [_headed(re.sub(r"\[(.+)\]", r"\1", line[level + 1 :]), "=-~"[level - 1])]
        else:
            lines.append(_inline(line))
    return "\n".join(lines) + "\n"


def _inline(text: str) -> str:
    """Mark code and links as reStructuredText does; files of the repository are only named."""
    text = re.sub(r"(?<!`)`(?!`)", "``", text)
    text = re.sub(r"\[([^\]]+)\]\((https?://[^)]+)\)", r"`\1 <\2>`__", text)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)


def write_pages(folder: Path) -> None:
    """Write the pages that differ from what is there."""
    pages = {"reference/api.rst": api_page, "reference/command.rst": cli_page,
             "reference/json.rst": json_page, "changelog.rst": changelog_page}  # fmt: skip
    for name, make in pages.items():
        path, text = folder / name, make()
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
