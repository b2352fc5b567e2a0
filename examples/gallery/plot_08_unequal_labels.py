"""
Unequal numbers of labels do no harm
====================================

One class gets ten labels and the other three, as happens when people label what they meet.
In the paper's vote the class with more labels wins too often.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

from manifoldknn import ManifoldKNNClassifier

X, truth = load_breast_cancer(return_X_y=True)
X = minmax_scale(X)


def accuracy(vote, numbers, seed):
    """Return the share of unlabelled rows that is right, in percent."""
    rng, y = np.random.default_rng(seed), np.full(len(X), -1)
    for c, n in enumerate(numbers):
        y[rng.choice(np.flatnonzero(truth == c), n, replace=False)] = c
    answer = ManifoldKNNClassifier(vote=vote).fit(X, y).transduction_
    return 100 * np.mean((answer == truth)[y == -1])


figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
names = {"classes": "class densities (default)", "neighbors": "the paper's vote"}
for shift, (vote, name) in enumerate(names.items()):
    for place, numbers in enumerate(((3, 3), (10, 3), (3, 10))):
        found = [accuracy(vote, numbers, seed) for seed in range(5)]
        ax.bar(place + 0.35 * shift, np.mean(found), 0.32, color=("#0072B2", "#E69F00")[shift],
               label=name if place == 0 else None)  # fmt: skip
ax.set_xticks(np.arange(3) + 0.175, ["3 and 3", "10 and 3", "3 and 10"])
ax.set(xlabel="labels of both classes", ylabel="right, %", ylim=(0, 119))
ax.legend(loc="upper center", ncols=2, frameon=False)
plt.show()
