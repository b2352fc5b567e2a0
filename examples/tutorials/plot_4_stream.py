"""
A stream that drifts
====================

Two arches turn around each other. Six rows at the start are labelled, and none ever after.
A model that learns online follows them.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldknn import ManifoldKNNClassifier

rng = np.random.default_rng(0)


def arches(n, turn):
    """Draw rows of both arches."""
    truth = rng.integers(0, 2, n)
    angle = turn + np.pi * truth + 0.6 * np.pi * rng.random(n)
    X = np.where(truth, 1.6, 1.0)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X + 0.05 * rng.normal(size=X.shape), truth


X, truth = arches(300, 0)
y = np.full(300, -1)
for c in (0, 1):
    y[np.flatnonzero(truth == c)[:3]] = c

# %%
# Three ways
# ----------
# The first never learns again. The second takes rows in. The third also refreshes when that is due.

ways = {"fit once": None, "online": False, 'online, refresh="auto"': "auto"}
models = {name: ManifoldKNNClassifier().fit(X, y) for name in ways}
right = {name: [] for name in ways}
for turn in np.linspace(0, np.pi, 61)[1:]:
    rows, answers = arches(40, turn)
    for name, clf in models.items():
        right[name].append(np.mean(clf.predict(rows) == answers))
        if ways[name] is not None:
            clf.partial_fit(rows, refresh=ways[name])

# %%
# Each chunk is answered before it is learned.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), color, style in zip(
    right.items(), ("#7A7A7A", "#E69F00", "#009E73"), (":", "--", "-")
):
    smooth = np.convolve(values, np.ones(5) / 5, mode="valid")
    ax.plot(100 * smooth, color=color, linestyle=style, linewidth=2, label=name)
ax.set(xlabel="chunk of 40 rows", ylabel="right, % (mean of 5 chunks)", ylim=(0, 103))
ax.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Labels that come late, and labels that were wrong
# -------------------------------------------------
# `set_labels` gives, corrects or withdraws a label. The model walks again, and nobody's neighbours are searched again.

clf = models['online, refresh="auto"']
clf.set_labels([1000], [int(clf.transduction_[1000])])
print("labels:", len(clf.labeled_indices_), "of", len(clf.transduction_), "rows")

# %%
# Rows unlike anything seen
# -------------------------

print(clf.is_off_manifold([[0.0, 0.0], [3.0, 3.0]]))
