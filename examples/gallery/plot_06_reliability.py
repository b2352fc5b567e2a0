"""
Is a confidence of 80 % right in 80 of 100 cases?
=================================================

Labels are drawn in two ways: equally many per class, and at random.
Each dot holds the answers of six draws; on the line, confidence is exactly right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier

X, truth = load_digits(return_X_y=True)
X = X / 16


def labels(seed, equal):
    """Three per class, or one per class and the rest at random: 30 in both cases."""
    rng = np.random.default_rng(seed)
    one = [
        rng.choice(np.flatnonzero(truth == c), 3 if equal else 1, replace=False) for c in range(10)
    ]
    rows = np.concatenate(one)
    if not equal:
        rest = np.setdiff1d(np.arange(len(X)), rows)
        rows = np.concatenate([rows, rng.choice(rest, 20, replace=False)])
    y = np.full(len(X), -1)
    y[rows] = truth[rows]
    return y


figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained", sharey=True)
for ax, equal in zip(axes, (True, False)):
    confidence, right = [], []
    for seed in range(6):
        y = labels(seed, equal)
        clf = ManifoldKNNClassifier().fit(X, y)
        hidden = y == -1
        confidence.append(clf.label_distributions_[hidden].max(axis=1))
        right.append((clf.transduction_ == truth)[hidden])
    confidence, right = np.concatenate(confidence), np.concatenate(right)
    bins = np.digitize(confidence, np.linspace(0, 1, 11)[1:-1])
    shown = [b for b in range(10) if (bins == b).sum() >= 20]
    ax.plot([0, 1], [0, 1], color="#777777", linestyle=":")
    ax.plot([confidence[bins == b].mean() for b in shown], [right[bins == b].mean() for b in shown],
            "o-", color="#0072B2")  # fmt: skip
    ax.set(title="three labels per class" if equal else "labels at random", xlabel="confidence")
axes[0].set_ylabel("share that is right")
plt.show()

# %%
# Above the line, answers are right more often than they claim; below it, less often. With so few labels to hide, the
# sharpness is known roughly only.
