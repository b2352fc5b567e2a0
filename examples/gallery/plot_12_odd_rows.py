"""
Rows unlike anything seen
=========================

`score_samples` tells how far a row lies off the surface of its neighbours.
`is_off_manifold` marks rows that are odder than 99 % of the fitted ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.datasets import make_two_circles

X, truth, labeled = make_two_circles(random_state=0)
y = np.full(len(X), -1)
y[labeled] = truth[labeled]
clf = ManifoldKNNClassifier().fit(X, y)

side = np.linspace(X.min() - 0.5, X.max() + 0.5, 90)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
odd = clf.is_off_manifold(grid).reshape(90, 90)

figure, ax = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
ax.contourf(side, side, odd, levels=[-0.5, 0.5, 1.5], colors=["#FFFFFF", "#F3D9C6"])
ax.scatter(*X.T, s=7, c=np.array(["#0072B2", "#009E73"])[truth])
ax.set(title="Shaded: off the manifold", xticks=[], yticks=[], aspect="equal")
plt.show()
