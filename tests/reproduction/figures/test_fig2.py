"""The walk on the small graph, held against sums over paths written out one by one."""

from itertools import product

import numpy as np
import pytest

from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.figures.fig2 import EXPERIMENT

ROWS = EXPERIMENT.measure(EXPERIMENT.cells(Plan())[0], Plan())


def values(what, key="where"):
    return {row[key]: row["value"] for row in ROWS if row["what"] == what}


def steps():
    """Transition probabilities from the edges that the figure shows, times alpha."""
    weights = {}
    for name, weight in values("edge").items():
        a, b = name.split("-")
        weights[a, b] = weights[b, a] = weight
    degree = {a: sum(w for (i, _), w in weights.items() if i == a) for a, _ in weights}
    return {(a, b): 0.99 * w / degree[a] for (a, b), w in weights.items()}


def strength(path):
    probabilities = steps()
    return np.prod([probabilities.get(pair, 0.0) for pair in zip(path, path[1:])])  # noqa: RUF007


def test_paths_are_products_of_steps():
    found = values("path")
    assert list(found) == ["i → A → j", "i → B → j", "i → B → C → j", "i → B → C → B → j"]
    for path, value in found.items():
        assert value == pytest.approx(strength(path.split(" → ")))


@pytest.mark.parametrize("t", [1, 2, 3, 4, 5])
def test_partial_sums_count_every_path(t):
    total = sum(
        strength(("i", *between, "j")) for n in range(t) for between in product("iABCj", repeat=n)
    )
    assert values("sum", "steps")[t] == pytest.approx(total)


def test_sums_grow_towards_the_inverse():
    sums, limit = values("sum", "steps"), values("walk")["i → j"]
    assert list(sums.values()) == sorted(sums.values())
    assert sums[1000] == pytest.approx(limit, rel=1e-3)
    assert sums[1000] < limit
    walk = values("walk")  # rows of (I - αP)⁻¹ add up to 1/(1 - α)
    for a in "iABCj":
        assert sum(walk[f"{a} → {b}"] for b in "iABCj") == pytest.approx(100.0)


def test_the_figure_shows_the_numbers():
    graph, paths, sums = EXPERIMENT.draw(ROWS).axes
    shown = {text.get_text() for text in graph.texts}
    assert {"i", "j", "A", "B", "C"} | {f"{w:g}" for w in values("edge").values()} <= shown
    assert {t.get_text() for t in paths.texts} == {f"{v:.3f}" for v in values("path").values()}
    assert sums.lines[1].get_ydata()[-1] == pytest.approx(values("walk")["i → j"], rel=1e-3)
    tables = EXPERIMENT.tables(ROWS)
    assert tables[0].rows[-1][1] == values("walk")["i → j"]
