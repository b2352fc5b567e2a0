"""
A forest as partner, where distances say little
===============================================

Most columns of this table are noise, so that near rows are near by chance.
A forest finds the columns that matter, and hidden labels show how much it should say.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from manifoldknn import ManifoldKNNClassifier


def errors(seed):
    """Return the errors without partner, of the forest alone, and of both, in percent."""
    X, truth = make_classification(800, 30, n_informative=3, n_redundant=0, n_clusters_per_class=1,
                                   class_sep=1.5, random_state=seed)  # fmt: skip
    rng, y = np.random.default_rng(seed), np.full(800, -1)
    for c in (0, 1):
        y[rng.choice(np.flatnonzero(truth == c), 15, replace=False)] = c
    forest = RandomForestClassifier(200, random_state=0).fit(X[y >= 0], y[y >= 0])
    answers = [
        ManifoldKNNClassifier().fit(X, y).transduction_,
        forest.predict(X),
        ManifoldKNNClassifier(partner="forest").fit(X, y).transduction_,
    ]
    return [100 * np.mean((answer != truth)[y == -1]) for answer in answers]


found = np.mean([errors(seed) for seed in range(3)], axis=0)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.barh(
    ["manifoldknn", "forest alone", "with partner"], found, color=["#7A7A7A", "#E69F00", "#0072B2"]
)
ax.invert_yaxis()
ax.set(xlabel="error, %")
plt.show()
