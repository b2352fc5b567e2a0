"""Commands that are killed, interrupted or told to end at any moment.

After SIGKILL every output is the old one or the new one, whole; labels that were acknowledged are
in the journal; and what is left over goes with the next run. After SIGINT and SIGTERM nothing is
left over, and all outputs are old or all are new. (Several files cannot be renamed at once: a
SIGKILL in the microseconds between may leave new and old ones side by side; such runs are counted
as "apart".) Run as ``python fuzz/kills.py --count 250 --seed 0``: of five signals four are SIGKILL.
``--only label`` takes one command. Needs a system with fork, and the extras label and dask.
"""

import argparse
import atexit
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.ensemble  # noqa: F401
import uvicorn  # noqa: F401

# Everything slow is imported here, once. What is forked has only to run.
import distributed  # noqa: F401
import manifoldknn.distributed.stages
import manifoldknn.labelling.app  # noqa: F401
from manifoldknn.cli.command import main as command
from manifoldknn.tables.formats import textfile  # noqa: F401

FLOWERS = Path(__file__).parents[1] / "examples" / "flowers.csv"
GENTLE = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST = 60.0  # seconds that a run may take
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    how = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=2, **how) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


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
LABEL = ["label", "in.csv", "--id", "id", "--port", "0", "--no-browser", "--quiet"]
CLASSIFY = ["classify", "in.parquet", "--label", "species", "--checkpoint", "checkpoint",
            "--out", "answers", "--save", "model", "--quiet", "--sharpness", "1"]  # fmt: skip


def begun(arguments: list[str], out: int | None = None) -> int:
    """Run a command in a process of its own, and return its number."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        if out is not None:
            sys.stdout = os.fdopen(out, "w")
        code = command(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        atexit._run_exitfuncs()
        os._exit(code)


def ended(number: int) -> int:
    """Return the exit code, or less than 0 for a signal."""
    for _ in range(int(LONGEST / 0.002)):  # ticks: somebody may stop this process for a while
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return -1000


def leftovers() -> list[str]:
    """Return what should be gone, but for what a checkpoint holds until it is gone on with."""
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


class Files:
    """A command that writes files."""

    def __init__(self, name: str) -> None:
        self.asked, self.outputs = COMMANDS[name]
        start = time.monotonic()
        assert ended(begun(self.asked)) == 0, f"{name} does not run at all"
        self.usual = time.monotonic() - start
        self.right = {output: Path(output).read_bytes() for output in self.outputs}
        if name == "classify":
            shutil.copy("m.mknn", "saved.mknn")

    def struck(self, rng: random.Random, sent: signal.Signals) -> tuple[int, list[str]]:
        """Return the exit code, and what is wrong."""
        old = rng.random() < 0.5
        for output in self.outputs:
            Path(output).unlink(missing_ok=True)
            if old:
                Path(output).write_bytes(b"old")
        number = begun(self.asked)
        wait(rng, self.usual)
        os.kill(number, sent)
        code, states = ended(number), {}
        for output, is_whole in self.outputs.items():
            content = Path(output).read_bytes() if Path(output).exists() else None
            new = content is not None and (
                is_whole(content) if is_whole else content == self.right[output]
            )
            kept = content == b"old" if old else content is None
            states[output] = "new" if new else "old" if kept else "broken"
        apart = len(set(states.values())) > 1
        wrong = [f"{states}"] * ("broken" in states.values() or (apart and sent in GENTLE))
        wrong += ["apart"] * (apart and not wrong)
        left = leftovers()
        if left and sent in GENTLE:
            wrong.append(f"left {left}")
        if left and (ended(begun(self.asked)) != 0 or leftovers()):
            wrong.append(f"{leftovers()} after the next run")
        return code, wrong

    def close(self) -> None:
        """Do nothing: nothing runs on."""


class Labels:
    """The server of ``label``, which is asked to write down one label after the other."""

    def __init__(self, _: str) -> None:
        self.acknowledged: set[tuple[int, str]] = set()
        self.sent: set[tuple[int, str]] = set()

    def _served(self) -> tuple[int, str]:
        """Return number and address of a server."""
        reader, writer = os.pipe()
        number = begun(LABEL, writer)
        os.close(writer)
        with os.fdopen(reader) as told:
            return number, told.readline().strip()

    def _asked(self, address: str, row: int, label: str) -> Any:
        base, token = address.split("/?token=")
        body = json.dumps({"who": "Ann", "rows": [row], "kind": "label", "label": label})
        with urllib.request.urlopen(f"{base}/api/mark?token={token}", body.encode()) as answer:
            return json.load(answer)

    def struck(self, rng: random.Random, sent: signal.Signals) -> tuple[int, list[str]]:
        """Return the exit code, and what is wrong."""
        number, address = self._served()
        later = threading.Timer(rng.random() ** 2, os.kill, (number, sent))
        later.start()
        with suppress(OSError, http.client.HTTPException):
            while True:
                mark = rng.randrange(600), rng.choice("abc")
                self.sent.add(mark)
                self._asked(address, *mark)
                self.acknowledged.add(mark)
        later.join()
        code, wrong = ended(number), []
        if sent in GENTLE and self._beside():
            wrong.append(f"left {self._beside()}")
        # The next run opens the journal, and ends as it should.
        number, address = self._served()
        if not address:
            return code, [*wrong, f"does not open again: {ended(number)}"]
        time.sleep(0.1)  # until signals mean what they should
        os.kill(number, signal.SIGINT)
        again = ended(number)
        if again != GENTLE[signal.SIGINT] or self._beside() or leftovers():
            wrong.append(f"{again}, {self._beside()}, {leftovers()} after the next run")
        with sqlite3.connect("in.csv.labels.sqlite") as file:
            bodies = [json.loads(body) for (body,) in file.execute("SELECT body FROM entries")]
        file.close()
        written = {(row, body["label"]) for body in bodies for row in body["rows"]}
        if not self.acknowledged <= written <= self.sent:
            wrong.append(f"lost {self.acknowledged - written}, made up {written - self.sent}")
        return code, wrong

    def _beside(self) -> list[str]:
        """Return what SQLite has beside a journal that is open."""
        return [name for name in os.listdir() if name.startswith("in.csv.labels.sqlite-")]

    def close(self) -> None:
        """Do nothing: nothing runs on."""


class Cluster:
    """A fit on a cluster, whose client is killed and goes on from its checkpoint."""

    def __init__(self, _: str) -> None:
        self._machines = subprocess.Popen(
            [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._machines.stdout is not None
        self.asked = [*CLASSIFY, "--scheduler", self._machines.stdout.readline().strip()]
        start = time.monotonic()
        assert ended(begun(self.asked)) == 0, "distributed does not run at all"
        self.usual = time.monotonic() - start
        self.right = self._answers()

    def _answers(self) -> Any:
        """Return the answers there are, and remove them."""
        found = pq.read_table("answers").to_pydict() if Path("answers").exists() else None
        whole = found is None or len(os.listdir("answers")) == 1
        for name in ("answers", "model", "checkpoint"):
            shutil.rmtree(name, ignore_errors=True)
        return found if whole else "broken"

    def struck(self, rng: random.Random, sent: signal.Signals) -> tuple[int, list[str]]:
        """Return the exit code, and what is wrong."""
        number = begun(self.asked)
        time.sleep(rng.random() * self.usual)
        os.kill(number, sent)
        code, wrong = ended(number), []
        if sent in GENTLE and leftovers():
            wrong.append(f"left {leftovers()}")
        if Path("answers").exists() and pq.read_table("answers").to_pydict() != self.right:
            wrong.append("half of the answers")
        shutil.rmtree("answers", ignore_errors=True)
        shutil.rmtree("model", ignore_errors=True)
        again = ended(begun([*self.asked, "--resume"]))
        there = os.listdir("checkpoint") if Path("checkpoint").exists() else []
        left = [name for name in there if name.startswith(("aside", "to-be-seen", "."))]
        if again != 0 or left or leftovers():
            wrong.append(f"{again}, {left}, {leftovers()} after the next run")
        if self._answers() != self.right:
            wrong.append("other answers after the next run")
        return code, wrong

    def close(self) -> None:
        """End the cluster."""
        assert self._machines.stdin is not None
        self._machines.stdin.close()
        self._machines.wait()


KINDS: dict[str, Callable[[str], Any]] = {
    "classify": Files, "predict": Files, "label": Labels, "distributed": Cluster,
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(KINDS), action="append")
    options = parser.parse_args(arguments)
    home, folder = os.getcwd(), tempfile.mkdtemp()
    os.chdir(folder)
    os.mkdir("tmp")
    tempdir, tempfile.tempdir = tempfile.tempdir, os.path.join(folder, "tmp")
    try:
        return run(options.count, random.Random(options.seed), options.only or list(KINDS))
    finally:
        tempfile.tempdir = tempdir
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)


def write_tables() -> None:
    """Write a table in an encoding that goes by a temporary file, and one in Parquet."""
    text = FLOWERS.read_text("utf-8").replace("id,", "né,", 1).replace("né", "id", 1)
    lines = text.splitlines()
    Path("in.csv").write_text(
        "\n".join([f"{lines[0]},note", *(f"{line},é" for line in lines[1:])]) + "\n", "cp1252"
    )
    rng = random.Random(0)
    species = [i % 3 if i < 60 else None for i in range(300)]
    columns: dict[str, Any] = {
        name: [rng.gauss(0, 1) + 3 * (i % 3) for i in range(300)] for name in ("x", "y", "z")
    }
    pq.write_table(pa.table(columns | {"species": species}), "in.parquet")


def run(count: int, rng: random.Random, names: list[str]) -> int:
    """Kill commands in the folder at hand; return whether there was a finding."""
    write_tables()
    first = ["classify"] * ("predict" in names and "classify" not in names)
    kinds = {name: KINDS[name](name) for name in [*first, *names]}
    counts: Counter[str] = Counter()
    findings = []
    try:
        for round_ in range(count):
            name = names[round_ % len(names)]
            sent = rng.choice([signal.SIGKILL] * 8 + list(GENTLE))
            code, wrong = kinds[name].struck(rng, sent)
            counts[sent.name] += 1
            counts[f"of {name}"] += 1
            counts["before the end"] += code != 0
            counts["apart"] += "apart" in wrong
            allowed = {0, -sent, GENTLE.get(sent, -sent)}
            wrong = [*wrong, *([f"exit code {code}"] if code not in allowed else [])]
            findings += [
                f"{round_} {name} {sent.name}: {what}" for what in wrong if what != "apart"
            ]
            for path in leftovers():
                shutil.rmtree(path, ignore_errors=True)
    finally:
        for kind in kinds.values():
            kind.close()
    for finding in findings[:50]:
        print(finding, file=sys.stderr)
    words = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
    print(f"kills: {words}; {len(findings)} findings")
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
