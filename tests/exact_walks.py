"""Walks over small graphs in exact arithmetic."""

import mpmath
import numpy as np


def exact_logs(log_w, group, columns, alpha):
    """Return log (I - αS)⁻¹ b by elimination with 300 digits."""
    n = len(log_w)
    with mpmath.workdps(300):
        w = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                if i != j and np.isfinite(log_w[i, j]):
                    w[i, j] = mpmath.exp(float(log_w[i, j]))
                if i != j and group[i] >= 0 and group[i] == group[j]:
                    w[i, j] += 1
        degrees = [sum(w[i, j] for j in range(n)) for i in range(n)]
        a = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                link = w[i, j] / mpmath.sqrt(degrees[i] * degrees[j]) if w[i, j] else 0
                a[i, j] = (1 if i == j else 0) - mpmath.mpf(alpha) * link
        out = np.full((n, columns.n_columns), -np.inf)
        for c in range(columns.n_columns):
            b = mpmath.matrix(n, 1)
            here = columns.cols == c
            for row, value in zip(columns.rows[here], columns.log_values[here]):
                b[int(row)] += mpmath.exp(float(value))
            if here.any():
                x = mpmath.lu_solve(a, b)
                for i in range(n):
                    if x[i] > mpmath.mpf(10) ** -250:
                        out[i, c] = float(mpmath.log(x[i]))
    return out


def clusters(rng, sizes, joins, log_weak):
    """Return log W of clusters, each a ring with chords, and weak edges between given ones."""
    n, starts = sum(sizes), np.concatenate([[0], np.cumsum(sizes)])
    log_w = np.full((n, n), -np.inf)
    for start, size in zip(starts, sizes):
        for i in range(size - 1):
            log_w[start + i, start + i + 1] = -rng.random()
        if size > 3:
            log_w[start, start + size - 2] = -rng.random()
    for (a, b), weak in zip(joins, log_weak):
        i, j = starts[a] + rng.integers(sizes[a]), starts[b] + rng.integers(sizes[b])
        log_w[min(i, j), max(i, j)] = weak
    return np.maximum(log_w, log_w.T)
