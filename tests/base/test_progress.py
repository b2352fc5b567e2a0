import logging
import re
import time
from functools import partial

import numpy as np
import pytest

import manifoldknn.base.progress as progress
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.progress import countdown, spoken, timed_stages
from manifoldknn.base.threads import in_threads
from manifoldknn.search.engines import open_index
from manifoldknn.walk import choose


def blobs(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) + 3 * np.eye(2, 4)[np.arange(n) % 2]
    y = np.full(n, -1)
    y[:40] = np.arange(40) % 2
    return X, y


def test_silent_by_default(capfd):
    ManifoldKNNClassifier().fit(*blobs())
    assert capfd.readouterr() == ("", "")


def test_stages_are_told(capfd):
    ManifoldKNNClassifier(verbose=1).fit(*blobs())
    out, err = capfd.readouterr()
    assert out == ""
    for stage in ("neighbours", "graph", "walk", "vote"):
        assert re.search(rf"^\[manifoldknn\] {stage} \.\.\.$", err, re.MULTILINE)
        assert re.search(rf"^\[manifoldknn\] {stage}: \d+\.\d s$", err, re.MULTILINE)
    assert "residual" not in err


@pytest.fixture
def iterated(monkeypatch):
    """Let graphs be iterated that would be factorised."""
    monkeypatch.setattr(choose, "factorization_pays", lambda *_, **__: False)


@pytest.mark.usefixtures("iterated")
def test_every_step_of_the_walk_on_request(capfd):
    ManifoldKNNClassifier(verbose=2).fit(*blobs())
    pattern = (
        r"\d+ rows, \d+ columns, \d+ iterations: residual \d\.\de-\d+, [\d.]+ % of rows accurate"
    )
    assert re.search(pattern, capfd.readouterr().err)


def test_logging_is_left_as_it_was():
    before = list(progress.logger.handlers), progress.logger.level
    with pytest.raises(ValueError, match="alpha"):
        ManifoldKNNClassifier(verbose=2, alpha=2).fit(*blobs())
    assert (list(progress.logger.handlers), progress.logger.level) == before


def test_countdown_says_how_long_is_left(monkeypatch, caplog):
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO, logger="manifoldknn"):
        for _ in countdown(iter(range(4)), 4, "blocks"):
            time.sleep(0.01)
    assert [m.split(",")[0] for m in caplog.messages] == [
        "1 of 4 blocks", "2 of 4 blocks", "3 of 4 blocks",
    ]  # fmt: skip
    assert all(re.search(r"about \d+ s left$", m) for m in caplog.messages)


def test_spoken_restores_even_after_an_error():
    before = list(progress.logger.handlers)
    with pytest.raises(RuntimeError), spoken(1):
        raise RuntimeError
    assert progress.logger.handlers == before


def test_scikit_learn_callbacks():
    callbacks = pytest.importorskip("sklearn.callback")
    seen = []

    class Recorder:
        def setup(self, estimator, context):
            seen.append("setup")

        def on_fit_task_begin(self, estimator, context):
            seen.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context):
            seen.append(("end", context.task_name))

        def teardown(self, estimator, context):
            seen.append("teardown")

    assert isinstance(Recorder(), callbacks.FitCallback)
    clf = ManifoldKNNClassifier().set_callbacks(Recorder())
    clf.fit(*blobs())
    stages = [("begin", "fit")]
    for name in ("neighbours", "graph", "walk", "vote"):
        stages += [("begin", name), ("end", name)]
    assert seen == ["setup", *stages, ("end", "fit"), "teardown"]


def test_stages_can_be_timed():
    seconds = {}
    X = np.random.default_rng(0).normal(size=(30, 2))
    with timed_stages(seconds):
        ManifoldKNNClassifier().fit(X, [0, 1] + [-1] * 28)
    assert list(seconds) == ["neighbours", "graph", "walk", "vote"]
    assert all(taken > 0 for taken in seconds.values())
    ManifoldKNNClassifier().fit(X[:20], [0, 1] + [-1] * 18)
    assert len(seconds) == 4  # nothing is written after the block


def test_pulse_is_one_line_for_all_threads_every_two_seconds(monkeypatch, caplog):
    clock = [100.0]
    monkeypatch.setattr(progress, "_last_line", [0.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    with caplog.at_level(logging.INFO, logger="manifoldknn"):
        for second in (0.0, 0.1, 1.9, 2.2, 2.3, 4.1, 4.3):
            clock[0] = 100.0 + second
            list(in_threads(partial(progress.pulse, "%s from %s", second), "abcd", 2))
    assert [m.split(" from ")[0] for m in caplog.messages] == ["0.0", "2.2", "4.3"]


def test_pulse_costs_nothing_and_says_nothing_unless_asked(capfd):
    progress.pulse("%d", "not a number, and never formatted")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("metric", "neighbors", "lines"),
    [
        ("euclidean", "exact", ["1 of 2 blocks of rows"]),
        ("manhattan", "exact", ["1 of 2 blocks of rows"]),
        (lambda a, b: float(abs(a - b).max()), "exact", ["1 of 2 blocks of rows"]),
        ("euclidean", "inverted", ["1 of 2 blocks of rows"]),
    ],
    ids=["products", "trees", "a function", "inverted lists"],
)
def test_a_long_search_says_how_far_it_is(monkeypatch, caplog, metric, neighbors, lines):
    for name in ("neighbors._BRUTE_ROWS", "neighbors._LIBRARY_TREE_ROWS", "inverted._CHUNK_ROWS"):
        monkeypatch.setattr(f"manifoldknn.search.{name}", 64)
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.0)
    X = blobs(128)[0]
    index = open_index(X, neighbors, metric=metric, n_jobs=1, seed=0)
    with caplog.at_level(logging.INFO, logger="manifoldknn"):
        index.among_samples(5)
    told = [m for m in caplog.messages if "blocks of rows" in m]
    assert [m.split(",")[0] for m in told] == lines
    assert all(re.search(r"about \d+ s left$", m) for m in told)


@pytest.mark.usefixtures("iterated")
def test_one_long_walk_tells_iterations_and_residual(monkeypatch, caplog):
    """All labels fit into one block, which no countdown can count."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = np.full(3000, -1)
    y[:6] = np.arange(6) % 2
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO, logger="manifoldknn"):
        clf = ManifoldKNNClassifier(vote="neighbors").fit(X, y)
    pattern = r"walking over \d+ rows from 6 sources: (\d+) iterations, residual (.+)"
    told = [re.fullmatch(pattern, m) for m in caplog.messages if m.startswith("walking")]
    assert clf.n_iter_ > 1
    assert [int(line[1]) for line in told] == list(range(1, clf.n_iter_ + 1))
    residuals = [float(line[2]) for line in told]
    assert residuals[-1] < 1e-5 < residuals[0]
