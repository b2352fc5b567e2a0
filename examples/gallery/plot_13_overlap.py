"""
Where it loses: classes that overlap
====================================

Without a gap between classes there is no shape to follow.
With enough labels a plain classifier on the labelled rows is then as good or better.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from manifoldknn import ManifoldKNNClassifier


def compare(gap, seed):
    """Return both errors for two clouds with this distance, in percent."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 1000)
    X = rng.normal(size=(1000, 10))
    X[:, 0] += gap * truth
    y = np.full(1000, -1)
    for c in (0, 1):
        y[rng.choice(np.flatnonzero(truth == c), 25, replace=False)] = c
    ours = ManifoldKNNClassifier().fit(X, y).transduction_
    line = LogisticRegression().fit(X[y >= 0], y[y >= 0]).predict(X)
    return [100 * np.mean((answer != truth)[y == -1]) for answer in (ours, line)]


gaps = np.linspace(1, 6, 6)
found = np.array([np.mean([compare(gap, seed) for seed in range(4)], axis=0) for gap in gaps])
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(gaps, found[:, 0], "o-", color="#0072B2", label="manifoldknn")
ax.plot(gaps, found[:, 1], "s--", color="#E69F00", label="logistic regression on the labels")
ax.set(xlabel="distance of the classes, in standard deviations", ylabel="error, %", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
