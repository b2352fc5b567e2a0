"""A desk with flowers, for several tests."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

from manifoldknn.cli.options import build_parser
from manifoldknn.labelling.project import open_desk

ROOT = Path(__file__).parents[1]
FLOWERS = ROOT / "examples" / "flowers.csv"


def flower_truth():
    """Return the species of every flower by its id."""
    script = FLOWERS.parent / "make_flowers.py"
    told = subprocess.run(
        [sys.executable, script, "--truth"], capture_output=True, text=True, check=True
    )
    return dict(line.split(",") for line in told.stdout.splitlines()[1:])


def flowers(folder):
    """Write the flowers without any label."""
    path = folder / "flowers.csv"
    lines = FLOWERS.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n", encoding="utf-8")
    return path


@contextlib.contextmanager
def opened(path, *options):
    """Open a desk as the command does."""
    desk, _ = open_desk(build_parser().parse_args(["label", str(path), *options]))
    desk.open()
    try:
        yield desk
    finally:
        desk.close()


def flowers_desk(folder, *options):
    """Open a desk with flowers."""
    return opened(flowers(folder), "--id", "id", *options)


def learned(desk, who="Ann", seconds=60):
    """Wait until the model knows everything, and return how things stand."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        progress = desk.call("progress", {"who": who})
        if progress["learned"] == progress["number"] and not progress["working"]:
            return progress
        time.sleep(0.02)
    raise TimeoutError(progress)
