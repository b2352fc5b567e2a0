"""
The walk: how far a label reaches
=================================

Walkers start from one label and tire as they go.
A short life keeps them near; a long one lets them spread along the curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldknn import constrained_graph, walk_weights
from manifoldknn.datasets import make_arch_and_s

X, truth, labeled = make_arch_and_s(random_state=0)
y = np.full(len(X), -1)
y[labeled] = truth[labeled]
W = constrained_graph(X, y)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, alpha in zip(axes, (0.5, 0.9, 0.99)):
    weights = walk_weights(W, labeled, alpha)[:, 0]
    log = np.log10(np.maximum(weights / weights.max(), 1e-8))
    dots = ax.scatter(*X.T, c=log, s=9, cmap="viridis", vmin=-8, vmax=0)
    ax.scatter(*X[labeled[:1]].T, s=90, facecolor="none", edgecolor="black", linewidth=2)
    ax.set(title=f"alpha = {alpha}", xticks=[], yticks=[], aspect="equal")
figure.colorbar(dots, ax=axes, label="weight of the ringed label, power of ten")
plt.show()

# %%
# The other curve stays dark though it passes close by: no link leads there. Far rows of the same curve are bright, since
# labels of one class are tied together.
