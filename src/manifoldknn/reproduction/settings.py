"""The settings of every method that the experiments compare, as they are searched and used."""

import math
from typing import Any

from sklearn.semi_supervised import LabelSpreading

from manifoldknn.classifier import as_published
from manifoldknn.reproduction.experiment import Lines, Table, read_toml
from manifoldknn.reproduction.figures.width import FACTORS
from manifoldknn.reproduction.methods import GEODESIC_LINKS, SPREADING, baseline

_MANY = 8  # values, that are not all written out


def settings_table() -> Table:
    """Return what is fixed and what is tuned in every method, read from the estimators and grids.

    >>> [line[0] for line in settings_table().rows][:3]
    ['kNN', 'wkNN', 'gkNN']
    """
    values: dict[str, Any] = {
        "weighted": baseline("wkNN", k=1).estimator,
        "network": baseline("ANN", k=1).estimator,
        "published": as_published(),
        "links": _list(GEODESIC_LINKS),
        "factors": _list(FACTORS),
    }
    lines: Lines = []
    for name, said in read_toml("words.toml")["settings"]["methods"].items():
        model = LabelSpreading(kernel="knn", **SPREADING.get(name, {}))
        values |= {"spreading": model, "at_most": "at most " * (model.tol > 0)}
        tuned = said[1:] or [_grid(name)]
        lines.append([name, *(text.format_map(values) for text in (said[0], *tuned))])
    return Table.told("settings", "table", lines)


def _grid(name: str) -> str:
    grid = baseline(name, k=1).grid
    return "; ".join(f"{key}: {_list(values)}" for key, values in grid.items()) or "nothing"


def _list(values: Any) -> str:
    powers = [math.log2(v) if isinstance(v, float) and v > 0 else math.nan for v in values]
    if len(powers) > _MANY and all(power.is_integer() for power in powers):
        return f"2^{powers[0]:.0f}, 2^{powers[1]:.0f}, …, 2^{powers[-1]:.0f}"
    plain = [" + ".join(map(str, v)) if isinstance(v, tuple) else v for v in values]
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in plain)
