import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.parameters import check_graph_parameters, check_parameters

WHOLE = "must be a whole number, at least {}"
SHARE = "must be a number strictly between 0 and 1, such as {}"
REFUSED = {
    "n_neighbors": ([0, -1, 1.5, "5", None, True, np.nan], WHOLE.format(1)),
    "max_iter": ([0, -3, 10.0, None, False], WHOLE.format(1)),
    "graph_neighbors": ([0, -1, 2.0, None, True], WHOLE.format(1)),
    "tree_depth": ([-1, 1.0, None, False], WHOLE.format(0)),
    "graph": (["knn", "Full", "", None, 1, ["full"]], "must be one of 'pruned', 'union', 'full'"),
    "on_unreached": (["ignore", None, 0], "must be one of 'nearest', 'abstain', 'raise'"),
    "alpha": ([0, 1, -0.1, 1.5, np.nan, np.inf, "0.9", None, True], SHARE.format("0.99")),
    "tol": ([0, 1, -1e-4, np.nan, None], SHARE.format("1e-")),
    "sigma": (
        [0, 0.0, -1.0, np.nan, np.inf, "median", None, True, [1.0]],
        "must be a positive, finite number or 'auto'",
    ),
    "sharpness": (
        [0, -1.0, np.nan, np.inf, "x", None, True],
        "must be a positive, finite number or 'auto'",
    ),
    "vote": (["x", "Classes", None, 1], "must be one of 'classes', 'neighbors'"),
    "theta": ([-0.1, 1, np.nan, "0.1", None], "must be at least 0 and below 1, such as 0.1"),
    "verbose": ([-1, 0.5, None], "must be a whole number, at least 0"),
}
ACCEPTED = {
    "n_neighbors": [1, np.int64(7), 10**9],
    "max_iter": [1, np.int32(3)],
    "graph_neighbors": [1, np.int8(100)],
    "tree_depth": [0, 5, np.int64(2)],
    "graph": ["pruned", "union", "full"],
    "on_unreached": ["nearest", "abstain", "raise"],
    "vote": ["classes", "neighbors"],
    "sharpness": ["auto", 1, 1e-9, np.float32(2.5), 1e9],
    "alpha": ["auto", 1e-9, 0.5, np.float32(0.9), 1 - 1e-7],
    "n_jobs": [None, 1, -1, -(10**6), 1024],
    "tol": [1e-12, 0.5, np.float64(1e-3)],
    "sigma": ["auto", 1, 1e-9, np.float32(2.5)],
    "theta": [0, 0.0, 0.999],
    "verbose": [0, 1, 10, True],
}
GRAPH_NAMES = ("graph", "graph_neighbors", "sigma", "tree_depth", "theta")
GRAPH_DEFAULTS = ("pruned", 10, "auto", 2, 0.1)


def pairs(table):
    return [(name, value) for name, values in table.items() for value in values]


def parameters(**changed):
    return ManifoldKNNClassifier().get_params() | changed


@pytest.mark.parametrize("alpha", [1 - 0.9e-7, 1 - 1e-8, 1 - 1e-16])
def test_an_alpha_that_rounding_would_drown_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha=0\.99.* too near to 1.* Use 1 - 1e-7 or less"):
        check_parameters(parameters(alpha=alpha))


@pytest.mark.parametrize("n_jobs", [0, 1025, 10**6, 2.0, "2", True])
def test_a_strange_number_of_jobs_is_refused(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs=.* such as 2, and at most 1024"):
        check_parameters(parameters(n_jobs=n_jobs))


def test_defaults_are_accepted():
    check_parameters(parameters())


@pytest.mark.parametrize(("name", "value"), pairs(ACCEPTED))
def test_accepted(name, value):
    check_parameters(parameters(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [(name, value, advice) for name, (values, advice) in REFUSED.items() for value in values],
)
def test_refused_by_name_and_value_with_advice(name, value, advice):
    with pytest.raises(ValueError) as caught:
        check_parameters(parameters(**{name: value}))
    assert str(caught.value).startswith(f"{name}={value!r} {advice}")


@pytest.mark.parametrize("name", GRAPH_NAMES)
def test_graph_parameters_alone(name):
    check_graph_parameters(*GRAPH_DEFAULTS)
    changed = list(GRAPH_DEFAULTS)
    for value in REFUSED[name][0]:
        changed[GRAPH_NAMES.index(name)] = value
        with pytest.raises(ValueError, match=f"{name}="):
            check_graph_parameters(*changed)
