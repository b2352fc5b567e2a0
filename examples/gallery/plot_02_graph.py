"""
The graph under the answers
===========================

Each row is linked to its mutual nearest neighbours and to its three nearest.
A spanning tree keeps all rows in one piece. Labelled rows of one class are tied together.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldknn import ManifoldKNNClassifier, inspect
from manifoldknn.datasets import make_two_circles
from manifoldknn.plots import plot_graph

X, truth, labeled = make_two_circles(random_state=0)
y = np.full(len(X), -1)
y[labeled] = truth[labeled]
clf = ManifoldKNNClassifier().fit(X, y)

figure, ax = plt.subplots(figsize=(5.6, 5.6), layout="constrained")
plot_graph(clf, ax=ax, title="Links of the graph")

# %%
# `inspect` says whether the graph is healthy.

health = inspect(clf)
print(health.n_edges, "edges,", health.n_components, "part")
print("\n".join(health.advice) or "Nothing to advise.")
