"""Table 5: the six real data sets, as stated and as found."""

import numpy as np

from manifoldknn.datasets import PAPER_SETS, load_paper
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table

_COLUMNS = (
    "set", "n_stated", "n_found", "repeats_removed", "d_stated", "d_found", "classes_stated",
    "classes_found", "smallest_class", "largest_class",
)  # fmt: skip
_STATED = ("n", "d", "classes")


def _cells(plan: Plan) -> list[Cell]:  # noqa: ARG001
    return [Cell("tab5", (name,), seconds=0.5) for name in PAPER_SETS]


def _measure(cell: Cell, plan: Plan) -> list[Row]:  # noqa: ARG001
    (name,) = cell.key
    spec, data = PAPER_SETS[name], load_paper(name)
    sizes = np.bincount(data.y)
    values = (
        name, spec.n_paper, len(data.X), data.n_removed, spec.n_features, data.X.shape[1],
        spec.classes_paper, len(sizes), int(sizes.min()), int(sizes.max()),
    )  # fmt: skip
    return [dict(zip(_COLUMNS, values))]


def _tables(rows: list[Row]) -> list[Table]:
    lines: Lines = []
    for row in rows:
        both = [f"{row[f'{what}_stated']} / {row[f'{what}_found']}" for what in _STATED]
        sizes = f"{row['smallest_class']} to {row['largest_class']}"
        agrees = all(row[f"{what}_stated"] == row[f"{what}_found"] for what in _STATED)
        found = "none" if agrees else "classes"
        lines.append([row["set"], *both, found, row["repeats_removed"], sizes])
    return [Table.told("tab5", "sets", lines)]


EXPERIMENT = Experiment.told(
    "tab5", _COLUMNS, _cells, _measure, _tables, datasets=tuple(PAPER_SETS)
)
