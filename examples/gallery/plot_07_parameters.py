"""
Three parameters that matter
============================

Number of neighbours, width of the kernel, and life of the walk, one at a time on digits.
The others keep their defaults. Shown are mean and range over three draws of three labels per class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier

X, truth = load_digits(return_X_y=True)
X = X / 16


def errors(**parameters):
    """Return the error of three draws, in percent."""
    found = []
    for seed in range(3):
        rng, y = np.random.default_rng(seed), np.full(len(X), -1)
        for c in range(10):
            y[rng.choice(np.flatnonzero(truth == c), 3, replace=False)] = c
        answer = ManifoldKNNClassifier(sharpness=1, **parameters).fit(X, y).transduction_
        found.append(100 * np.mean(answer[y == -1] != truth[y == -1]))
    return found


sigma = ManifoldKNNClassifier().fit(X, np.where(np.arange(len(X)) < 50, truth, -1)).sigma_
grids = {
    "graph_neighbors": [3, 5, 10, 20, 40],
    "sigma": [round(sigma * factor, 2) for factor in (0.25, 0.5, 1, 2, 4)],
    "alpha": [0.5, 0.9, 0.99, 0.999, 0.9999],
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, (name, values) in zip(axes, grids.items()):
    found = np.array([errors(**{name: value}) for value in values])
    places = np.arange(len(values))
    ax.fill_between(places, found.min(axis=1), found.max(axis=1), color="#0072B2", alpha=0.2)
    ax.plot(places, found.mean(axis=1), "o-", color="#0072B2")
    ax.set_xticks(places, [str(value) for value in values])
    ax.set(xlabel=name, ylim=(0, None))
axes[0].set_ylabel("error, %")
plt.show()

# %%
# The third value of sigma is what ``"auto"`` takes. On digits fewer neighbours and a narrower kernel do a little better.
# The defaults are one setting for all data, not the best for each.
