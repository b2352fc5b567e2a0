"""
New rows, without learning again
================================

A new row is written as a mixture of its nearest rows.
It gets the same mixture of their answers: nothing is learned again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import NearestNeighbors

from manifoldknn import ManifoldKNNClassifier, simplex_weights
from manifoldknn.datasets import make_arch_and_s

X, truth, labeled = make_arch_and_s(random_state=0)
y = np.full(len(X), -1)
y[labeled] = truth[labeled]
clf = ManifoldKNNClassifier().fit(X, y)

new = np.array([[-0.72, 0.72], [0.30, -0.10]])
near = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(new, return_distance=False)
weights = simplex_weights(new, X[near])

# %%
# Only a few neighbours get a weight. The arrows end at the reconstruction.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, point, rows, share in zip(axes, new, near, weights):
    ax.scatter(*X.T, s=8, color="#C8C8C8")
    ax.scatter(*X[rows].T, s=30 + 400 * share, color="#0072B2", alpha=0.7)
    ax.scatter(*point, marker="x", s=90, color="#D55E00", linewidth=3)
    made = share @ X[rows]
    ax.annotate("", made, point, arrowprops={"arrowstyle": "->", "color": "#D55E00"})
    span = 3 * np.abs(X[rows] - point).max() / 2
    ax.set(xlim=(point[0] - span, point[0] + span), ylim=(point[1] - span, point[1] + span))
    ax.set(title=f"class {clf.predict([point])[0]}, weights up to {share.max():.2f}")
plt.show()
