"""scikit-learn's own checks of an estimator, on each of the three graphs, and with a partner."""

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from manifoldknn import ManifoldKNNClassifier

EXPECTED_FAILURES = {
    "check_classifiers_classes": "-1 is one of its classes; here it marks unlabelled rows"
}
# The checks label every row, sometimes with a single class, and fit very few rows.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::manifoldknn.exceptions.{name}")
    for name in ("EverythingLabeledWarning", "OneClassWarning", "GraphSizeWarning")
]


@parametrize_with_checks(
    [
        *(ManifoldKNNClassifier(graph=graph) for graph in ("pruned", "union", "full")),
        ManifoldKNNClassifier(partner=RandomForestClassifier(5, random_state=0)),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_sklearn_check(estimator, check):
    check(estimator)


def test_the_expected_failure_is_only_about_the_marker():
    """Where -1 is an ordinary class, the one check left out passes as well."""
    check_classifiers_classes("ManifoldKNNClassifier", ManifoldKNNClassifier(unlabeled=None))
