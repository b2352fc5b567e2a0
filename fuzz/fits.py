"""Random problems against elimination in logarithms (`oracle.py`).

    python fuzz/fits.py --count 10000 --seed 0

Duplicates, ties, islands, numbers from 1e-300 to 1e300, one label per class, unequal labels, links
by hand, all graphs, metrics and ways to solve, both votes, α up to 1 - 1e-7. A finding is a NaN, an
error other than a refusal of the input, more than 20 seconds, a row over `tol` of which no warning
told, or a warning where nothing is wrong.
"""

import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import oracle  # noqa: E402
from run import Hang, limited, main  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402

from manifoldknn import ManifoldKNNClassifier  # noqa: E402
from strategies import forced  # noqa: E402

FAR = 0.99e9  # logarithms of this size have too few digits, and a warning says so
ANGULAR = ("cosine", "correlation")


def by_hand(a, b):
    return float(np.abs(a - b).max())


METRICS = (*["euclidean"] * 6, "manhattan", "chebyshev", "cosine", "correlation", "canberra",
           "braycurtis", "hamming", by_hand)  # fmt: skip
ALPHAS = ("auto", 0.1, 0.5, 0.99, 0.9997, 1 - 1e-5, 1 - 1e-6, 1 - 1e-7)


def pick(rng, values):
    return values[rng.integers(len(values))]


def samples(rng, metric):
    """Rows in islands, with ties, duplicates, odd ones, and of any size."""
    n = int(rng.integers(4, pick(rng, (12, 40, 70))))
    d = int(rng.integers(1, pick(rng, (5, 5, 5, 24))))
    d = max(d, 3) if metric == "correlation" else d
    islands = int(rng.integers(1, 5))
    gap = pick(rng, (0.5, 3.0, 6.0, 50.0, 1e3, 1e5))
    X = rng.normal(size=(n, d)) + gap * rng.integers(0, islands, n)[:, None]
    if metric in ("canberra", "braycurtis") and rng.random() < 0.5:
        X = np.abs(X)
    # Angles between points of a grid tie up to rounding, which nobody can decide.
    on_a_grid = metric == "hamming" or (metric not in ANGULAR and rng.random() < 0.25)
    if on_a_grid:
        X = np.round(X)
    if rng.random() < 0.3:
        X[rng.integers(0, n, n // 2)] = X[rng.integers(0, n, n // 2)]
    if metric == "cosine" and rng.random() < 0.2:  # parallel rows, and some without a direction
        X[rng.integers(0, n, 4)] = X[0] * 2.0 ** rng.integers(-9, 9, (4, 1))
        X[rng.integers(0, n, 2)] = 0.0
    if rng.random() < 0.1:  # one row, or one feature, of another size
        part = X[rng.integers(n)] if rng.random() < 0.5 else X[:, rng.integers(d)]
        part *= 2.0 ** rng.integers(-40, 41)
    if rng.random() < 0.3:
        most = pick(rng, (320, 320, 996))  # within what is taken, or not
        power = rng.integers(-most, most + 1) if on_a_grid else rng.uniform(-most, most)
        X = X * 2.0**power  # a power of two, so that ties remain ties
    if rng.random() < 0.2 and np.abs(X).max() < 1e30:
        X = X.astype(np.float32)
    return X


def problem(rng):
    """Rows, labels, links and parameters."""
    metric = pick(rng, METRICS)
    X = samples(rng, metric)
    n = len(X)
    n_classes = int(rng.integers(1, min(pick(rng, (5, 5, 9)), n)))
    sizes = np.ones(n_classes, dtype=int)
    if rng.random() < 0.7:
        sizes += rng.integers(0, 1 + (n - n_classes) // n_classes, n_classes) // rng.integers(1, 4)
    y, rows = np.full(n, -1), rng.permutation(n)[: sizes.sum()]
    y[rows] = np.repeat(np.arange(n_classes), sizes)
    truth = np.where(y >= 0, y, rng.integers(0, n_classes, n))
    links = np.empty((0, 2), dtype=int)
    if rng.random() < 0.25:
        links = rng.choice(n, (pick(rng, (6, n)), 2))
        links = np.unique(np.sort(links[links[:, 0] != links[:, 1]], axis=1), axis=0)
    same = truth[links[:, 0]] == truth[links[:, 1]]
    parameters = {
        "metric": metric,
        "vote": pick(rng, ("classes", "neighbors")),
        "graph": pick(rng, ("pruned", "pruned", "union", "full")),
        "graph_neighbors": int(rng.integers(1, 13)),
        "alpha": pick(rng, ALPHAS),
        "tree_depth": int(rng.integers(0, 4)),
        "theta": pick(rng, (0.0, 0.1, 0.9)),
        "tol": pick(rng, (1e-3, 1e-3, 1e-2, 1e-6)),
        "n_jobs": pick(rng, (1, 2)),
        "sharpness": pick(rng, ("auto", "auto", 1.0)),
        "class_prior": pick(rng, ("equal", "labeled")),
    }
    if rng.random() < 0.3:
        parameters["sigma"] = float(np.abs(X).max() or 1.0) * 10.0 ** rng.uniform(-4, 2)
    return X, y, links[same], links[~same], parameters


def expected(X, y, must, cannot, model):
    """Sigma, logarithms as the oracle has them, and the least among them and those of weights."""
    k = min(model.graph_neighbors, len(X) - 1)
    D = oracle.distances(X, model.metric)
    sigma = model.sigma
    if sigma == "auto":
        sigma = oracle.width(D, model.graph, k)
    L = oracle.log_weights(
        D, y, graph=model.graph, k=k, sigma=sigma, depth=model.tree_depth, theta=model.theta,
        must=must, cannot=cannot,
    )  # fmt: skip
    walk = oracle.Walk(L, model.alpha_)
    if model.vote == "classes":
        true = walk.by_class(y, len(model.classes_))
    else:
        true = walk.by_label(np.flatnonzero(y >= 0))
    both = np.concatenate([L.ravel(), true.ravel()])
    return sigma, true, both[np.isfinite(both)].min(initial=0.0)


def excess(found, true, reach):
    """By how much the error of every row is larger than 1, the largest of the row."""
    top = true.max(axis=1, keepdims=True)
    assert not np.isnan(top).any()
    here = np.isfinite(top[:, 0])
    found, true, top = found[here], true[here], top[here]
    allowed = np.maximum(true, top - reach) if np.isfinite(reach) else true
    # Logarithms are kept in single precision, beside the largest of their row.
    rounding = 2.0**-23 * np.abs(np.where(np.isfinite(true), true - top, 0.0))
    with np.errstate(invalid="ignore"):
        away = found - true
        away = np.sign(away) * np.maximum(np.abs(away) - rounding, 0.0)
        found = np.where(np.isfinite(away), true + away, found)
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = np.abs(np.exp(found - allowed) - np.exp(true - allowed))
    wrong[np.isneginf(found) & np.isneginf(true)] = 0.0
    return wrong.max(axis=1, initial=0.0)


def attempt(seed):
    """Yield what became of one problem."""
    rng = np.random.default_rng(seed)
    X, y, must, cannot, parameters = problem(rng)
    way = pick(rng, (None, None, "factorise", "iterate", "levels"))
    new = X[rng.integers(0, len(X), 3)] * (1 + 0.01 * rng.normal(size=(3, 1)))
    model = ManifoldKNNClassifier(**parameters)
    try:
        with limited(), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            with forced(way) if way else nullcontext():
                model.fit(X, y, must_link=must, cannot_link=cannot)
                told = [model.label_distributions_, *model.kneighbors()[:1]]
            told += [model.predict_proba(new), *model.kneighbors(new)[:1]]
    except ValueError as error:
        words = ("rescale", "are identical", "take one of the", "take one of these", "all equal",
                 "contains infinity")  # fmt: skip
        yield "refused" if any(word in str(error) for word in words) else f"BAD {error!r}"
        return
    except Hang:
        yield "BAD hang"
        return
    except Exception as error:
        yield f"BAD {type(error).__name__}: {error}"
        return
    strange = [w for w in heard if issubclass(w.category, RuntimeWarning)]
    if strange:
        yield f"BAD {strange[0].message} ({strange[0].filename}:{strange[0].lineno})"
    if any(not np.isfinite(values).all() for values in told):
        yield "BAD a number that is none"
        return
    warned = [str(w.message) for w in heard if issubclass(w.category, ConvergenceWarning)]
    sigma, true, farthest = expected(X, y, must, cannot, model)
    if not np.isclose(sigma, model.sigma_, rtol=1e-6):
        yield f"BAD sigma {model.sigma_} instead of {sigma}"
        return
    walk = model.fitted_.walk
    found = walk.similarities.logarithms()
    far_told = any("so far from others" in words for words in warned)
    reached = np.isfinite(found.max(axis=1))
    if (reached != np.isfinite(true.max(axis=1))).any() and not far_told:
        yield "BAD rows reached that are not, or not reached that are"
        return
    reach = walk.reach if model.vote == "classes" else 0.0
    wrong = excess(found, true, reach) / model.tol
    accurate = wrong.max(initial=0.0) <= 1
    if not warned:
        yield "accurate" if accurate else f"BAD {wrong.max():.2g} times tol ({way})"
    elif far_told:
        words = f"warned of far rows, {'accurate' if accurate else 'some over tol'}"
        # Near α = 1 fewer digits are left: 2^-52 of a logarithm counts beside 1 - α.
        far = min(FAR, 99 * model.tol * (1 - model.alpha_) * 2.0**52)
        yield words if farthest < -far else f"BAD warned of {farthest:.2g}, which is not far"
    else:
        yield "warned of no convergence" if not accurate else f"BAD {warned}, but all are accurate"


if __name__ == "__main__":
    sys.exit(main(attempt, "fits", count=10_000))
