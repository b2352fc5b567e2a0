"""The folder of a run: every finished cell in a file of its own, there whole or not at all.

A run that was killed goes on from what it finds here. Nothing in the folder is trusted unseen: a
cell that is cut short, edited, or measured with other settings counts as not measured.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import manifoldknn
from manifoldknn.base.atomic import replaced_file
from manifoldknn.reproduction.experiment import Cell, Experiment, Plan, Row

_FORMAT = 1
_RUN_FILE = "run.json"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "faiss-cpu")
_OR = ", or choose another folder with --out"
_EXTRAS = ("graphlearning",)  # whose methods are left out where it is not


class Stored(NamedTuple):
    """A finished cell: its rows, and how long they took."""

    rows: list[Row]
    seconds: float


def versions() -> dict[str, str]:
    """Return the versions on which numbers depend, by package."""
    found = {"manifoldknn": manifoldknn.__version__, "Python": platform.python_version()}
    return found | {name: version_of(name) for name in _PACKAGES}


def extras() -> dict[str, str]:
    """Return the versions of packages that some numbers depend on where they are installed."""
    return {name: version_of(name) for name in _EXTRAS}


@cache
def version_of(name: str) -> str:
    """Return the version of a package, where it is installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def plain_rows(rows: Any, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a cell as they will be read back, or say what is wrong with them.

    >>> plain_rows([{"k": np.int64(3), "error": np.float64(0.5)}], ["k", "error"])
    [{'k': 3, 'error': 0.5}]
    """

    def plain(value: Any, name: str) -> Any:
        value = value.item() if isinstance(value, np.generic) else value
        if value is not None and not isinstance(value, (str, int, float)):
            raise ValueError(f"column {name!r} holds a {type(value).__name__}")
        return value

    for row in rows:
        if set(row) != set(columns):
            raise ValueError(f"a row has the columns {sorted(row)}, expected {sorted(columns)}")
    return [{name: plain(row[name], name) for name in columns} for row in rows]


class Store:
    """The cells of one run of some experiments in a folder; cells of another plan are not its."""

    def __init__(self, folder: Path, plan: Plan, names: list[str], started: str) -> None:
        self.folder, self.plan, self.names, self.started = folder, plan, names, started

    def path(self, cell: Cell) -> Path:
        """Return the file of a cell: readable, and different for different cells."""
        key = json.dumps(cell.key)
        words = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(map(str, cell.key))).strip("-.")[:60]
        digest = hashlib.sha256(key.encode()).hexdigest()[:10]
        return self.folder / "cells" / cell.experiment / f"{words or 'cell'}-{digest}.json"

    def save(self, experiment: Experiment, cell: Cell, rows: list[Row], seconds: float) -> None:
        """Store a finished cell at once, with its rows from `plain_rows` and its time."""
        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        body = {"key": list(cell.key), "rows": rows, "seconds": round(seconds, 3)}
        _write(path, body | {"check": self._check(experiment, body)})

    def load(self, experiment: Experiment, cell: Cell) -> Stored | None:
        """Return a finished cell, or None if it is not there, not whole or not of this run."""
        try:
            body = json.loads(self.path(cell).read_text(encoding="utf-8"))
            check = body.pop("check")
            if check != self._check(experiment, body) or body["key"] != list(cell.key):
                return None
            return Stored(plain_rows(body["rows"], experiment.columns), float(body["seconds"]))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def _check(self, experiment: Experiment, body: dict[str, Any]) -> str:
        """Return a checksum of a cell together with everything its numbers depend on."""
        whole = [_FORMAT, _settings(self.plan), experiment.name, list(experiment.columns), body]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    @classmethod
    def open(cls, folder: Path, plan: Plan, names: list[str], *, resume: bool) -> "Store":
        """Look at a folder in which a run is to begin, or to `resume`; nothing is written yet.

        Raises ValueError if the folder is there and may not be, is something else, or was made with
        other settings.
        """
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: choose a folder with --out")
        began = datetime.now(UTC).isoformat(timespec="seconds")
        known = _known(folder, plan, resume=resume)
        if known is not None:
            names, began = [*known["experiments"], *names], known["started"]
        return cls(folder, plan, list(dict.fromkeys(names)), str(began))

    def begin(self) -> None:
        """Make the folder, or clear away what a killed run was writing, and note the settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.rglob(".*.part"):
            left.unlink(missing_ok=True)
        run = {"format": _FORMAT, "settings": _settings(self.plan), "extras": extras()}
        _write(self.folder / _RUN_FILE, run | {"experiments": self.names, "started": self.started})

    @staticmethod
    def begun(folder: Path) -> list[str]:
        """Return the experiments of the run in a folder; none if there is none."""
        path = folder / _RUN_FILE
        return list(_read_run(path)["experiments"]) if path.is_file() else []


def _settings(plan: Plan) -> dict[str, Any]:
    return {"quick": plan.quick, "seed": plan.seed} | versions()


def _write(path: Path, data: dict[str, Any]) -> None:
    with replaced_file(path) as file:
        file.write(json.dumps(data, indent=1).encode())


def _read_run(path: Path) -> dict[str, Any]:
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        if run["format"] != _FORMAT:
            raise ValueError(f"its format is {run['format']}, expected {_FORMAT}")
        maps = [run["settings"], run.get("extras", {})]
        if not all(isinstance(part, dict) for part in maps) or "started" not in run:
            raise ValueError("something is missing in it")
        run["experiments"] = [str(name) for name in run["experiments"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path} cannot be used ({error}): remove its folder, or choose another with --out"
        ) from None
    return dict(run)


def _known(folder: Path, plan: Plan, *, resume: bool) -> dict[str, Any] | None:
    """Return what a folder says about its run, after making sure that it can go on."""
    # What a run killed in its first moment leaves is as good as nothing.
    if not folder.is_dir() or all(p.name.startswith(f".{_RUN_FILE}.") for p in folder.iterdir()):
        return None
    path = folder / _RUN_FILE
    if not path.is_file():
        raise ValueError(
            f"{folder} holds other files and no run of this command: choose another folder with "
            "--out"
        )
    if not resume:
        raise ValueError(f"{folder} holds a run already: go on with it by --resume{_OR}")
    # Extras are no part of a cell's checksum: most cells do without. Runs that do not name them are
    # taken to have had the same.
    run, now = _read_run(path), _settings(plan) | extras()
    then = extras() | run.get("extras", {}) | run["settings"]
    other = [f"{name} {then.get(name)} and not {now[name]}" for name in now
             if then.get(name) != now[name]]  # fmt: skip
    if other:
        raise ValueError(f"{folder} was begun with {', '.join(other)}: repeat with the same{_OR}")
    return run


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Make a folder and keep other runs out of it until the block ends: to them, a ValueError.

    The system forgets the lock with the process, however that ends, and nothing is left in the
    folder. Where a system cannot lock folders, nobody is kept out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run is working in {folder}: wait for it{_OR}") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)
