"""The walk of machines that share rows against that of one machine."""

import numpy as np
import pytest

from distributed_lines import ThreadLinks, in_ranks
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.distributed.walk import walking
from manifoldknn.distributed.walk.shared import LINE
from manifoldknn.distributed.walk.walking import OwnRows, walked_together
from manifoldknn.vote.votes import ClassVote
from manifoldknn.walk import choose


def walked(one, part, **how):
    """Return what each machine says, and the shares of all rows, given a fit of one machine."""
    fitted, size = one.fitted_, part.max() + 1
    order = np.argsort(part, kind="stable")
    place = np.empty(len(part), dtype=int)
    place[order] = np.arange(len(part))
    bounds = np.concatenate([[0], np.cumsum(np.bincount(part))])
    low, high, length = fitted.edges
    low, high, codes = place[low], place[high], fitted.labels.codes[order]

    def work(links):
        start, stop = bounds[links.rank], bounds[links.rank + 1]
        mine = [(end >= start) & (end < stop) for end in (low, high)]
        ends = [(low, high), (high, low)]
        edges = [np.concatenate([pair[at][m] for pair, m in zip(ends, mine)]) for at in (0, 1)]
        lengths = np.concatenate([length[m] for m in mine])
        here = order[start:stop]
        lists = fitted.lists
        rows = OwnRows(
            bounds, *edges, lengths, place[lists.indices[here][:, :10]],
            lambda: lists.distances[here], codes[start:stop], here,
        )  # fmt: skip
        settings = {"sigma": "auto", "alpha": "auto", "sharpness": "auto", "max_iter": 1000}
        settings |= {"theta": 0.1, "tree_depth": 2, "tol": 1e-3} | how
        return walked_together(links, rows, len(one.classes_), one.class_prior_, **settings)

    found = in_ranks(size, work)
    logs = np.concatenate([rows.similarities.logs for rows in found])[place]
    scale = np.concatenate([rows.similarities.log_scale for rows in found])[place]
    vote = ClassVote(one.class_prior_, found[0].sharpness, usual=found[0].usual)
    return found, vote.doubted(vote.shares(logs), scale, one.fitted_.belonging.values.values)


def blobs(n, seed=0, apart=3.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + apart * y[:, None] * np.array([1, 0.5, 0, 0])
    labels = np.full(n, -1)
    for c in range(3):
        labels[np.flatnonzero(y == c)[:7]] = c
    return X, labels


@pytest.fixture
def iterated(monkeypatch):
    """Let one machine iterate, as several always do."""
    monkeypatch.setattr(choose, "factorization_pays", lambda *_, **__: False)


@pytest.mark.usefixtures("iterated")
def test_one_machine_is_the_trivial_case():
    X, labels = blobs(900)
    one = ManifoldKNNClassifier(n_jobs=1, tol=1e-4).fit(X, labels)
    found, shares = walked(one, np.zeros(900, dtype=int))
    assert found[0].sigma == one.sigma_
    assert found[0].alpha == one.alpha_
    assert found[0].sharpness == pytest.approx(one.sharpness_, rel=1e-3)
    np.testing.assert_allclose(shares, one.label_distributions_, atol=1e-3)


@pytest.mark.usefixtures("iterated")
@pytest.mark.parametrize("apart", [3.0, 60.0])  # one part, and three that hardly touch
@pytest.mark.parametrize("size", [2, 3])
def test_machines_that_share_rows_agree_with_one(size, apart):
    X, labels = blobs(900, apart=apart)
    one = ManifoldKNNClassifier(n_jobs=1, tol=1e-6).fit(X, labels)
    part = np.argsort(np.argsort(X[:, 1])) * size // 900
    found, shares = walked(one, part, tol=1e-6)
    assert len({rows.sharpness for rows in found}) == 1
    assert all(rows.converged for rows in found)
    assert found[0].sigma == one.sigma_
    np.testing.assert_allclose(shares, one.label_distributions_, atol=1e-4)
    assert sum(rows.halo_bytes for rows in found) > 0


@pytest.mark.usefixtures("iterated")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_walks_at_once_give_the_same_bits_as_one_after_the_other(monkeypatch, n_jobs):
    X, labels = blobs(900)
    one = ManifoldKNNClassifier(n_jobs=1).fit(X, labels)
    part = np.argsort(np.argsort(X[:, 1])) * 2 // 900
    monkeypatch.setattr(walking, "_UNDER_WAY", 0)
    expected, shares = walked(one, part)
    monkeypatch.setattr(walking, "_UNDER_WAY", 10_000)
    lines = set()
    monkeypatch.setattr(ThreadLinks, "exchange", noting(ThreadLinks.exchange, lines))
    found, others = walked(one, part, n_jobs=n_jobs)
    assert lines == set(range(6))  # all labels, and five folds
    np.testing.assert_array_equal(shares, others)
    assert expected[0].sharpness == found[0].sharpness
    assert expected[0].halo_bytes == found[0].halo_bytes


def noting(exchange, lines):
    """Return an exchange that notes which lines it is asked for."""

    def noted(links, messages):
        lines.add(LINE.get())
        return exchange(links, messages)

    return noted


@pytest.mark.usefixtures("iterated")
def test_rows_shared_out_at_random_and_many_labels():
    X, labels = blobs(600)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(600) < 0.5, (X[:, 0] > 1.5) + (X[:, 0] > 4.5), labels)
    one = ManifoldKNNClassifier(n_jobs=1, tol=1e-6).fit(X, labels)
    _, shares = walked(one, np.append([0, 1, 2], rng.integers(0, 3, 597)), tol=1e-6)
    np.testing.assert_allclose(shares, one.label_distributions_, atol=1e-4)


@pytest.mark.usefixtures("iterated")
def test_long_walks_have_groups_of_rows(monkeypatch):
    from manifoldknn.walk import aggregates

    for room, name, few in ((walking, "MANY_ROWS", 100), (choose, "MANY_ROWS", 100)):
        monkeypatch.setattr(room, name, few)
    monkeypatch.setattr(walking, "_GROUPS", 60)
    monkeypatch.setattr(aggregates, "_COARSEST", 60)
    X, labels = blobs(3000)
    one = ManifoldKNNClassifier(n_jobs=1, tol=1e-6).fit(X, labels)
    part = np.argsort(np.argsort(X[:, 1])) * 2 // 3000
    found, shares = walked(one, part, tol=1e-6)
    np.testing.assert_allclose(shares, one.label_distributions_, atol=1e-4)
    monkeypatch.setattr(walking, "aggregates", lambda *_, **__: ())
    plain, _ = walked(one, part, tol=1e-6)
    assert found[0].n_iter < plain[0].n_iter
