"""Commands that are killed, interrupted or told to end at any moment.

After SIGKILL every output is the old one or the new one, whole, and what is left over goes with the
next run. After SIGINT and SIGTERM nothing is left over, and all outputs are old or all are new.
(Several files cannot be renamed at once: a SIGKILL in the microseconds between may leave new and
old ones side by side; such runs are counted as "apart".) Run as ``python fuzz/kills.py --count 300
--seed 0``: of three signals two are SIGKILL. Needs a system with fork.
"""

import argparse
import atexit
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Everything slow is imported here, once. What is forked has only to run.
import sklearn.ensemble  # noqa: F401

from manifoldknn.cli.command import main as command
from manifoldknn.tables.formats import textfile  # noqa: F401

FLOWERS = Path(__file__).parents[1] / "examples" / "flowers.csv"
GENTLE = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST = 60.0  # seconds that a run may take


def is_page(content: bytes) -> bool:
    return content.rstrip().endswith(b"</html>")


# By name: the arguments, and outputs, each with what tells that it is whole; None: byte for byte.
Command = tuple[list[str], dict[str, Callable[[bytes], bool] | None]]
COMMANDS: dict[str, Command] = {
    "classify": (
        ["classify", "in.csv", "--label", "species", "--id", "id", "--out", "out.csv", "--save",
         "m.mknn", "--report", "r.html", "--force", "--quiet", "--n-jobs", "1"],
        {"out.csv": None, "m.mknn": None, "r.html": is_page},
    ),
    "predict": (
        ["predict", "saved.mknn", "in.csv", "--out", "out.csv", "--force", "--quiet"],
        {"out.csv": None},
    ),
}  # fmt: skip


def begun(arguments: list[str]) -> int:
    """Run a command in a process of its own, and return its number."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        code = command(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        atexit._run_exitfuncs()
        os._exit(code)


def ended(number: int) -> int:
    """Return the exit code, or less than 0 for a signal."""
    give_up = time.monotonic() + LONGEST
    while time.monotonic() < give_up:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return -1000


def leftovers() -> list[str]:
    return [name for name in os.listdir() if name.endswith(".part")] + os.listdir("tmp")


def wait(rng: random.Random, usual: float) -> None:
    """Sleep for a part of the usual time, or until something is being written."""
    if rng.random() < 0.4:
        time.sleep(rng.random() * usual)
        return
    give_up = time.monotonic() + 2 * usual
    while time.monotonic() < give_up and not leftovers():
        time.sleep(0.0005)
    time.sleep(rng.random() ** 2 * 0.5 * usual)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    home, folder = os.getcwd(), tempfile.mkdtemp()
    os.chdir(folder)
    os.mkdir("tmp")
    tempdir, tempfile.tempdir = tempfile.tempdir, os.path.join(folder, "tmp")
    try:
        return run(options.count, random.Random(options.seed))
    finally:
        tempfile.tempdir = tempdir
        os.chdir(home)
        shutil.rmtree(folder)


def run(count: int, rng: random.Random) -> int:
    """Kill commands in the folder at hand; return whether there was a finding."""
    # In an encoding that goes by a temporary file.
    text = FLOWERS.read_text("utf-8").replace("id,", "né,", 1).replace("né", "id", 1)
    lines = text.splitlines()
    Path("in.csv").write_text(
        "\n".join([f"{lines[0]},note", *(f"{line},é" for line in lines[1:])]) + "\n", "cp1252"
    )
    right, usual, findings, apart = {}, {}, [], 0
    for name, (asked, outputs) in COMMANDS.items():
        start = time.monotonic()
        if ended(begun(asked)) != 0:
            findings.append(f"{name} does not run at all")
            outputs = {}
        usual[name] = time.monotonic() - start
        right[name] = {output: Path(output).read_bytes() for output in outputs}
        if name == "classify":
            shutil.copy("m.mknn", "saved.mknn")
    signals = {signal.SIGKILL: 0, signal.SIGINT: 0, signal.SIGTERM: 0}
    hit = with_leftovers = 0
    for round_ in range(count):
        name = rng.choice(list(right))
        asked, outputs = COMMANDS[name]
        sent = rng.choice([signal.SIGKILL] * 4 + list(GENTLE))
        old = rng.random() < 0.5
        for output in outputs:
            Path(output).unlink(missing_ok=True)
            if old:
                Path(output).write_bytes(b"old")
        number = begun(asked)
        wait(rng, usual[name])
        os.kill(number, sent)
        code = ended(number)
        signals[sent] += 1
        hit += code != 0
        states = {}
        for output, is_whole in outputs.items():
            content = Path(output).read_bytes() if Path(output).exists() else None
            new = content is not None and (
                is_whole(content) if is_whole else content == right[name][output]
            )
            states[output] = "new" if new else "old" if content == b"old" * old or (
                content is None and not old
            ) else "broken"  # fmt: skip
        where = f"{round_} {name} {sent.name}"
        if "broken" in states.values() or code == -1000:
            findings.append(f"{where}: {states}, exit code {code}")
        mixed = len(set(states.values())) > 1
        apart += mixed
        left = leftovers()
        with_leftovers += bool(left)
        if sent in GENTLE and (left or mixed or code not in (0, GENTLE[sent], -sent)):
            findings.append(f"{where}: left {left}, {states}, exit code {code}")
        if left:
            if ended(begun(asked)) != 0 or leftovers():
                findings.append(f"{where}: {leftovers()} after the next run")
            for path in leftovers():
                shutil.rmtree(path, ignore_errors=True)
    for finding in findings[:50]:
        print(finding, file=sys.stderr)
    told = ", ".join(f"{n} {sent.name}" for sent, n in signals.items())
    print(
        f"kills: {told} of {', '.join(right)}; {hit} before the end, {with_leftovers} left "
        f"something, {apart} apart; {len(findings)} findings"
    )
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
