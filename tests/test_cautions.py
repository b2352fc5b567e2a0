"""Warnings before a fit, each where it belongs and nowhere else."""

import warnings

import numpy as np
import pytest

from manifoldknn.cautions import usable_graph_neighbors, warn_about_labels
from manifoldknn.exceptions import EverythingLabeledWarning, GraphSizeWarning, OneClassWarning
from manifoldknn.labels import encode_labels


def test_more_neighbours_than_rows():
    assert usable_graph_neighbors(9, 10) == 9
    with pytest.warns(GraphSizeWarning, match="only 9 rows: using 8"):
        assert usable_graph_neighbors(9, 9) == 8


def test_labels_that_leave_nothing_to_decide():
    with pytest.warns(OneClassWarning, match="Only the class 3"):
        warn_about_labels(encode_labels([3, -1]), everything=True)
    with pytest.warns(EverythingLabeledWarning):
        warn_about_labels(encode_labels([0, 1]), everything=True)


def test_no_warning_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_labels(encode_labels(np.array([0, 1, -1])), everything=True)
        warn_about_labels(encode_labels([0, 1]), everything=False)  # more rows may follow
