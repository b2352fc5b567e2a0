"""
Near along the shape of the data
================================

Two curves hook into each other, with three labels each.
Plain nearest neighbours measure through the air; ``manifoldknn`` measures along the curves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.plots import plot_classes

X, truth, labeled = make_arch_and_s(random_state=0)
y = np.full(len(X), -1)
y[labeled] = truth[labeled]

plain = KNeighborsClassifier(1).fit(X[labeled], truth[labeled]).predict(X)
ours = ManifoldKNNClassifier().fit(X, y).transduction_

# %%
# Large dots are the labels.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, answer, name in zip(axes, (plain, ours), ("nearest label", "manifoldknn")):
    wrong = np.mean(answer != truth)
    plot_classes(X, answer, labeled, ax=ax, title=f"{name}: {wrong:.0%} wrong")
