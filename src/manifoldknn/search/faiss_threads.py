"""faiss, with as many threads as asked for."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from manifoldknn.base.threads import thread_count


@contextmanager
def faiss_threads(n_jobs: int | None) -> Iterator[Any]:
    """Yield faiss, limited to some threads inside the block; all cores by default."""
    with warnings.catch_warnings():
        # Older builds of faiss import parts of numpy under names that have moved.
        warnings.simplefilter("ignore", DeprecationWarning)
        import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(thread_count(n_jobs))
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)
