"""Peak memory and time of ``manifoldknn classify`` on a large CSV file.

    python benchmarks/table.py [--rows 100000]

makes a file of 50 columns of numbers with 10 labels for each of five classes, labels it in a
fresh process, with a report, and writes ``results/table.md``. The peak is the largest resident
set that the system reports for the whole process. A second process that only imports what
the first one does tells how much of it is the interpreter and its libraries.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import commit

RESULTS = Path(__file__).parent / "results"
N_COLUMNS, N_CLASSES, PER_CLASS = 50, 5, 10
MOST = 6.0  # times what the table takes in memory

RUN = """
import json, resource, sys
import faiss, manifoldknn.reporting.page
from manifoldknn.cli.main import main
code = main(sys.argv[1:]) if len(sys.argv) > 1 else 0
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if sys.platform == "linux":  # where that counts the parent too, from before this program began
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
print(json.dumps({"code": code, "peak": peak * (1 if sys.platform == "darwin" else 1024)}))
"""


def make_table(path, n_rows, seed=0):
    """Write the file, and return how many bytes its cells take in memory.

    A number takes 8 bytes; a label takes what a Python string does, and 8 bytes that point
    at it: what pandas reports as deep memory usage.
    """
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(N_CLASSES, N_COLUMNS))
    truth = rng.integers(0, N_CLASSES, n_rows)
    labels = np.full(n_rows, "", dtype=object)
    for c in range(N_CLASSES):
        labels[np.flatnonzero(truth == c)[:PER_CLASS]] = f"class{c}"
    with path.open("w", encoding="utf-8") as file:
        file.write("id," + ",".join(f"f{i}" for i in range(N_COLUMNS)) + ",label\n")
        for row in range(n_rows):
            values = centers[truth[row]] + rng.normal(size=N_COLUMNS)
            file.write(f"{row}," + ",".join(f"{v:.15g}" for v in values) + f",{labels[row]}\n")
    # An empty cell is read as NaN, a float that is pointed at.
    text = sum(sys.getsizeof(label if label else np.nan) for label in labels)
    return 8 * n_rows * (N_COLUMNS + 2) + text


def run(*arguments):
    """Run the command in a fresh process; return its peak in bytes and its seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout.splitlines()[-1])
    if said["code"]:
        raise RuntimeError(done.stderr)
    return said["peak"], time.perf_counter() - start


def measure(folder, n_rows):
    """Make a table in a folder and label it; return what was measured."""
    path = Path(folder) / "table.csv"
    in_memory = make_table(path, n_rows)
    baseline, _ = run()
    peak, seconds = run(
        "classify", str(path), "--label", "label", "--id", "id", "--quiet",
        "--out", str(Path(folder) / "out.csv"), "--report", str(Path(folder) / "report.html"),
    )  # fmt: skip
    return {
        "rows": n_rows, "file": path.stat().st_size, "in_memory": in_memory,
        "baseline": baseline, "peak": peak, "seconds": seconds,
    }  # fmt: skip


def text_of(found):
    """Return the table of results."""
    beyond = found["peak"] - found["baseline"]
    table, peak = found["in_memory"], found["peak"]
    lines = {
        "rows, columns of numbers": f"{found['rows']:,}, {N_COLUMNS}",
        "size of the file": f"{found['file'] / 1e6:.1f} MB",
        "size of the table in memory": f"{table / 1e6:.1f} MB",
        "interpreter and imports alone": f"{found['baseline'] / 1e6:.0f} MB",
        "peak of the whole process": f"{peak / 1e6:.0f} MB",
        "peak beyond the imports": f"{beyond / 1e6:.0f} MB",
        "peak of the whole process, by the table in memory": f"{peak / table:.1f}",
        "peak of the whole process, by the file": f"{peak / found['file']:.2f}",
        "peak beyond the imports, by the table in memory": f"{beyond / table:.2f}",
        "seconds": f"{found['seconds']:.1f}",
        "commit": commit(),
    }
    rows = "".join(f"| {name} | {value} |\n" for name, value in lines.items())
    return (
        "# A large table\n\n`manifoldknn classify` with `--report` on a CSV file, in a fresh "
        f"process; `python benchmarks/table.py` measures it.\n\n| | |\n|---|---|\n{rows}\n"
        f"At most {MOST:g} times the table in memory is wanted. {_judged(beyond / table)} once the "
        "interpreter and its\nlibraries, which any table needs, are taken off the peak. "
        f"{_judged(peak / table)} with them, on a table\nof this size: of the whole process the "
        f"peak is {peak / table:.1f} times the table, or {peak / found['file']:.1f} times "
        "the file.\n"
    )


def _judged(ratio):
    return "That is met" if ratio <= MOST else "It is not met"


def main():
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = text_of(measure(folder, options.rows))
    (RESULTS / "table.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
