"""Random lives of a model, in which errors and interrupts strike anywhere.

    python fuzz/streams.py --count 1000 --seed 0

Rows and labels come, are corrected and withdrawn. Most steps are struck by an error or an interrupt
at some call of a function of the library, and then repeated. A finding is a model that is not what
it was before such a step, or one that `refresh` makes another than `fit` on all it has seen.
"""

import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from run import Hang, limited, main
from sklearn.base import clone

import manifoldknn

STEPS = 7
HOME = os.path.dirname(manifoldknn.__file__)
ERRORS = (RuntimeError, MemoryError, KeyboardInterrupt, ValueError, OSError)


class Struck(Exception):
    """The error of a step that was struck on purpose."""


@contextmanager
def struck(at, error):
    """Raise an error at a call of the library, counted from 1, if there are so many."""
    left = at

    def look(frame, event, _):
        nonlocal left
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise error("struck")

    told = sys.unraisablehook
    sys.unraisablehook = lambda _: None  # of generators that are struck as they close
    sys.setprofile(look)
    try:
        yield
    except BaseException as caught:
        sys.setprofile(None)
        if "struck" in str(caught):
            raise Struck from None
        raise
    finally:
        sys.setprofile(None)
        sys.unraisablehook = told


def rows(rng, count):
    X = rng.normal(size=(count, 2)) + 4.0 * rng.integers(0, 2, (count, 1))
    return np.round(X) if rng.random() < 0.2 else X


def labels(rng, X, share):
    truth = (X[:, 0] > 2).astype(int)
    return np.where(rng.random(len(X)) < share, truth, -1)


def first(rng):
    X = rows(rng, int(rng.integers(15, 60)))
    y = labels(rng, X, 0.2)
    y[:2] = 0, 1
    return X, y


def step(rng, model):
    """Return something that may happen to a model."""
    kind, n = rng.integers(6), len(model.transduction_)
    X = rows(rng, int(rng.integers(1, 12)))
    if kind == 0:
        return lambda: model.partial_fit(X)
    if kind == 1:
        y = labels(rng, X, 0.5)
        return lambda: model.partial_fit(X, y)
    if kind == 2:
        return lambda: model.partial_fit(X, refresh=True)
    if kind == 3:
        some = rng.choice(np.arange(2, n), min(3, n - 2), replace=False)
        y = rng.integers(-1, 3, len(some))
        return lambda: model.set_labels(some, y)
    if kind == 4:
        return model.refresh
    X, y = first(rng)
    return lambda: model.fit(X, y)


def state(model, Q):
    """All that users see of a model, as bytes."""
    values = [
        model.label_distributions_, model.transduction_, model.unreached_, model.classes_,
        model.labeled_indices_, model.fitted_.labels.codes, model.fitted_.index.X,
        model.predict_proba(Q), np.array([model.sigma_, model.alpha_, model.n_walked_]),
    ]  # fmt: skip
    return [np.asarray(value).tobytes() for value in values]


def same_as_fit(model):
    """Tell whether `refresh` gives what `fit` on everything does, to the last bit."""
    model.refresh()
    seen, codes = model.fitted_.index.X, model.fitted_.labels.codes
    y = np.where(codes >= 0, model.classes_[codes], -1)
    other = clone(model).fit(seen, y)
    return np.array_equal(other.label_distributions_, model.label_distributions_)


def attempt(seed):
    """Yield what became of the steps of one life."""
    rng = np.random.default_rng(seed)
    parameters = {
        "graph": str(rng.choice(["pruned", "union", "full"])),
        "vote": str(rng.choice(["classes", "neighbors"])),
        "metric": str(rng.choice(["euclidean", "euclidean", "manhattan", "chebyshev", "cosine"])),
        "graph_neighbors": int(rng.integers(2, 11)),
        "n_jobs": 1,
    }
    model = manifoldknn.ManifoldKNNClassifier(**parameters)
    Q = rows(rng, 3)
    try:
        with limited(60), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(*first(rng))
            for _ in range(STEPS):
                before, change = state(model, Q), step(rng, model)
                try:
                    with struck(
                        int(np.exp(rng.uniform(0, 6.5))), ERRORS[rng.integers(len(ERRORS))]
                    ):
                        change()
                    yield "steps unharmed"
                    continue
                except Struck:
                    yield "steps struck"
                if state(model, Q) != before:
                    yield f"BAD changed by a step that failed ({parameters})"
                    return
                change()
            yield "refreshed as fitted" if same_as_fit(model) else f"BAD refresh ({parameters})"
    except Hang:
        yield "BAD hang"
    except Exception as error:
        yield f"BAD {type(error).__name__}: {error} ({parameters})"


if __name__ == "__main__":
    sys.exit(main(attempt, "lives", count=1000))
