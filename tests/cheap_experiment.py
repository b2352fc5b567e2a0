"""An experiment of cheap cells, which fail, die or take their time where a test wants that.

Cells are measured in processes of their own, so wishes are passed by environment variables:
CHEAP_FAIL and CHEAP_DIE name a cell, CHEAP_SLEEP is in seconds, CHEAP_LOG is a file.
"""

import os
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from manifoldknn.reproduction.experiment import Cell, Experiment, Table

PLACE = "cheap_experiment:EXPERIMENT"
N_CELLS, N_ALONE = 12, 2


def cells(plan):
    alone = [Cell("cheap", ("alone", i), seconds=0.01, alone=True) for i in range(N_ALONE)]
    n = N_CELLS // 2 if plan.quick else N_CELLS
    return [Cell("cheap", ("shared", i), seconds=0.01 * (1 + i % 3)) for i in range(n)] + alone


def measure(cell, plan):
    start = time.time()
    name = f"{cell.key[0]}{cell.key[1]}"
    if os.environ.get("CHEAP_FAIL") == name:
        raise RuntimeError("as wished")
    if os.environ.get("CHEAP_DIE") == name:
        os._exit(7)
    time.sleep(float(os.environ.get("CHEAP_SLEEP", "0")))
    rng = np.random.default_rng([plan.seed, cell.key[1], len(cell.key[0])])
    values = rng.normal(size=3)
    if "CHEAP_LOG" in os.environ:
        threads = max([p["num_threads"] for p in threadpool_info()], default=1)
        with Path(os.environ["CHEAP_LOG"]).open("a") as file:
            file.write(f"{name} {start} {time.time()} {os.getpid()} {threads}\n")
    return [
        {
            "cell": name,
            "i": i,
            "value": value,
            "ok": value > 0,
            "note": None,
            "seconds": time.time(),
        }
        for i, value in enumerate(values)
    ]


def tables(rows):
    header = ["cell", "ours", "published", "difference"]
    lines = [[r["cell"], r["value"], 0.5, r["value"] - 0.5] for r in rows if r["i"] == 0]
    return [Table("Values <of> cells", header, lines, ["A note & more."])]


def draw(rows):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([r["value"] for r in rows])
    return figure


EXPERIMENT = Experiment(
    name="cheap",
    title="Cheap <cells>",
    columns=["cell", "i", "value", "ok", "note", "seconds"],
    cells=cells,
    measure=measure,
    tables=tables,
    draw=draw,
    timings=["seconds"],
    headline=lambda rows: Table("Main values", ["n"], [[len(rows)]]),
    findings=lambda rows: [f"There are {len(rows)} <rows>."],
    differences=["Differs from the paper in everything."],
    notes=lambda rows: [f"The last row is {rows[-1]['cell']}."],
)
