"""What of the neighbours need not be searched again."""

from dataclasses import replace

import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.model.geometry import known_geometry, list_settings, reopened, settings_changed


@pytest.fixture
def clf():
    X = np.random.default_rng(0).normal(size=(60, 2))
    return ManifoldKNNClassifier().fit(X, np.where(np.arange(60) < 6, np.arange(60) % 2, -1))


def test_nothing_is_searched_while_the_rows_are_the_same(clf):
    for search in (True, False):
        known = known_geometry(clf, search=search)
        assert known.lists is clf.fitted_.lists
        assert known.edges is clf.fitted_.edges


@pytest.mark.parametrize("changed", [{"graph_neighbors": 5}, {"metric": "l1"}, {"graph": "union"}])
def test_other_parameters_need_another_search(clf, changed):
    assert not settings_changed(clf)
    clf.set_params(**changed)
    assert settings_changed(clf)
    assert known_geometry(clf, search=False) is None


def test_parameters_of_the_vote_do_not(clf):
    before = list_settings(clf)
    assert list_settings(clf.set_params(vote="neighbors", sigma=1.0, tol=0.1)) == before


def test_lists_grow_to_what_a_search_over_all_would_find(clf):
    new = np.random.default_rng(1).normal(size=(20, 2))
    clf.fitted_ = replace(clf.fitted_, index=clf.fitted_.index.appended(new))
    known = known_geometry(clf, search=True)
    whole = reopened(clf, clf.fitted_.index.X)
    expected = whole.among_samples(known.lists.indices.shape[1])
    np.testing.assert_array_equal(known.lists.indices, expected.indices)
    np.testing.assert_allclose(known.lists.distances, expected.distances)
    assert known.edges is None
    assert known.index.n_late == 0
