"""
Which rows to label next
========================

`suggest` names rows that are uncertain and speak for many others.
Five rounds of ten labels, beside ten random rows each time.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, suggest

X, truth = load_digits(return_X_y=True)
X = X / 16


def rounds(seed, suggested):
    """Return the error after each round, in percent."""
    rng, y = np.random.default_rng(seed), np.full(len(X), -1)
    for c in range(10):
        y[rng.choice(np.flatnonzero(truth == c), 3, replace=False)] = c
    found = []
    for _ in range(6):
        clf = ManifoldKNNClassifier().fit(X, y)
        found.append(100 * np.mean((clf.transduction_ != truth)[y == -1]))
        rows = (
            suggest(clf, 10).rows if suggested else rng.choice(np.flatnonzero(y == -1), 10, False)
        )
        y[rows] = truth[rows]
    return found


figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for suggested, name, color in ((True, "suggest", "#0072B2"), (False, "random rows", "#E69F00")):
    found = np.array([rounds(seed, suggested) for seed in range(2)])
    ax.plot(30 + 10 * np.arange(6), found.mean(axis=0), "o-", color=color, label=name)
ax.set(xlabel="labels", ylabel="error, %", ylim=(0, None), title="digits, mean of two beginnings")
ax.legend(frameon=False)
plt.show()
