"""Learning from a stream: against a new fit on everything, and in the hands of its users."""

import copy
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.exceptions import OneClassWarning, UnreachedError
from manifoldknn.model.stream import refresh_is_due
from manifoldknn.search.inverted import InvertedIndex
from strategies import forced

GRAPHS = ("pruned", "union", "full")


def clouds(n=120, d=3, n_classes=3, per_class=3, seed=0, gap=3.0):
    """Overlapping clouds, y with a few labels, and the truth."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + gap * np.eye(max(d, n_classes))[truth, :d]
    y = np.where(np.arange(n) < per_class * n_classes, truth, -1)
    return X, y, truth


def in_chunks(clf, X, y, sizes, **options):
    start = 0
    for size in sizes:
        clf.partial_fit(X[start : start + size], y[start : start + size], **options)
        start += size
    clf.partial_fit(X[start:], y[start:], **options)
    return clf


def assert_same_model(clf, other, rtol=1e-12):
    """Same answers; weights, row by row, to the last digits."""
    np.testing.assert_array_equal(clf.classes_, other.classes_)
    np.testing.assert_array_equal(clf.transduction_, other.transduction_)
    np.testing.assert_array_equal(clf.labeled_indices_, other.labeled_indices_)
    np.testing.assert_allclose(clf.label_distributions_, other.label_distributions_, atol=1e-12)
    np.testing.assert_allclose(clf.sharpness_ or 0.0, other.sharpness_ or 0.0, rtol=1e-9)
    for mine, theirs in zip(clf.kneighbors(), other.kneighbors()):
        np.testing.assert_allclose(mine, theirs, rtol=rtol)
    assert clf.sigma_ == other.sigma_


# Refreshed, it is a new fit.


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4).map(lambda s: [30, *s]),
    graph=st.sampled_from(GRAPHS),
    vote=st.sampled_from(["classes", "neighbors"]),
    d=st.sampled_from([2, 12]),
    form=st.sampled_from([np.asarray, sparse.csr_array, np.float32]),
)
def test_refreshed_equals_a_new_fit(sizes, graph, vote, d, form):
    X, y, _ = clouds(n=200, d=d)
    X = form(X)
    make = partial(ManifoldKNNClassifier, vote=vote, graph=graph)
    assert_same_model(
        in_chunks(make(), X, y, sizes, refresh=False).refresh(), make().fit(X, y), rtol=0.0
    )


@pytest.mark.parametrize("graph", GRAPHS)
def test_order_of_chunks_does_not_matter(graph):
    X, y, _ = clouds(n=200)
    parts = [np.arange(40), np.arange(40, 110), np.arange(110, 115), np.arange(115, 200)]
    expected = ManifoldKNNClassifier(graph=graph, tol=1e-6).fit(X, y)
    for order in ([0, 1, 2, 3], [0, 3, 1, 2], [0, 2, 3, 1]):
        clf = ManifoldKNNClassifier(graph=graph, tol=1e-6)
        rows = np.concatenate([parts[i] for i in order])
        for i in order:
            clf.partial_fit(X[parts[i]], y[parts[i]])
        clf.refresh()
        assert clf.sigma_ == pytest.approx(expected.sigma_, rel=1e-12)
        np.testing.assert_array_equal(clf.transduction_, expected.transduction_[rows])
        weights, voters = clf.kneighbors()
        np.testing.assert_allclose(weights, expected.kneighbors()[0][rows], rtol=1e-4)
        np.testing.assert_array_equal(rows[voters], expected.kneighbors()[1][rows])


@pytest.mark.parametrize("engine", ["inverted", NearestNeighbors()])
def test_other_searches(engine):
    """An approximate search is opened anew; then it is that of a new fit."""
    X, y, _ = clouds(n=1500, d=8)
    clf = ManifoldKNNClassifier(neighbors=engine).fit(X[:1200], y[:1200])
    clf.partial_fit(X[1200:], refresh=False)
    assert_same_model(clf.refresh(), ManifoldKNNClassifier(neighbors=engine).fit(X, y))


def test_labels_take_effect_without_a_new_approximate_search(monkeypatch):
    X, y, truth = clouds(n=1500, d=8)
    clf = ManifoldKNNClassifier(neighbors="inverted").fit(X[:1200], y[:1200])
    with monkeypatch.context() as patch:
        patch.setattr(InvertedIndex, "__init__", lambda *_, **__: pytest.fail("opened"))
        clf.partial_fit(X[1200:1300], truth[1200:1300])
        clf.partial_fit(X[1300:], refresh=False)
        clf.set_labels([1400], truth[1400])
    y[1200:1300], y[1400] = truth[1200:1300], truth[1400]
    new = ManifoldKNNClassifier(neighbors="inverted").fit(X, y)
    assert (clf.transduction_ == new.transduction_).mean() > 0.98  # approximate lists differ
    assert_same_model(clf.refresh(), new)


def test_neighbours_brought_along():
    X, y, truth = clouds(n=150)
    distances, indices = NearestNeighbors(n_neighbors=31).fit(X[:100]).kneighbors(X[:100])
    clf = ManifoldKNNClassifier(neighbors=(indices, distances)).fit(X[:100], y[:100])
    clf.partial_fit(X[100:120], refresh=False).partial_fit(X[120:], truth[120:]).refresh()
    y[120:] = truth[120:]
    new = ManifoldKNNClassifier().fit(X, y)
    np.testing.assert_array_equal(clf.transduction_, new.transduction_)
    np.testing.assert_allclose(clf.label_distributions_, new.label_distributions_, atol=1e-6)


def test_exact_turns_approximate_where_a_new_fit_would():
    X, y, _ = clouds(n=400)
    clf = ManifoldKNNClassifier().fit(X[:300], y[:300]).partial_fit(X[300:], refresh=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manifoldknn.device.steps.automatic_engine", lambda *_: "inverted")
        patch.setattr("manifoldknn.search.engines.automatic_engine", lambda *_: "inverted")
        assert isinstance(clf.refresh().fitted_.index.first, InvertedIndex)


# Rows without labels.


@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_unlabelled_rows_get_what_predict_says_and_join(vote):
    X, y, _ = clouds(n=160)
    clf = ManifoldKNNClassifier(vote=vote).fit(X[:100], y[:100])
    for start in range(100, 160, 15):
        part = slice(start, start + 15)
        answers, shares = clf.predict(X[part]), clf.predict_proba(X[part])
        weights, voters = clf.kneighbors(X[part])
        clf.partial_fit(X[part], refresh=False)
        np.testing.assert_array_equal(clf.transduction_[part], answers)
        np.testing.assert_array_equal(clf.label_distributions_[part], shares)
        np.testing.assert_allclose(clf.kneighbors()[0][part], weights, rtol=1e-6)
        np.testing.assert_array_equal(clf.kneighbors()[1][part], voters)
        np.testing.assert_array_equal(clf.predict(X[part]), answers)  # each finds itself
    assert len(clf.transduction_) == len(clf.unreached_) == 160


def test_later_rows_lean_on_earlier_ones():
    """A chain of rows leads away from the model; only those who came before can answer."""
    X, y, _ = clouds(n=60)
    clf = ManifoldKNNClassifier(graph_neighbors=3).fit(X, y)
    end = X[clf.labeled_indices_[0]]
    chain = end + np.linspace(0.1, 30, 90)[:, None] * np.array([-1.0, -1.0, -1.0])
    for row in chain:
        clf.partial_fit(row[None], refresh=False)
    near = clf.fitted_.arrivals.indices.values[-1]
    assert (near >= 60 + 80).all()
    assert (clf.transduction_[60:] == clf.transduction_[60]).all()
    assert clf.predict(chain[-1:] + 0.1)[0] == clf.transduction_[60]


def test_a_long_stream_without_refresh_opens_its_search_anew():
    X, y, _ = clouds(n=2500)
    clf = ManifoldKNNClassifier().fit(X[:200], y[:200])
    for start in range(200, 2500, 100):
        clf.partial_fit(X[start : start + 100], refresh=False)
    assert clf.fitted_.index.first.n_samples > 200
    assert clf.fitted_.index.n_samples == 2500
    assert clf.fitted_.arrivals.n_walked == 200
    clf.set_labels([2400], [0])  # searches anew, and all rows are in the graph
    y[2400] = 0
    assert_same_model(clf, ManifoldKNNClassifier().fit(X, y))


# Labels.


@pytest.mark.parametrize("graph", GRAPHS)
def test_labels_take_effect_at_once_on_everything(graph):
    X, y, truth = clouds(n=150)
    clf = ManifoldKNNClassifier(graph=graph).fit(X[:100], y[:100])
    clf.partial_fit(X[100:120], refresh=False)
    labels = np.where(np.arange(30) % 3 == 0, truth[120:], -1)
    clf.partial_fit(X[120:], labels, refresh=False)
    y[120:] = labels
    assert_same_model(clf, ManifoldKNNClassifier(graph=graph).fit(X, y))


def test_giving_correcting_and_withdrawing_labels():
    X, y, truth = clouds()
    clf, withdrawn = ManifoldKNNClassifier().fit(X, y), [-1, None]
    for rows, labels in (
        ([40, 50], truth[[40, 50]]),  # give
        ([40], [(truth[40] + 1) % 3]),  # correct
        ([0, 50], withdrawn),
        (np.arange(len(X)) % 30 == 7, 2),  # one label for all of a mask
        (3, 1),
    ):
        clf.set_labels(rows, labels)
        y[rows] = [-1, -1] if labels is withdrawn else labels
        assert_same_model(clf, ManifoldKNNClassifier().fit(X, y))


def test_labels_of_known_rows_search_nothing(monkeypatch):
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X, y)
    monkeypatch.setattr(
        "manifoldknn.device.steps.open_index", lambda *_, **__: pytest.fail("search")
    )
    monkeypatch.setattr(
        "manifoldknn.graph.constrained.selected_edges", lambda *_, **__: pytest.fail("edges")
    )
    clf.set_labels([70], [1])
    assert clf.transduction_[70] == 1


@pytest.mark.parametrize("way", ["partial_fit", "set_labels"])
def test_a_class_never_seen_before(way):
    X, _, truth = clouds()
    names = np.array(["pear", "apple", "fig"])[truth]
    y = np.array([n if i < 9 and n != "fig" else "" for i, n in enumerate(names)])
    clf = ManifoldKNNClassifier().fit(X[:90], y[:90])
    assert clf.classes_.tolist() == ["apple", "pear"]
    figs = np.flatnonzero(truth == 2)
    if way == "set_labels":
        clf.partial_fit(X[90:])
        y[figs[:3]] = "fig"
        clf.set_labels(figs[:3], ["fig"] * 3)
    else:
        y[90:] = names[90:]
        clf.partial_fit(X[90:], names[90:])
    assert clf.classes_.tolist() == ["apple", "fig", "pear"]
    assert_same_model(clf, ManifoldKNNClassifier().fit(X, y))
    assert (clf.predict(X[figs]) == "fig").mean() > 0.8


def test_a_class_that_loses_its_last_label_is_forgotten():
    X, y, _ = clouds(per_class=1)
    clf = ManifoldKNNClassifier().fit(X, y).set_labels([2], [-1])
    assert clf.classes_.tolist() == [0, 1]
    with pytest.warns(OneClassWarning):
        clf.set_labels([1], [-1])
    with pytest.raises(ValueError, match="leaves no labelled sample"):
        clf.set_labels([0], [-1])
    assert clf.classes_.tolist() == [0]


def test_floats_that_missing_values_made_stay_integers():
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X[:100], y[:100])
    clf.partial_fit(X[100:], pd.Series([np.nan] * 19 + [7.0]))
    assert clf.classes_.tolist() == [0, 1, 2, 7]
    assert clf.classes_.dtype.kind == "i"


# When to refresh.


def test_auto_refreshes_when_the_model_has_grown_by_a_fifth():
    X, y, _ = clouds(n=160)
    clf = ManifoldKNNClassifier().fit(X[:100], y[:100])
    clf.partial_fit(X[100:119])
    assert len(clf.fitted_.arrivals) == 19
    clf.partial_fit(X[119:120])
    assert clf.fitted_.arrivals is None
    assert_same_model(clf, ManifoldKNNClassifier().fit(X[:120], y[:120]))


def test_auto_refreshes_when_the_stream_has_moved():
    """Rows from elsewhere: the same number from here would not do."""
    X, y, _ = clouds(n=1100)
    away = np.random.default_rng(1).normal(size=(30, 3)) + np.array([0.0, 0.0, 40.0])
    here = ManifoldKNNClassifier().fit(X[:1000], y[:1000]).partial_fit(X[1000:1030])
    assert len(here.fitted_.arrivals) == 30
    assert here.fitted_.arrivals.off_manifold.values.mean() < 0.1
    there = ManifoldKNNClassifier().fit(X[:1000], y[:1000]).partial_fit(away)
    assert there.fitted_.arrivals is None
    assert len(there.fitted_.graph.must_link) == 1030


@pytest.mark.parametrize(
    ("walked", "arrived", "odd", "due"),
    [
        (100, 19, 0, False),
        (100, 20, 0, True),
        (1000, 99, 10, True),
        (1000, 100, 10, False),  # no more than a tenth
        (1000, 20, 9, False),  # fewer than ten
        (5000, 100, 49, False),  # less than a hundredth of the model
        (5000, 100, 50, True),
        (3, 0, 0, False),
    ],
)
def test_the_rule(walked, arrived, odd, due):
    assert refresh_is_due(walked, arrived, odd) is due


def test_refresh_false_never_walks(monkeypatch):
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X[:60], y[:60])
    monkeypatch.setattr(clf, "_walk_from_labels", lambda *_: pytest.fail("walked"))
    clf.partial_fit(X[60:], refresh=False)
    assert len(clf.transduction_) == 120


def test_a_boolean_of_numpy_is_a_boolean():
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X[:110], y[:110])
    assert clf.partial_fit(X[110:115], refresh=np.False_).n_walked_ == 110
    assert clf.partial_fit(X[115:], refresh=np.True_).n_walked_ == 120


# Bad input, and a model that stays as it was.


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[0.0, 1.0]],), {}, "2 features"),
        (([[np.nan, 1.0, 2.0]],), {}, "NaN"),
        (([[0.0, 1.0, 2.0]], [0, 1]), {}, "1 rows and 2 labels"),
        (([[0.0, 1.0, 2.0]], ["a"]), {}, "labels so far are of another type, such as 0"),
        (([[0.0, 1.0, 2.0]], [0.5]), {}, "Unknown label type"),
        (([[0.0, 1.0, 2.0]], [5]), {"classes": [0, 1, 2]}, "which classes does not"),
        (([[0.0, 1.0, 2.0]],), {"refresh": "often"}, "refresh='often' must be 'auto'"),
        (([[0.0, 1.0, 1e300]],), {}, "too large"),
    ],
)
def test_bad_chunks(arguments, options, message):
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X, y)
    before = dict(clf.__dict__)
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(*arguments, **options)
    assert clf.__dict__ == before


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([120], [0], "from 0 to 119"),
        ([-1], [0], "from 0 to 119"),
        ([0.5], [0], "from 0 to 119"),
        ([1, 1], [0, 1], "twice"),
        ([1, 2], [0], "different lengths, 2 and 1"),
        ([1], ["a"], "another type"),
    ],
)
def test_bad_labels(rows, labels, message):
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X, y)
    before = dict(clf.__dict__)
    with pytest.raises(ValueError, match=message):
        clf.set_labels(rows, labels)
    assert clf.__dict__ == before


def test_rows_that_nobody_reaches_may_be_refused():
    """The chunk is not taken in, and neither is its part that could be."""
    X, y, _ = clouds(gap=0.0)
    X[60:] += 100.0
    y = np.where(np.arange(120) < 4, np.arange(120) % 2, -1)
    both = ManifoldKNNClassifier(graph="union", on_unreached="raise")
    clf = both.fit(X[:60], y[:60])
    with pytest.raises(UnreachedError):
        clf.partial_fit(X[50:90], refresh=True)
    assert len(clf.transduction_) == clf.fitted_.index.n_samples == 60
    clf.partial_fit(X[:5], refresh=False)
    assert len(clf.transduction_) == 65


def test_the_first_chunk_needs_a_label():
    X, y, _ = clouds()
    for labels in (None, np.full(120, -1)):
        clf = ManifoldKNNClassifier()
        with pytest.raises(ValueError, match=r"y (is None|has no labelled)"):
            clf.partial_fit(X, labels)
        assert not hasattr(clf, "classes_")
        with pytest.raises(NotFittedError):
            clf.predict(X)
    with pytest.raises(ValueError, match="which classes does not"):
        ManifoldKNNClassifier().partial_fit(X, y, classes=[0, 1])
    for method, arguments in (("refresh", ()), ("set_labels", ([0], [0]))):
        with pytest.raises(NotFittedError):
            getattr(ManifoldKNNClassifier(), method)(*arguments)


def test_a_stream_that_begins_with_labels_only_is_no_surprise():
    """No warning that everything is labelled: unlabelled rows follow."""
    X, _, truth = clouds()
    clf = ManifoldKNNClassifier().partial_fit(X[:30], truth[:30]).partial_fit(X[30:])
    assert (clf.transduction_ == truth).mean() > 0.9


def test_copies_grow_apart():
    """A shallow copy shares what it was copied from, and neither changes the other."""
    X, y, _ = clouds(n=160)
    clf = ManifoldKNNClassifier().fit(X[:100], y[:100]).partial_fit(X[100:110], refresh=False)
    twin = copy.copy(clf)
    clf.partial_fit(X[110:130], refresh=False)
    twin.partial_fit(X[130:160], refresh=False)
    np.testing.assert_array_equal(clf.fitted_.index.X, X[:130])
    np.testing.assert_array_equal(twin.fitted_.index.X, np.concatenate([X[:110], X[130:160]]))
    np.testing.assert_array_equal(clf.transduction_[110:], clf.predict(X[110:130]))
    np.testing.assert_array_equal(twin.transduction_[110:], twin.predict(X[130:160]))


def test_changed_parameters_make_the_next_chunk_a_new_walk():
    X, y, _ = clouds(n=160)
    clf = ManifoldKNNClassifier().fit(X[:100], y[:100]).partial_fit(X[100:110], refresh=False)
    clf.set_params(graph_neighbors=6, metric="manhattan").partial_fit(X[110:], refresh=False)
    new = ManifoldKNNClassifier(graph_neighbors=6, metric="manhattan").fit(X, y)
    assert_same_model(clf, new)


def test_fewer_rows_than_neighbours():
    X, y, _ = clouds(n=40, per_class=1)
    with pytest.warns(UserWarning, match="only 5 rows"):
        clf = ManifoldKNNClassifier().fit(X[:5], y[:5])
    for start in range(5, 12):
        clf.partial_fit(X[start : start + 1], refresh=False)
    assert clf.fitted_.arrivals.z.values.shape == (7, 10)
    np.testing.assert_allclose(clf.fitted_.arrivals.z.values.sum(axis=1), 1.0)
    assert_same_model(clf.partial_fit(X[12:], refresh=True), ManifoldKNNClassifier().fit(X, y))


def test_frames_keep_their_columns():
    X, y, _ = clouds()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = ManifoldKNNClassifier().partial_fit(frame[:100], y[:100]).partial_fit(frame[100:])
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        clf.partial_fit(frame[["c", "b", "a"]])
    assert len(clf.transduction_) == 120


def test_verbose_tells_stages_of_a_refresh(capfd):
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier(verbose=1).fit(X, y)
    capfd.readouterr()
    clf.set_labels([50], [0])
    assert "walk: " in capfd.readouterr().err


def test_a_buffer_may_be_used_again():
    """Whoever streams overwrites the last chunk with the next."""
    X, y, _ = clouds(n=300)
    for form in (np.asarray, sparse.csr_array):
        buffer = form(X[:200]).copy()
        clf = ManifoldKNNClassifier().partial_fit(buffer, y[:200])
        late = form(X[200:250]).copy()
        clf.partial_fit(late, refresh=False)
        before = clf.predict_proba(form(X))
        for chunk in (buffer, late):
            (chunk.data if sparse.issparse(chunk) else chunk)[:] = 7.0
        np.testing.assert_array_equal(clf.predict_proba(form(X)), before)


def test_no_labels_to_set_change_nothing():
    X, y, _ = clouds(n=100)
    clf = ManifoldKNNClassifier().fit(X, y)
    graph = clf.fitted_.graph
    assert clf.set_labels([], []) is clf
    assert clf.set_labels(np.zeros(100, dtype=bool), 1).fitted_.graph is graph


def test_another_search_is_opened_on_refresh():
    X, y, _ = clouds(n=300)
    clf = ManifoldKNNClassifier(neighbors="exact").fit(X, y)
    clf.set_params(neighbors="inverted").refresh()
    assert isinstance(clf.fitted_.index.first, InvertedIndex)


# Where the walk starts from what is known, and with links.


def assert_same_bits(clf, other):
    for name in ("classes_", "transduction_", "label_distributions_", "class_prior_"):
        np.testing.assert_array_equal(getattr(clf, name), getattr(other, name))
    assert (clf.alpha_, clf.sharpness_) == (other.alpha_, other.sharpness_)
    mine, theirs = clf.fitted_.walk.similarities, other.fitted_.walk.similarities
    np.testing.assert_array_equal(mine.logs, theirs.logs)
    np.testing.assert_array_equal(mine.log_scale, theirs.log_scale)
    np.testing.assert_array_equal(clf.hidden_labels_.shares, other.hidden_labels_.shares)


@pytest.mark.parametrize("way", ["factorise", "iterate", "levels", "dense"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_warm_start_is_a_new_fit_to_the_tolerance_and_refreshed_to_the_last_bit(way, linked):
    X, y, truth = clouds(n=300)
    links = {"must_link": [[50, 53], [53, 200]], "cannot_link": [[50, 51], [200, 101]]}
    links = links if linked else {}
    tol = 1e-5
    make = partial(ManifoldKNNClassifier, graph="full" if way == "dense" else "pruned", tol=tol)
    with forced(way):
        clf = make().fit(X[:280], y[:280], **links)
        clf.set_labels([100, 101], truth[[100, 101]])
        y[[100, 101]] = truth[[100, 101]]
        for step in range(2):
            if step:
                clf.partial_fit(X[280:], truth[280:])
                y[280:] = truth[280:]
            new = make().fit(X[: 280 + 20 * step], y[: 280 + 20 * step], **links)
            np.testing.assert_allclose(
                clf.fitted_.walk.similarities.logarithms(),
                new.fitted_.walk.similarities.logarithms(),
                atol=tol,
            )
            assert clf.sharpness_ == pytest.approx(new.sharpness_, rel=1e-3)
        assert_same_bits(clf.refresh(), new)
    assert linked == bool(clf.fitted_.links)


def test_links_hold_until_the_next_fit():
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X, y, cannot_link=[[50, 51]])
    with pytest.raises(ValueError, match="cannot_link cuts rows 50 and 51 apart, but both are"):
        clf.set_labels([50, 51], [1, 1])
    clf.partial_fit(X[:5] + 0.1, refresh=False).refresh()
    assert clf.fitted_.links.cannot.tolist() == [[50, 51]]
    assert not clf.fit(X, y).fitted_.links
    clf.set_labels([50, 51], [1, 1])


def test_another_vote_takes_effect_with_the_next_walk():
    X, y, _ = clouds()
    clf = ManifoldKNNClassifier().fit(X, y)
    assert_same_model(
        clf.set_params(vote="neighbors").refresh(),
        ManifoldKNNClassifier(vote="neighbors").fit(X, y),
    )
    assert clf.sharpness_ is None
    assert_same_model(
        clf.set_params(vote="classes").set_labels([70], [1]).set_labels([70], [-1]),
        ManifoldKNNClassifier().fit(X, y),
    )


def test_a_label_begins_where_the_model_is():
    """Iterations fall, the answer is that of a fresh fit, and a refresh starts afresh."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    truth = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    y = np.full(len(X), -1)
    y[:30] = truth[:30]
    more = y.copy()
    more[40] = truth[40]
    with forced("iterate", few=0.25):  # labels touch more than that here
        fresh = ManifoldKNNClassifier(alpha=0.9995).fit(X, more)
        clf = ManifoldKNNClassifier(alpha=0.9995).fit(X, y).set_labels([40], truth[40])
        stream = ManifoldKNNClassifier(alpha=0.9995).partial_fit(X[:-5], y[:-5])
        stream.partial_fit(X[-5:], truth[-5:])
        assert clf.n_iter_ < fresh.n_iter_
        assert stream.n_iter_ < fresh.n_iter_
        np.testing.assert_allclose(clf.label_distributions_, fresh.label_distributions_, atol=5e-3)
        clf.refresh()
    np.testing.assert_array_equal(clf.label_distributions_, fresh.label_distributions_)
