"""The supervised classifiers of the paper, from scikit-learn, with what to tune in each."""

from dataclasses import dataclass
from typing import Any

from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from manifoldknn.baselines.kernel_nb import KernelNaiveBayes
from manifoldknn.baselines.weighted import WeightedKNNClassifier


@dataclass(frozen=True)
class Baseline:
    """A classifier and the values to try."""

    estimator: Any  # not fitted, with its usual parameters
    # By parameter, the usual value first: of equal ones the first wins. Empty: nothing is tuned.
    grid: dict[str, list[Any]]


SUPERVISED = ("knn", "weighted", "svm", "ann", "nb", "dt")


def supervised(name: str, *, n_neighbors: int = 5, random_state: int = 0) -> Baseline:
    """Return a classifier that learns from labelled rows only, and its grid.

    Parameters
    ----------
    name : {"knn", "weighted", "svm", "ann", "nb", "dt"}
        kNN; weighted kNN; a support vector machine with radial basis functions; a network with
        one hidden layer; naive Bayes with kernel densities; a tree pruned by validation
        error (cost-complexity pruning, the price of a leaf chosen by cross-validation).
    n_neighbors : int, default=5
        k of the first two.
    random_state : int, default=0
        Seed of those that need one.

    Returns
    -------
    Baseline
        Estimator and grid, for `manifoldknn.model_selection.tuned`.

    Examples
    --------
    >>> from manifoldknn.baselines import supervised
    >>> supervised("dt").grid
    {'ccp_alpha': [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]}
    """
    if name not in SUPERVISED:
        raise ValueError(f"name={name!r} must be one of {', '.join(map(repr, SUPERVISED))}.")
    if name == "knn":
        return Baseline(KNeighborsClassifier(n_neighbors), {})
    if name == "weighted":
        return Baseline(WeightedKNNClassifier(n_neighbors), {})
    if name == "svm":
        widths = ["scale", 0.01, 0.1, 1.0, 10.0]
        grid: dict[str, list[Any]] = {"C": [1.0, 0.1, 10.0, 100.0, 1000.0], "gamma": widths}
        return Baseline(SVC(kernel="rbf", random_state=random_state), grid)
    if name == "ann":
        # L-BFGS, which uses the same gradients: with some tens of rows it is the quickest and ends.
        network = MLPClassifier((20,), solver="lbfgs", max_iter=2000, random_state=random_state)
        return Baseline(network, {"hidden_layer_sizes": [(20,), (5,), (10,), (40,)]})
    if name == "nb":
        scales = [1.0, 0.25, 0.5, 2.0]
        grid = {"bandwidth": ["shared", "normal"], "bandwidth_scale": scales}
        return Baseline(KernelNaiveBayes(), grid)
    # How dear a leaf is, in impurity: the larger, the more branches are merged.
    leaves = [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    return Baseline(DecisionTreeClassifier(random_state=random_state), {"ccp_alpha": leaves})
