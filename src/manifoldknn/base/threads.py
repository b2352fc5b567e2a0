"""Work shared out over threads."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Self

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController


def single_threaded_products() -> AbstractContextManager[Any]:
    """Return a context in which the matrix libraries use one thread.

    Threads of our own and threads of theirs would get in each other's way.
    """
    # Looking for the libraries takes milliseconds, and new ones come with new modules.
    return _libraries(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _libraries(_n_modules: int) -> Any:
    return ThreadpoolController()


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` means: as in scikit-learn, but None means all cores."""
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))


def in_threads(
    work: Callable[[Any], Any], items: Iterable[Any], n_jobs: int | None, *, pile_up: bool = False
) -> Iterator[Any]:
    """Yield work(item) in order, a few items ahead: results do not pile up.

    They may where they are small: then no thread waits for an item that takes long. The work
    should spend its time where Python's lock is released: in NumPy and SciPy; the results are the
    same for any number of threads. `n_jobs` is as in scikit-learn, but None means all cores.

    >>> list(in_threads(abs, [-1, 2, -3], n_jobs=2))
    [1, 2, 3]
    """
    items = list(items)
    threads = min(thread_count(n_jobs), len(items)) if len(items) > 1 else 1
    if threads == 1:
        yield from map(work, items)
        return
    with single_threaded_products(), ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Any]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > threads and not pile_up:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:  # after an error nobody waits for the others
            pool.shutdown(wait=False, cancel_futures=True)


class Crew:
    """Threads that do many small pieces of work, one batch after the other.

    `n_jobs` is as in scikit-learn, but None means all cores.

    >>> done = []
    >>> with Crew(2) as crew:
    ...     crew.do(done.append, [1, 2, 3])
    >>> sorted(done), len(crew)
    ([1, 2, 3], 2)
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._size = thread_count(n_jobs)
        self._pool: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return self._size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def do(self, work: Callable[[Any], Any], items: list[Any]) -> None:
        """Work on all items, and wait until that is done."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._size)
        for _ in self._pool.map(work, items):
            pass
