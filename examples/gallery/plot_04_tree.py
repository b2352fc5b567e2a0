"""
The strengthened tree around labels
===================================

Links near a labelled row become a little stronger, less so with each level.
The picture shows by how much, drawn from the weights of both graphs.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from manifoldknn import constrained_graph
from manifoldknn.datasets import make_two_circles

X, truth, labeled = make_two_circles(random_state=0)
y = np.full(len(X), -1)
y[labeled] = truth[labeled]

with_tree = constrained_graph(X, y, tree_depth=2, theta=0.5).tocoo()
without = constrained_graph(X, y, tree_depth=0).tocsr()
i, j = with_tree.row, with_tree.col
gain = with_tree.data / np.asarray(without[i, j]).ravel() - 1

figure, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
ax.scatter(*X.T, s=4, color="#999999")
stronger = gain > 1e-6
lines = LineCollection(np.stack([X[i], X[j]], axis=1)[stronger], cmap="plasma", linewidths=2)
lines.set_array(100 * gain[stronger])
ax.add_collection(lines)
ax.scatter(*X[labeled].T, s=80, color="black", marker="*")
ax.set(title="Links that the tree strengthens (theta = 0.5)", xticks=[], yticks=[], aspect="equal")
figure.colorbar(lines, label="stronger by, %")
plt.show()
