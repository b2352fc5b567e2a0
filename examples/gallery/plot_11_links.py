"""
Pairs you know
==============

Sometimes you know that two rows belong together, but not to which class.
Here six pairs help where three labels per class do not suffice.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.datasets import make_knot
from manifoldknn.plots import plot_classes

X, truth, labeled = make_knot(n_bridges=8, random_state=3)
y = np.full(len(X), -1)
y[labeled] = truth[labeled]

rng = np.random.default_rng(0)
free = [np.setdiff1d(np.flatnonzero(truth == c), labeled) for c in (0, 1)]
pairs = np.concatenate([rng.choice(rows, (3, 2), replace=False) for rows in free])

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, links, name in zip(axes, (None, pairs), ("labels only", "with six pairs")):
    answer = ManifoldKNNClassifier().fit(X, y, must_link=links).transduction_
    wrong = np.mean(answer != truth)
    plot_classes(X, answer, labeled, ax=ax, title=f"{name}: {wrong:.1%} wrong")
axes[1].plot(X[pairs, 0].T, X[pairs, 1].T, color="black", linewidth=1)
plt.show()
