"""What else people use where little is labelled, on the labels that ``draws.py`` draws.

    MANIFOLDKNN_DATA=... python benchmarks/others.py        some three minutes

Error in percent of unlabelled rows, seeds 0 to 4, with draws r3 and r10. Features are those of
``draws.py``; an embedding of MNIST by SimCLR has rows of length one. Logistic regression learns
from labelled rows, their columns standardised by all rows; self-training from all rows, with it
inside. Both have scikit-learn's defaults, but enough iterations. "Best C" is the lowest error of
five regularisations, in every draw: nobody could choose as well. UMAP sees all rows once, without
labels, with its defaults: two columns, where the nearest labelled row votes, or the nearest five.
On the embedding, LabelSpreading and Poisson are those of ``manifoldknn reproduce draws``, which has
them on the other sets. Goes to ``results/others.csv``.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
from draws import SEEDS, Problem, draw, load
from machine import commit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize, scale
from sklearn.semi_supervised import SelfTrainingClassifier
from umap import UMAP

from manifoldknn.reproduction import methods, problems

RESULTS = Path(__file__).with_name("results")
SETS = ("usps", "segmentation", "banknote", "pendigits", "multifeature", "satlog")
EMBEDDING = "mnist_simclr10k"
GRAPHS = ("LabelSpreading, its defaults", "LabelSpreading, α = 0.99", "Poisson")
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)


class Embedded(Problem):
    """Rows of length one, whose neighbours are searched in every fit."""

    def __init__(self, name):
        X, self.y = load(name)
        self.X, self.near = normalize(X), "auto"
        self.linked = problems.Problem(self.X, self.y)


def errors(problem, standard, flat, rows):
    """Yield methods and their errors with labels for these rows alone."""
    y, rest = problem.y, np.setdiff1d(np.arange(len(problem.y)), rows)
    hidden = np.full(len(y), -1)
    hidden[rows] = y[rows]
    regression = LogisticRegression(max_iter=1000)
    for method, X, learner, known in (
        ("logistic regression", standard, regression, rows),
        ("self-training", standard, SelfTrainingClassifier(regression), slice(None)),
        ("UMAP, nearest", flat, KNeighborsClassifier(1), rows),
        ("UMAP, nearest 5", flat, KNeighborsClassifier(5), rows),
    ):
        found = learner.fit(X[known], hidden[known]).predict(X[rest])
        yield method, 100 * (found != y[rest]).mean()
    tried = [LogisticRegression(C=C, max_iter=1000) for C in STRENGTHS]
    found = [one.fit(standard[rows], y[rows]).predict(standard[rest]) for one in tried]
    yield "logistic regression, best C", 100 * min((one != y[rest]).mean() for one in found)
    if isinstance(problem, Embedded):
        for method in GRAPHS:
            yield method, methods.error_of(method, problem.linked, hidden, k=3, seed=0)
    yield "manifoldknn", problem.measured(rows)[0]


def measured(name):
    """Yield a line per draw and method."""
    problem = Embedded(name) if name == EMBEDDING else Problem(name)
    standard = scale(problem.X)
    flat = UMAP(random_state=0, n_jobs=1).fit_transform(problem.X)
    for protocol in ("r3", "r10"):
        for seed in range(SEEDS):
            for method, error in errors(problem, standard, flat, draw(problem.y, protocol, seed)):
                yield name, protocol, method, seed, round(float(error), 4)


if __name__ == "__main__":
    code, lines = commit(), []
    warnings.simplefilter("ignore")  # three labels per class are what is measured
    for name in (*SETS, EMBEDDING):
        lines += [(*line, code) for line in measured(name)]
        print(f"{name} is measured", flush=True)
    with (RESULTS / "others.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("data", "protocol", "method", "seed", "error", "commit"), *lines])
