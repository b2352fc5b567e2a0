"""Random lives of a model: whatever is done to it, in whatever order, it stays whole."""

import copy
import io
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sklearn.neighbors import NearestNeighbors

from manifoldknn import ManifoldKNNClassifier, persist

CLASSES = (0, 1, 2, 3)
BAD_CHUNKS = {
    "not finite": (np.array([[np.nan, 0.0], [1.0, 1.0]]), [0, 1]),
    "too wide": (np.zeros((2, 3)), [0, 1]),
    "other labels": (np.zeros((2, 2)), ["a", "b"]),
    "label missing": (np.zeros((2, 2)), [0]),
    "fraction": (np.zeros((2, 2)), [0.5, 1.0]),
    "huge": (np.full((2, 2), 1e200), [0, -1]),
    "empty": (np.zeros((0, 2)), []),
}


def saved_and_loaded(clf):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mknn"
        persist.save(clf, path)
        return persist.load(path)


WAYS = {
    "pickle": lambda clf: pickle.loads(pickle.dumps(clf)),
    "deepcopy": copy.deepcopy,
    "file": saved_and_loaded,
}


class StatePickler(pickle.Pickler):
    """Leaves out scikit-learn's search, whose trees count the queries they have answered."""

    def persistent_id(self, obj):
        return "search" if isinstance(obj, NearestNeighbors) else None


def state(clf):
    stream = io.BytesIO()
    StatePickler(stream).dump(clf)
    return stream.getvalue()


def answers(clf, X):
    """What a user can read off a model."""
    rows = X[::2] + 0.1
    yield from (clf.classes_, clf.transduction_, clf.label_distributions_, clf.unreached_)
    yield from (clf.labeled_indices_, clf.predict(rows), clf.predict_proba(rows))
    yield from (*clf.kneighbors(), *clf.kneighbors(rows), clf.score_samples(rows))


def drawn_rows(data, least=1):
    """Rows around three places; some repeat an earlier one."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    n = data.draw(st.integers(least, 25), label="rows")
    X = rng.normal(size=(n, 2)) + 3.0 * rng.integers(0, 3, n)[:, None]
    if n > 3 and data.draw(st.booleans(), label="repeated"):
        X[-1] = X[0]
    return np.round(X) if data.draw(st.booleans(), label="on a grid, with many ties") else X


def drawn_labels(data, n, share):
    some = st.sampled_from(CLASSES)
    return np.array([data.draw(some) if data.draw(share) else -1 for _ in range(n)])


class Life(RuleBasedStateMachine):
    """One model, and beside it all rows and labels that it was ever given."""

    @initialize(
        graph=st.sampled_from(["pruned", "union", "full"]),
        metric=st.sampled_from(["euclidean", "manhattan"]),
        n_neighbors=st.sampled_from([1, 3, 50]),
        on_unreached=st.sampled_from(["nearest", "abstain"]),
        class_prior=st.sampled_from(["equal", "labeled"]),
        vote=st.sampled_from(["classes", "neighbors"]),
        stream=st.booleans(),
        data=st.data(),
    )
    def be_born(self, data, stream, **parameters):
        """Fit for the first time; partial_fit must be no different."""
        self.clf = ManifoldKNNClassifier(graph_neighbors=4, **parameters)
        self.learn(self.clf.partial_fit if stream else self.clf.fit, data)
        self.compare_with_a_new_fit()

    @rule(data=st.data())
    def fit_again(self, data):
        self.learn(self.clf.fit, data)

    def learn(self, method, data):
        X = drawn_rows(data, least=6)
        y = drawn_labels(data, len(X), st.booleans())
        y[:2] = 0, 1
        assert method(X, y) is self.clf
        self.X, self.y = X, y

    @rule(data=st.data(), refresh=st.sampled_from(["auto", True, False]), given=st.booleans())
    def take_in_unlabelled(self, data, refresh, given):
        X = drawn_rows(data)
        nobody = np.full(len(X), -1)
        expected = self.clf.predict(X)
        before = len(self.X)
        self.clf.partial_fit(X, nobody if given else None, refresh=refresh)
        self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, nobody])
        if self.clf.fitted_.arrivals is not None:  # no walk since: they got what predict said
            np.testing.assert_array_equal(self.clf.transduction_[before:], expected)

    @rule(data=st.data())
    def take_in_labelled(self, data):
        X = drawn_rows(data)
        y = drawn_labels(data, len(X), st.booleans())
        y[0] = data.draw(st.sampled_from(CLASSES))
        self.clf.partial_fit(X, y)
        self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])
        self.compare_with_a_new_fit()

    @rule(data=st.data())
    def label(self, data):
        """Give, correct and withdraw labels."""
        n = data.draw(st.integers(1, 4))
        rows = data.draw(
            st.lists(st.integers(0, len(self.X) - 1), min_size=1, max_size=n, unique=True)
        )
        labels = [data.draw(st.sampled_from((-1, *CLASSES))) for _ in rows]
        y = self.y.copy()
        y[rows] = labels
        if (y >= 0).any():
            self.clf.set_labels(rows, labels)
            self.y = y
            self.compare_with_a_new_fit()
        else:
            before = state(self.clf)
            with pytest.raises(ValueError, match="no labelled sample"):
                self.clf.set_labels(rows, labels)
            assert state(self.clf) == before

    @rule()
    def refresh(self):
        self.clf.refresh()
        self.compare_with_a_new_fit()

    @rule(data=st.data())
    def read(self, data):
        """Questions do not change the model."""
        X = drawn_rows(data)
        before = state(self.clf)
        shares = self.clf.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        assert set(self.clf.predict(X)) <= {-1, *self.clf.classes_}
        weights, rows = self.clf.kneighbors(X)
        assert np.isin(rows, self.clf.labeled_indices_).all()
        assert (np.diff(weights, axis=1) <= 0).all()
        assert (self.clf.score_samples(X) <= 0).all()
        assert self.clf.is_off_manifold(X).shape == (len(X),)
        assert self.clf.reconstruction_error().residuals.min() >= 0
        assert state(self.clf) == before

    @rule(what=st.sampled_from(sorted(BAD_CHUNKS)))
    def fail(self, what):
        before = state(self.clf)
        with pytest.raises(ValueError):
            self.clf.partial_fit(*BAD_CHUNKS[what])
        assert state(self.clf) == before

    @rule(data=st.data())
    def be_interrupted(self, data):
        """Whatever ends a walk leaves no trace, and the next chunk finds everything in order."""
        before, usual = state(self.clf), self.clf._walk_from_labels
        self.clf._walk_from_labels = interrupted
        kept = dict(self.clf.__dict__)
        X = drawn_rows(data)
        with pytest.raises(KeyboardInterrupt):
            self.clf.partial_fit(X, np.zeros(len(X), dtype=int))
        with pytest.raises(KeyboardInterrupt):
            self.clf.partial_fit(X, refresh=True)
        assert all(self.clf.__dict__[name] is kept[name] for name in kept)
        del self.clf._walk_from_labels
        assert self.clf._walk_from_labels == usual
        assert state(self.clf) == before

    @rule(way=st.sampled_from(sorted(WAYS)))
    def move(self, way):
        """Written down and read again, it is the same model."""
        moved = WAYS[way](self.clf)
        for mine, theirs in zip(answers(self.clf, self.X), answers(moved, self.X)):
            np.testing.assert_array_equal(mine, theirs)
        self.clf = moved

    @invariant()
    def holds_together(self):
        clf, n = self.clf, len(self.X)
        labeled = np.flatnonzero(self.y >= 0)
        np.testing.assert_array_equal(clf.classes_, np.unique(self.y[labeled]))
        np.testing.assert_array_equal(clf.labeled_indices_, labeled)
        assert clf.transduction_.shape == clf.unreached_.shape == (n,)
        assert clf.label_distributions_.shape == (n, len(clf.classes_))
        np.testing.assert_array_equal(clf.transduction_[labeled], self.y[labeled])
        np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1.0)
        assert (clf.label_distributions_ >= 0).all()
        assert set(clf.transduction_) <= {-1, *clf.classes_}
        np.testing.assert_array_equal(clf.fitted_.index.X, self.X)
        known = clf.fitted_.walk.similarities
        columns = clf.classes_ if clf.vote == "classes" else labeled
        assert known.logs.shape == (n, len(columns))
        assert known.log_scale.shape == (n,)
        assert (known.logs.max(axis=1) == np.where(known.unreached, -np.inf, 0.0)).all()

    def compare_with_a_new_fit(self):
        new = ManifoldKNNClassifier(**self.clf.get_params()).fit(self.X, self.y)
        assert self.clf.sigma_ == new.sigma_
        np.testing.assert_array_equal(self.clf.transduction_, new.transduction_)
        np.testing.assert_array_equal(self.clf.unreached_, new.unreached_)
        np.testing.assert_allclose(
            self.clf.label_distributions_, new.label_distributions_, atol=1e-12
        )
        np.testing.assert_allclose(self.clf.sharpness_ or 0.0, new.sharpness_ or 0.0, rtol=1e-9)
        for mine, theirs in zip(self.clf.kneighbors(), new.kneighbors()):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def interrupted(*_, **__):
    raise KeyboardInterrupt


TestLife = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")(
    Life.TestCase
)
TestLife.settings = settings(
    max_examples=40,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
