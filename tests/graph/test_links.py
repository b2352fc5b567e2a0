"""Links by hand: what they do to the graph, and contradictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn import ManifoldKNNClassifier, classifier, constrained_graph
from manifoldknn.graph.links import NO_LINKS, HandLinks, check_links, hand_links
from strategies import links_for, problems

CODES = np.array([0, 0, 1, 1, -1, -1, -1, -1])


@settings(max_examples=60, deadline=None)
@given(
    st.data(), problems(max_samples=30, ties=False), st.sampled_from(["pruned", "union", "full"])
)
def test_the_graph_equals_table_1_with_links(data, problem, graph):
    X, y = problem.X, problem.y
    must, cannot = data.draw(links_for(y, most=8))
    k = min(3, len(X) - 1)
    W = constrained_graph(
        X, y, must_link=must, cannot_link=cannot, graph=graph, graph_neighbors=k, sigma=0.7
    )
    W = W if isinstance(W, np.ndarray) else W.toarray()
    how = {"graph": graph, "k": k, "sigma": 0.7, "depth": 2, "theta": 0.1}
    expected = oracles.constrained_graph(X, y, must=must, cannot=cannot, **how)
    np.testing.assert_allclose(W, expected, rtol=1e-9, atol=1e-300)


def test_pairs_are_sorted_and_each_is_there_once():
    links = hand_links([[5, 4], [4, 5], [0, 4]], np.array([[2, 0]], dtype=np.uint8), CODES)
    assert links.must.tolist() == [[0, 4], [4, 5]]
    assert links.cannot.tolist() == [[0, 2]]
    assert bool(links)
    low, high = np.array([0, 0, 4]), np.array([1, 4, 5])
    assert links.names(low, high).tolist() == [False, True, True]
    # Between labelled rows of a class there is an edge already.
    tied = hand_links([[0, 1], [4, 5], [2, 4]], None, CODES)
    assert [end.tolist() for end in tied.linked_beside(CODES)] == [[2, 4], [4, 5]]


@pytest.mark.parametrize("nothing", [None, [], (), np.empty((0, 2), dtype=int), np.empty(0)])
def test_no_links(nothing):
    links = hand_links(nothing, nothing, CODES)
    assert not links
    assert links.must.shape == links.cannot.shape == (0, 2)
    check_links(NO_LINKS, CODES)


BAD = [
    ({"must_link": [[0, 8]]}, "must_link names row 8, and there are rows 0 to 7"),
    ({"cannot_link": [[-1, 3]]}, "cannot_link names row -1"),
    ({"must_link": [[4, 5], [3, 3]]}, "must_link pairs row 3 with itself"),
    ({"cannot_link": [[6, 6]]}, "cannot_link pairs row 6 with itself"),
    ({"must_link": [0, 1]}, "must_link must hold pairs of row numbers"),
    ({"must_link": [[0, 1, 2]]}, "must_link must hold pairs"),
    ({"must_link": [[0, 1], [2]]}, "must_link must hold pairs"),
    ({"must_link": [[0.0, 1.0]]}, "must_link must hold pairs"),
    ({"cannot_link": "ab"}, "cannot_link must hold pairs"),
    ({"must_link": [[True, False]]}, "must_link must hold pairs"),
    ({"must_link": [[0, 2]]}, "classes 'a' and 'b' together, such as rows 0 and 2"),
    ({"must_link": [[1, 4], [4, 5], [5, 3]]}, "classes 'a' and 'b' together"),
    ({"cannot_link": [[0, 1]]}, "cuts rows 0 and 1 apart, but both are labelled 'a'"),
    (
        {"must_link": [[4, 5], [5, 6]], "cannot_link": [[4, 6]]},
        "cuts rows 4 and 6 apart, but must-links and labels tie them together",
    ),
    (
        {"must_link": [[0, 4], [1, 5]], "cannot_link": [[4, 5], [0, 5]]},
        r"cuts rows 0 and 5 apart \(and 1 more\), but must-links and labels",
    ),
    ({"must_link": [[4, 5]], "cannot_link": [[5, 4]]}, "cuts rows 4 and 5 apart"),
]


@pytest.mark.parametrize(("links", "message"), BAD)
def test_bad_links_are_refused_before_heavy_work(links, message, monkeypatch):
    def search(*_, **__):
        raise AssertionError("searched before links were checked")

    monkeypatch.setattr(classifier, "searched", search)
    y = np.array(["a", "a", "b", "b", "", "", "", ""])
    X = np.arange(8.0)[:, None]
    with pytest.raises(ValueError, match=message):
        ManifoldKNNClassifier(graph_neighbors=2).fit(X, y, **links)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-1, 2), min_size=2, max_size=9),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=8),
    st.integers(0, 8),
)
def test_contradictions_are_found_exactly(codes, pairs, n_must):
    """Against closing "is of one class" and "is not" over all rows by hand."""
    codes = np.array(codes)
    n = len(codes)
    pairs = [tuple(sorted((a % n, b % n))) for a, b in pairs if a % n != b % n]
    must, cannot = pairs[:n_must], pairs[n_must:]
    same = np.eye(n, dtype=bool) | ((codes[:, None] == codes) & (codes[:, None] >= 0))
    for a, b in must:
        same[a, b] = same[b, a] = True
    for m in range(n):
        same |= same[:, [m]] & same[[m], :]
    other = (codes[:, None] != codes) & (codes[:, None] >= 0) & (codes >= 0)
    contradicts = (same & other).any() or any(same[a, b] for a, b in cannot)
    links = HandLinks(*(np.array(side, dtype=int).reshape(-1, 2) for side in (must, cannot)))
    if contradicts:
        with pytest.raises(ValueError, match=r"must_link ties|cannot_link cuts"):
            check_links(links, codes)
    else:
        check_links(links, codes)


@pytest.mark.parametrize("graph", ["pruned", "union", "full"])
def test_a_link_carries_a_class_and_a_cut_keeps_it_away(graph):
    """Three groups in a row; the middle one goes where it is linked to, and stays so."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)) + 6 * c for c in range(3)])
    y = np.full(90, -1)
    y[:3], y[60:63] = 0, 1
    middle = np.arange(30, 60)
    for label, rows in ((0, [0, 1, 2]), (1, [60, 61, 62])):
        must = [[row, 35 + i] for i, row in enumerate(rows)]
        cannot = [[r, 63 - 63 * label] for r in (36, 37)]
        clf = ManifoldKNNClassifier(graph=graph, graph_neighbors=60).fit(
            X, y, must_link=must, cannot_link=cannot
        )
        assert (clf.transduction_[middle] == label).mean() > 0.9
        clf.set_labels([40], [label])
        assert (clf.transduction_[middle] == label).mean() > 0.9
        with pytest.raises(ValueError, match="must_link ties rows of the classes 0 and 1"):
            clf.set_labels([35], [1 - label])
        assert clf.transduction_[40] == label
