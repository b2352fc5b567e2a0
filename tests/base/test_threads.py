import sys
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import manifoldknn.base.threads as threads_module
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.threads import Crew, in_threads, single_threaded_products


@pytest.mark.parametrize("n_jobs", [1, 2, 5, -1, None])
def test_results_come_in_order(n_jobs):
    def late(x):
        time.sleep(0.002 * (5 - x))
        return x * x

    assert list(in_threads(late, range(5), n_jobs)) == [0, 1, 4, 9, 16]
    assert list(in_threads(late, [], n_jobs)) == []


def test_two_at_a_time():
    both = threading.Barrier(2, timeout=10)
    list(in_threads(lambda _: both.wait(), range(2), 2))  # alone, one would wait in vain


def test_matrix_libraries_are_limited_inside_and_free_again_after():
    def threads():
        found = threadpool_info()
        return [one["num_threads"] for one in found if one["user_api"] == "blas"]

    before = threads()
    for _ in range(2):
        with single_threaded_products():
            assert set(threads()) <= {1}
        assert threads() == before


def test_libraries_that_are_loaded_later_are_found(monkeypatch):
    with single_threaded_products():
        pass
    found = []
    monkeypatch.setattr(threads_module, "ThreadpoolController", lambda: found.append(1) or Limits())
    with single_threaded_products():
        assert not found  # nothing was imported since
    monkeypatch.setitem(sys.modules, "some_new_module", object())
    with single_threaded_products():
        assert found
    threads_module._libraries.cache_clear()


class Limits:
    def limit(self, **_):
        return nullcontext()


def test_an_exception_comes_through():
    def work(x):
        if x == 3:
            raise KeyError(x)
        return x

    with pytest.raises(KeyError):
        list(in_threads(work, range(8), 2))


def test_predictions_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(300, 4)), rng.normal(size=(9000, 4))
    y = np.where(np.arange(300) < 20, np.arange(300) % 3, -1)
    answers = [ManifoldKNNClassifier(n_jobs=jobs).fit(X, y).predict_proba(Q) for jobs in (1, 2, 4)]
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_a_crew_works_at_once_batch_after_batch_and_passes_errors_on():
    both = threading.Barrier(2, timeout=10)
    with Crew(2) as crew:
        assert len(crew) == 2
        for _ in range(3):
            crew.do(lambda _: both.wait(), [1, 2])  # alone, one would wait in vain
        with pytest.raises(ZeroDivisionError):
            crew.do(lambda x: 1 / x, [1, 0, 2])
        done = []
        crew.do(done.append, [3, 4])
    assert sorted(done) == [3, 4]


def test_after_an_error_nobody_waits_for_what_has_not_begun():
    begun = []

    def work(item):
        begun.append(item)
        if item == 0:
            raise ValueError("wrong")
        time.sleep(0.05)

    with pytest.raises(ValueError, match="wrong"):
        list(in_threads(work, range(100), 2, pile_up=True))
    assert len(begun) < 20
