import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.parameters import check_class_prior, check_graph_parameters, check_parameters

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
    "alpha": [1e-9, 0.5, np.float32(0.9), 1 - 1e-9],
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


CODES = np.array([0, -1, 1, 1, -1, 2, 1])
CLASSES = np.array(["a", "b", "c"])


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ("labeled", [0.2, 0.6, 0.2]),
        ([1, 2, 5], [0.125, 0.25, 0.625]),
        ((0.2, 0.3, 0.5), [0.2, 0.3, 0.5]),
        (np.array([3, 3, 3], dtype=np.int8), [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_class_prior_becomes_shares(prior, expected):
    np.testing.assert_allclose(check_class_prior(prior, CODES, CLASSES), expected, rtol=1e-15)


def test_no_class_prior():
    assert check_class_prior(None, CODES, CLASSES) is None


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("uniform", "class_prior='uniform' must be None, 'labeled' or one number per class"),
        ([0.5, 0.5], "one number for each of the 3 classes"),
        ([0.25] * 4, "one number for each of the 3 classes"),
        ([[1, 1, 1]], "one number for each of the 3 classes"),
        (0.5, "one number for each of the 3 classes"),
        (["a", "b", "c"], "one number for each of the 3 classes"),
        ({"a": 1, "b": 1, "c": 1}, "one number for each of the 3 classes"),
        ([1, 2, 0], "must hold positive, finite numbers"),
        ([1, 2, -3], "must hold positive, finite numbers"),
        ([1, 2, np.nan], "must hold positive, finite numbers"),
        ([1, 2, np.inf], "must hold positive, finite numbers"),
    ],
)
def test_wrong_class_priors(prior, message):
    with pytest.raises(ValueError, match=message):
        check_class_prior(prior, CODES, CLASSES)


def test_a_wrong_class_prior_is_told_the_classes_in_order():
    with pytest.raises(ValueError, match="classes a, b, c, in this order"):
        check_class_prior([1, 2], CODES, CLASSES)
