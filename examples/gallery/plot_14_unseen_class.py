"""
A class that nobody labelled
============================

Digits 8 and 9 get no label, so their rows are answered wrongly: no label says that they exist.
The picture shows how confident these answers are beside the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier

X, truth = load_digits(return_X_y=True)
y, rng = np.full(len(X), -1), np.random.default_rng(0)
for c in range(8):
    y[rng.choice(np.flatnonzero(truth == c), 10, replace=False)] = c
clf = ManifoldKNNClassifier().fit(X / 16, y)

confidence, unseen = clf.label_distributions_.max(axis=1), truth >= 8
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for rows, name, color in (
    (~unseen, "0 to 7", "#0072B2"),
    (unseen, "8 and 9, never labelled", "#D55E00"),
):
    weights = np.full(rows.sum(), 100 / rows.sum())
    ax.hist(
        confidence[rows], np.linspace(0, 1, 21), weights=weights, alpha=0.6, label=name, color=color
    )
ax.set(xlabel="confidence", ylabel="share of the rows, %")
ax.legend(frameon=False)
plt.show()
