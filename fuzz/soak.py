"""Many single rows, one after the other: memory must not grow.

    python fuzz/soak.py --count 100000 --seed 0

So many calls of `predict` with one row, then a `partial_fit` of one for every fifty of them. The
first tenth is for warming up. A finding is resident memory that grows by more than 5 % after it,
beside what the rows themselves take.
"""

import os
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from run import options_of, told

from manifoldknn import ManifoldKNNClassifier

GROWTH = 1.05
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def grown(call, count, model):
    """Return by which factor memory grew after a tenth of the calls, less what the model holds."""
    for number in range(count):
        if number == count // 10:
            held, before = len(pickle.dumps(model)), resident()
        call(number)
    return (resident() - len(pickle.dumps(model)) + held) / before


def main(argv=None):
    options = options_of(argv, 100_000)
    rng = np.random.default_rng(options.seed)
    X = rng.normal(size=(2000, 10))
    y = np.full(len(X), -1)
    y[:20] = X[:20, 0] > 0
    model = ManifoldKNNClassifier(n_jobs=1).fit(X, y)
    Q = rng.normal(size=(1000, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = grown(lambda number: model.predict(Q[number % 1000][None]), options.count, model)
        streamed = max(options.count // 50, 10)
        taken = grown(lambda number: model.partial_fit(Q[number % 1000][None]), streamed, model)
    bad = max(asked, taken) > GROWTH
    return told(
        options, "predictions of a row", bad,
        f"memory grew by {asked - 1:.1%}; {streamed} rows taken in, by {taken - 1:.1%}",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
