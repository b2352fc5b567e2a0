"""Make examples/flowers.csv: an invented table in which nine of 600 rows are labelled.

Three invented species grow along three curves: size, shape and colour change with
age, so that a young plant of one species looks more like a young one of another than
like an old one of its own.

    python examples/make_flowers.py             writes flowers.csv beside this file
    python examples/make_flowers.py --truth     prints id,species of all rows instead
"""

import csv
import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np

SPECIES = ("alpine", "marsh", "meadow")
SITES = {
    "alpine": ("ridge", "pasture"),
    "marsh": ("pond", "pasture"),
    "meadow": ("pasture", "lane"),
}
ROWS = 600


def grown(species, age, rng):
    """Petal length and width, leaf length and width and height, in centimetres."""
    turn = {"alpine": 0.0, "marsh": 2.1, "meadow": 4.2}[species]
    petal = 2.5 + 1.5 * age + 0.9 * np.cos(2.6 * age + turn)
    width = 1.2 + 0.5 * age + 0.9 * np.sin(2.6 * age + turn)
    leaf = 4 + 3 * age + np.cos(3 * age + turn)
    blade = 1 + 0.8 * age + 0.5 * np.sin(3 * age + turn)
    height = 10 + 25 * age + 4 * np.sin(2 * age + turn)
    noise = rng.normal(size=5) * [0.08, 0.08, 0.2, 0.08, 1.0]
    return np.array([petal, width, leaf, blade, height]) + noise


def main():
    rng = np.random.default_rng(20)
    names = rng.permutation(np.repeat(SPECIES, ROWS // 3))
    labelled = {row for s in SPECIES for row in rng.choice(np.flatnonzero(names == s), 3, False)}
    header = ["id", "measured_on", "site", "petal_length", "petal_width", "leaf_length",
              "leaf_width", "height", "spotted", "species"]  # fmt: skip
    rows, truth = [], []
    for number, species in enumerate(names):
        age = rng.uniform()
        sizes = [f"{value:.2f}" for value in grown(species, age, rng)]
        if rng.uniform() < 0.03:
            sizes[rng.integers(5)] = ""
        day = date(2024, 4, 1) + timedelta(days=int(60 * age + rng.integers(0, 12)))
        spotted = "yes" if rng.uniform() < (0.8 if species == "marsh" else 0.2) else "no"
        name = f"{number + 1:04d}"
        site = SITES[species][int(rng.uniform() < 0.4)]
        label = species if number in labelled else ""
        rows.append([name, day.isoformat(), site, *sizes, spotted, label])
        truth.append([name, species])
    if "--truth" in sys.argv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([["id", "species"], *truth])
        return
    with (Path(__file__).parent / "flowers.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
