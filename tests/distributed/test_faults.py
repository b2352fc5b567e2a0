"""Workers that are killed in the midst of a stage, and workers that do not come back."""

import logging
import time

import numpy as np
import pytest

import manifoldknn.distributed.answers as answers
import manifoldknn.distributed.estimator as room
import manifoldknn.distributed.pieces as pieces
import manifoldknn.distributed.stages as stages
from manifoldknn.distributed import DistributedManifoldKNN
from manifoldknn.exceptions import ClusterLostError

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

N_PARTS = 6
AGAIN = "the walk begins again on whoever is left"
TASKS = {"find": pieces, "seen": pieces, "belonging": pieces, "write": answers}


def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1200)
    X = rng.normal(size=(1200, 4)) + 2.0 * y[:, None]
    labels = np.full(1200, -1)
    for c in range(3):
        labels[np.flatnonzero(y == c)[:8]] = c
    return X, labels


def cluster(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
    )


@pytest.fixture(scope="module")
def machines_of_three():
    with cluster(3) as machines, distributed.Client(machines) as client:
        yield client


@pytest.fixture
def three(machines_of_three):
    machines_of_three.wait_for_workers(3, timeout=60)  # one that was killed comes back
    return machines_of_three


@pytest.fixture(autouse=True)
def all_workers_walk(monkeypatch):
    monkeypatch.setattr(room, "_ROWS_PER_WORKER", 100)


def model_of(client, *where, **how):
    # A given sharpness spares the walks without some labels: these are many messages.
    return DistributedManifoldKNN(client, *where, n_parts=N_PARTS, sharpness=1.0, **how)


@pytest.fixture(scope="module")
def expected(machines_of_three):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_ROWS_PER_WORKER", 100)
        machines_of_three.wait_for_workers(3, timeout=60)
        model = model_of(machines_of_three).fit(*rows())
        assert model.n_walk_tasks_ == 3
        return answers_of(model)


def answers_of(model):
    lazy = model.transduction_, model.label_distributions_
    return [values.compute(scheduler="sync") for values in lazy]


# Functions within functions go to workers as they are: these know nothing of the tests.


def dying(make, marker):
    """Return a maker of pieces that kills its worker the first time, when its work is done."""

    def made(folder, number, *how):
        import os
        import signal

        found = make(folder, number, *how)
        if number == 0 and not os.path.exists(marker):
            open(marker, "w").close()
            (folder.path / "aside-cut-off.npy").write_bytes(b"half of a piece")
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return made


def dying_walk(task, marker, n_messages):
    """Return the task of a walk that kills its worker, the first time, after some messages."""

    def walk(path, run, rank, *how, **settings):
        import os
        import signal

        from manifoldknn.distributed.walk.lines import DaskLinks

        exchange, count = DaskLinks.exchange, iter(range(n_messages))

        def last(links, messages):
            if next(count, None) is None:
                open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return exchange(links, messages)

        if rank == 1 and not os.path.exists(marker):
            DaskLinks.exchange = last
        return task(path, run, rank, *how, **settings)

    return walk


def dies_in(stage, patch, tmp_path, n_messages=60):
    marker = str(tmp_path / f"died in {stage}")
    if stage == "walk":
        patch.setattr(stages, "walk_task", dying_walk(stages.walk_task, marker, n_messages))
    else:
        patch.setattr(TASKS[stage], stage, dying(getattr(TASKS[stage], stage), marker))


ONE = [pytest.param([stage], marks=pytest.mark.slow) for stage in (*TASKS, "walk")]


@pytest.mark.parametrize("killed", [*ONE, ["find", "walk"]], ids=str)
def test_a_worker_that_is_killed_is_done_without(killed, three, expected, monkeypatch, tmp_path):
    for stage in killed:
        dies_in(stage, monkeypatch, tmp_path)
    model = model_of(three, tmp_path / "c").fit(*rows())
    assert {path.name for path in tmp_path.glob("died in *")} == {f"died in {s}" for s in killed}
    codes, shares = answers_of(model)
    np.testing.assert_array_equal(codes, expected[0])
    np.testing.assert_allclose(shares, expected[1], atol=1e-4)
    assert not list((tmp_path / "c").glob("aside*"))


@pytest.mark.slow
@pytest.mark.parametrize("n_messages", [400, 700])
def test_a_worker_that_is_killed_in_the_midst_of_several_walks(
    n_messages, three, monkeypatch, tmp_path, caplog
):
    caplog.set_level(logging.INFO, logger=stages.__name__)
    X, labels = rows()
    expected = answers_of(DistributedManifoldKNN(three, n_parts=N_PARTS).fit(X, labels))
    dies_in("walk", monkeypatch, tmp_path, n_messages)
    model = DistributedManifoldKNN(three, n_parts=N_PARTS).fit(X, labels)
    assert (tmp_path / "died in walk").exists()
    assert [line.message for line in caplog.records].count(AGAIN) == 1
    codes, shares = answers_of(model)
    np.testing.assert_array_equal(codes, expected[0])
    np.testing.assert_allclose(shares, expected[1], atol=1e-3)


@pytest.mark.parametrize("stage", [pytest.param("find", marks=pytest.mark.slow), "walk"])
def test_all_workers_gone_is_told_and_the_fit_goes_on_with_new_ones(
    stage, expected, monkeypatch, tmp_path
):
    monkeypatch.setattr(stages, "_PATIENCE", 2.0)
    X, labels = rows()
    with cluster(1) as machines, distributed.Client(machines) as client:
        model = model_of(client, tmp_path / "c")
        name = "_walked" if stage == "walk" else "_results"
        usual = getattr(stages.Stages, name)

        def gone(self, *how, **more):
            if stage == "walk" or how[1] == stage:
                machines.sync(machines.scale_down, list(machines.workers))
            return usual(self, *how, **more)

        with monkeypatch.context() as patch:
            patch.setattr(stages.Stages, name, gone)
            begun = time.monotonic()
            with pytest.raises(ClusterLostError, match=f"No worker has been there .* '{stage}'"):
                model.fit(X, labels)
            assert time.monotonic() - begun < 30
        assert not hasattr(model, "model_")
        assert not list((tmp_path / "c").glob(f"{stage}-*"))
        machines.scale(1)
        made = {path: path.stat().st_mtime_ns for path in (tmp_path / "c").glob("part-*.json")}
        assert made
        model.set_params(resume=True).fit(X, labels)
        assert made == {path: path.stat().st_mtime_ns for path in made}
        np.testing.assert_array_equal(answers_of(model)[0], expected[0])


@pytest.mark.slow
def test_workers_that_are_killed_again_and_again_are_told(three, monkeypatch):
    def fatal(*_):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pieces, "find", fatal)
    with pytest.raises(ClusterLostError, match="killed again and again during 'find'"):
        model_of(three).fit(*rows())
