"""
From no label to a finished set
===============================

Begin with nothing. Let `suggest` choose rows, label them, and see how good the answers are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, find_label_errors, suggest

X, truth = load_digits(return_X_y=True)
X = X / 16

# %%
# The first rows
# --------------
# Without labels, `suggest` names rows that are typical of their region and far from each other.

first = suggest(X, 20)
figure, axes = plt.subplots(2, 10, figsize=(10, 2.4), layout="constrained")
for ax, row in zip(axes.flat, first.rows):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.axis("off")
print("kinds of digits among them:", len(np.unique(truth[first.rows])))

# %%
# Round by round
# --------------
# You would look at each row and type its class. Here the truth plays your part.

y = np.full(len(X), -1)
y[first.rows] = truth[first.rows]
history = []
for _ in range(6):
    clf = ManifoldKNNClassifier().fit(X, y)
    hidden = clf.hidden_labels_
    low, high = hidden.interval()
    true = np.mean((clf.transduction_ == truth)[y == -1])
    history.append((np.sum(y >= 0), hidden.accuracy, low, high, true))
    rows = suggest(clf, 10).rows
    y[rows] = truth[rows]

labels, expected, low, high, true = np.array(history).T
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.fill_between(labels, 100 * low, 100 * high, color="#0072B2", alpha=0.2, label="95 % interval")
ax.plot(labels, 100 * expected, "o-", color="#0072B2", label="expected")
ax.plot(labels, 100 * true, "s--", color="#D55E00", label="true (you would not know)")
ax.set(xlabel="labels", ylabel="right, %")
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# The truth lies above the interval. Suggested rows are the hard ones, so their labels are found again less often than
# others would be. The expectation is meant for rows that were not chosen for being hard.
#
# How good is it really?
# ----------------------
# Label some random rows, and compare. They also show when you can stop.

rng = np.random.default_rng(0)
drawn = rng.choice(np.flatnonzero(y == -1), 40, replace=False)
print(np.sum(clf.transduction_[drawn] == truth[drawn]), "of 40 random rows are right")

# %%
# Look again
# ----------
# Before you finish, see which labels the others contradict.

doubted = find_label_errors(clf)
print(len(doubted), "of", doubted.n_judged, "labels are doubted")

# %%
# The finished set
# ----------------
# Take answers that are sure, and keep the rest for people.

confidence = clf.label_distributions_.max(axis=1)
sure = confidence >= 0.9
print(
    f"sure: {sure.mean():.0%} of the rows, {np.mean((clf.transduction_ == truth)[sure]):.1%} right"
)
print(f"rest: {np.mean((clf.transduction_ == truth)[~sure]):.1%} right")
