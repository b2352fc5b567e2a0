"""Small sets and plans for tests of experiments."""

import numpy as np
from sklearn.datasets import make_blobs

from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.problems import Problem

QUICK = Plan(quick=True, seed=0)


def blobs(n_samples=150, n_classes=3, seed=0, spread=1.6):
    """Classes that overlap a little, at least 45 samples each by default."""
    X, y = make_blobs(
        n_samples, n_features=3, centers=n_classes, cluster_std=spread, random_state=seed
    )
    return Problem((X - X.min(axis=0)) / np.ptp(X, axis=0), y.astype(np.intp))


def measured_rows(experiment, cells, plan=QUICK):
    """Rows of some cells, after checking that every row has the experiment's columns."""
    rows = [row for cell in cells for row in experiment.measure(cell, plan)]
    for row in rows:
        assert tuple(row) == tuple(experiment.columns)
        assert all(v is None or isinstance(v, str | int | float) for v in row.values())
        assert not any(isinstance(v, np.generic) for v in row.values())
    return rows


def without_times(experiment, rows):
    """The same rows without what no two runs agree on."""
    return [{k: v for k, v in row.items() if k not in experiment.timings} for row in rows]


def check_tables(tables):
    """Every line is as long as its header, and every number is one."""
    for table in tables:
        assert table.caption
        assert table.rows
        for line in table.rows:
            assert len(line) == len(table.header)
            assert not any(isinstance(v, float) and np.isnan(v) for v in line)
