"""Start one measurement after another, each in a fresh process, and keep the clock."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from methods import METHODS
from samples import count_rows, save_made, save_subset

ONE = Path(__file__).with_name("one.py")
TOUCHED = 1 << 30  # bytes


class DataMissing(Exception):
    """A data file that a case needs is not there."""


@dataclass
class Bench:
    """What the cases need: data files, fresh processes, and progress on the screen.

    Attributes
    ----------
    data : Path or None
        Folder with the npz files.
    scratch : Path
        Folder for files of this run.
    quick : bool
        Small sizes.
    peers : bool
        Whether others than ours are measured.
    timeout : float
        Seconds after which a measurement is given up.
    """

    data: Path | None
    scratch: Path
    quick: bool = False
    peers: bool = True
    timeout: float = 1800.0
    started: float = field(default_factory=time.perf_counter)

    def wanted(self, *methods):
        """Drop the peers if they are not wanted."""
        return [method for method in methods if self.peers or method == "ours"]

    def file(self, name):
        """Return the path of a data file, or raise `DataMissing`."""
        path = self.data / name if self.data else None
        if path is None or not path.is_file():
            raise DataMissing(
                f"{name} is needed: set the environment variable MANIFOLDKNN_DATA to a folder "
                "that holds it (benchmarks/README.md says what it contains)"
            )
        path.read_bytes()  # the first to read a file would wait for the disk, and the others not
        return path

    def rows(self, name):
        """Count the rows of a data file."""
        return count_rows(self.file(name))

    def subset(self, name, n_rows):
        """Return a file with that many rows of a set, or with all if it has no more."""
        path = self.file(name)
        if n_rows >= count_rows(path):
            return path
        target = self.scratch / f"{path.stem}-{n_rows}.npz"
        return target if target.exists() else save_subset(path, n_rows, target)

    def made(self, n_rows):
        """Return a file with that many made-up rows."""
        target = self.scratch / f"made-{n_rows}.npz"
        return target if target.exists() else save_made(n_rows, target)

    def say(self, text, end="\n"):
        """Print a line with the time since the start."""
        print(f"[{time.perf_counter() - self.started:7.1f} s] {text}", end=end, flush=True)

    def measure(self, method, what="", **flags):
        """Run one method in a fresh process.

        Parameters
        ----------
        method : str
            Key of `METHODS`.
        what : str
            For the progress line.
        **flags
            Options of ``one.py``; None leaves one out, True needs no value.

        Returns
        -------
        dict
            "method", "status", "seconds" from spawn to exit, and what ``one.py`` says.
        """
        command = [sys.executable, str(ONE), method]
        for name, value in flags.items():
            if value is True:
                command.append(f"--{name.replace('_', '-')}")
            elif value is not None:
                text = json.dumps(value) if isinstance(value, dict) else str(value)
                command += [f"--{name.replace('_', '-')}", text]
        title = METHODS[method].title
        self.say(", ".join(filter(None, (title, what))) + " ... ", end="")
        touch_memory()
        row = {"method": title, **run_process(command, self.timeout)}
        print(outcome(row), flush=True)
        return row


def touch_memory():
    """Use memory and free it: a virtual machine is slow to give what nobody has used for a while.

    Whoever is measured first would wait for it, up to half a second, and the others not.
    """
    _ = b"1" * TOUCHED


def run_process(command, timeout):
    """Return the JSON that the process printed last and its seconds, or what went wrong."""
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"status": f"timed out after {timeout:g} s"}
    seconds = time.perf_counter() - start
    if done.returncode < 0:
        return {"status": f"failed: killed by signal {-done.returncode}"}
    try:
        result = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"status": f"failed: {last}"[:200]}
    if result["status"] != "ok":
        return {"status": result["status"]}
    return {**result, "seconds": seconds}


def outcome(row):
    if row["status"] != "ok":
        return row["status"]
    text = f"{row['seconds']:.2f} s, {row['peak_mb']:.0f} MB"
    return f"{text}, {row['error_pct']:.2f} % error" if "error_pct" in row else text
