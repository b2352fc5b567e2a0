"""Telling what a long fit is doing: log lines, time left, scikit-learn's callbacks."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


logger = logging.getLogger("manifoldknn")

_BETWEEN_LINES = 2.0  # seconds
_last_line = [0.0]  # when it was written
_one_at_a_time = threading.Lock()
_watcher: ContextVar[tuple[dict[str, float], Callable[[], None]] | None] = ContextVar(
    "_watcher", default=None
)


@contextmanager
def timed_stages(
    seconds: dict[str, float], after: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Write down how long each stage of the fits inside takes, and do something after each."""
    token = _watcher.set((seconds, after))
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def spoken(verbose: int) -> Iterator[None]:
    """Let the package's log lines appear on standard error inside the block.

    `verbose` 0: nothing changes. 1: stages and time left. 2 and more: every step of the walk.
    """
    if not verbose:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("[manifoldknn] %(message)s"))
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.propagate = False  # or a user with logging of their own reads every line twice
    logger.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


class Stages:
    """The stages of a fit, as log lines and as tasks of scikit-learn's callbacks."""

    def __init__(self, estimator: Any, n_stages: int, X: Any, y: Any) -> None:
        self._estimator, self._data = estimator, {"X": X, "y": y}
        begin = getattr(estimator, "_init_callback_context", None)
        self._root = None if begin is None else begin(max_subtasks=n_stages)
        if self._root is not None:
            self._root.call_on_fit_task_begin(estimator=estimator, **self._data)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage and tell how long it took."""
        start = time.perf_counter()
        task = None
        if self._root is not None:
            task = self._root.subcontext(task_name=name)
            task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        _say("%s ...", name)
        yield
        taken = time.perf_counter() - start
        _say("%s: %.1f s", name, taken)
        watcher = _watcher.get()
        if watcher is not None:
            seconds, after = watcher
            seconds[name] = taken
            after()
        if task is not None:
            task.call_on_fit_task_end(estimator=self._estimator, **self._data)

    def end(self) -> None:
        """Tell callbacks that the fit is over."""
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._estimator, **self._data)


def countdown(items: Iterator[Any], total: int, what: str) -> Iterator[Any]:
    """Yield items, telling every two seconds how many are done and how long is left."""
    start = told = time.perf_counter()
    for done, item in enumerate(items, 1):
        yield item
        now = time.perf_counter()
        if now - told > _BETWEEN_LINES and done < total:
            told = now
            left = (now - start) / done * (total - done)
            _say("%d of %d %s, about %.0f s left", done, total, what, left)


def pulse(message: str, *values: Any) -> None:
    """Log a line from inside a long piece of work, unless there was one within two seconds.

    Any number of threads may call this as often as they like: together they write no more than one
    line every two seconds.
    """
    if not logger.isEnabledFor(logging.INFO):
        return
    with _one_at_a_time:
        due = time.perf_counter() - _last_line[0] > _BETWEEN_LINES
        if due:
            _say(message, *values)


def _say(message: str, *values: Any) -> None:
    _last_line[0] = time.perf_counter()
    logger.info(message, *values)
