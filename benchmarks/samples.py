"""Data for a measurement: read a file, scale it, hide all labels but a few."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from methods import UNLABELED

SEED = 0


def load(path, divide_by=None):
    """Read X and y from an npz file, X as float32 in [0, 1].

    Parameters
    ----------
    path : path-like
        File with X and y.
    divide_by : float, optional
        Divide all of X by this; without it every column is scaled on its own.

    Returns
    -------
    tuple
        X and y.
    """
    with np.load(path) as file:
        X, y = file["X"].astype(np.float32), file["y"]
    # In place throughout: the loader must not set the peak that is measured.
    if divide_by is not None:
        X /= divide_by
    else:
        X -= X.min(axis=0)
        span = X.max(axis=0)
        span[span == 0] = 1  # a constant column
        X /= span
    return X, y


def count_rows(path):
    with np.load(path) as file:
        return len(file["y"])


def save_subset(path, n_rows, target):
    """Write rows drawn at random, in their old order, to a file of their own.

    A measurement on n rows can then load n rows: reading all and dropping most
    would add the same seconds and megabytes to every size, and growth with n would
    look slower than it is.

    Parameters
    ----------
    path, target : path-like
        File to read, file to write.
    n_rows : int
        Rows to keep.

    Returns
    -------
    Path
        The file written.
    """
    with np.load(path) as file:
        X, y = file["X"], file["y"]
    rows = np.sort(np.random.default_rng(SEED).choice(len(y), n_rows, replace=False))
    np.savez_compressed(target, X=X[rows], y=y[rows])
    return Path(target)


def made(n_rows, n_columns=32):
    """Return made-up rows of columns of the size of 1, and their classes.

    There are ten, each of three separate curved surfaces with some noise.
    """
    rng = np.random.default_rng(SEED)
    piece = rng.integers(0, 30, n_rows)
    waves, phases = rng.normal(size=(30, 2, n_columns)), rng.uniform(0, 6.3, (30, n_columns))
    X = np.empty((n_rows, n_columns), dtype=np.float32)
    for number in range(30):
        rows = np.flatnonzero(piece == number)
        on_surface = np.sin(3 * rng.random((len(rows), 2)) @ waves[number] + phases[number])
        X[rows] = on_surface + 0.05 * rng.normal(size=on_surface.shape)
    return X, piece % 10


def save_made(n_rows, target):
    """Write made-up rows to a file, and return its path."""
    X, y = made(n_rows)
    np.savez(target, X=X, y=y)
    return Path(target)


def hide_labels(y, per_class=None, share=None):
    """Return y with -1 in all rows but a few.

    Parameters
    ----------
    y : ndarray of int
        True labels.
    per_class : int, optional
        Labels to keep in each class.
    share : float, optional
        Share of all rows that keep their label, classes drawn as they come.

    Returns
    -------
    ndarray of int
        Labels, -1 where hidden.
    """
    rng = np.random.default_rng(SEED)
    if share is not None:
        kept = rng.choice(len(y), int(share * len(y)), replace=False)
    else:
        members = [np.flatnonzero(y == c) for c in np.unique(y)]
        kept = np.concatenate(
            [rng.choice(rows, min(per_class, len(rows)), replace=False) for rows in members]
        )
    hidden = np.full(len(y), UNLABELED, dtype=np.int64)
    hidden[kept] = y[kept]
    return hidden
