"""
Find wrong labels
=================

A tenth of one hundred labels is replaced by wrong ones.
`find_label_errors` lists those that the others contradict.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, find_label_errors

X, truth = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
rows = rng.choice(len(X), 100, replace=False)
y = np.full(len(X), -1)
y[rows] = truth[rows]
wrong = rows[:10]
y[wrong] = (truth[wrong] + rng.integers(1, 10, 10)) % 10

found = find_label_errors(ManifoldKNNClassifier().fit(X / 16, y))
print(len(found), "labels are doubted;", np.isin(found.rows, wrong).sum(), "of them are wrong.")

# %%
# The most suspicious ones, with the label that was given and the one that is suggested.

figure, axes = plt.subplots(2, 4, figsize=(8, 4.8), layout="constrained")
for ax in axes.flat:
    ax.axis("off")
for ax, row, given, better in zip(axes.flat, found.rows, found.given, found.suggested):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{given} → {better}" + ("" if row in wrong else " (was right)"), fontsize=11)
plt.show()
