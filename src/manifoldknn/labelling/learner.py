"""A model that learns in the background while people label, and says which rows come next."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from threading import Condition, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph
from sklearn.exceptions import ConvergenceWarning

from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.exceptions import ManifoldKNNWarning
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.insight.candidates import Candidates
from manifoldknn.insight.ground import Ground, walked_ground
from manifoldknn.insight.label_errors import find_label_errors
from manifoldknn.insight.layout import framed_places
from manifoldknn.insight.suggestions import reasons, uncertainty
from manifoldknn.labelling.journal import JournalError

logger = logging.getLogger("manifoldknn")

_NOBODY = "\0"  # class of the stand-in: a graph is made for labels, and there may be none yet
_QUEUE = 200  # rows
# Rows that are walked from to rank others: fewer where walks over many rows take long.
_MOST, _FEWEST, _STEPS = 2000, 300, 1e7
_SOON = 0.5  # seconds: a fit that hides labels and takes no longer is always made
_IDLE = 4.0  # seconds without news, after which slower things are done
# Products with the graph while somebody waits, at least, and as a share of what a whole walk takes:
# each walk goes on where the last one ended, so that hardly an answer differs.
_QUICK, _QUICK_SHARE = 25, 1 / 6
_GATHERED = 0.05  # of the seconds that learning takes: labels as close as that come together
_OFTEN = 10  # quick fits, after which labels are hidden though somebody waits
_DOUBTS = 200
_RECENT, _LITTLE, _EACH = 10, 0.005, 3  # labels, share of answers, labels per class


@dataclass(frozen=True)
class Answers:
    """What the model says of all rows."""

    number: int  # of the last entry that it took in
    classes: list[str]
    codes: NDArray[np.intp]  # places in `classes`
    shares: NDArray[np.float32]


@dataclass(frozen=True)
class Step:
    """What one round of learning brought: a point of the curves that are shown."""

    labels: int
    changed: int  # answers, of rows without a label
    open: int  # answers that are likely wrong, by their own probabilities
    seconds: float  # from the label to the answers
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass
class _Judged:
    """What is found beside the learning of new labels."""

    clf: ManifoldKNNClassifier
    known: dict[int, str]  # its labels
    seconds: float = 0.0
    doubts: list[dict[str, Any]] = field(default_factory=list)
    candidates: Candidates | None = None
    error: Exception | None = None


@dataclass
class News:
    """Everything that the learner has to tell; `version` counts up whenever something is new."""

    version: int = 0
    answers: Answers | None = None
    queue: dict[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    doubts: list[dict[str, Any]] = field(default_factory=list)
    places: NDArray[np.float64] | None = None
    working: str = "searching neighbours"
    error: str = ""


class Learner:
    """Learns in a thread of its own.

    `labels` returns the number of the last entry, the labels that hold, and other rows that people
    have seen; `keep` is told every new queue before anybody sees it; `queue` is the one of an
    earlier session, if any.
    """

    def __init__(
        self,
        X: NDArray[Any],
        estimator: ManifoldKNNClassifier,
        labels: Callable[[], tuple[int, dict[int, str], list[int]]],
        keep: Callable[[dict[str, Any]], None],
        queue: dict[str, Any] | None = None,
    ) -> None:
        self.news = News()
        self._X, self._clf, self._labels, self._keep = X, estimator, labels, keep
        self._given: dict[str, Any] = {
            "sharpness": estimator.sharpness, "max_iter": estimator.max_iter,
        }  # fmt: skip
        self._quick = self._given  # parameters while somebody waits
        self._seconds, self._full_seconds = 0.0, np.inf  # of the last fit, and of one that judges
        self._judging = False
        self._judged: _Judged | None = None
        self._known: dict[int, str] = {}
        self._passed: list[int] = []  # rows that people have seen and left without a label
        self._n_quick = 0  # fits since one that hid labels
        self._bell, self._asked, self._stopped = Condition(), time.perf_counter(), False
        self._lengths: Any = None  # of the edges of the graph
        self._heard = -1  # number of the last entry that was learned from
        drawn = np.random.default_rng(0).permutation(len(X))[:_QUEUE].tolist()
        at_random = ["drawn at random: the graph is not ready yet"] * len(drawn)
        self._stored = queue or {"number": -1, "rows": drawn, "why": at_random}
        self.news.queue = self._stored
        self._thread = Thread(target=self._run, name="learner", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def tell(self) -> None:
        """Say that there are new labels."""
        with self._bell:
            self._asked = time.perf_counter()
            self._bell.notify()

    def stop(self) -> None:
        """End after the step that is under way."""
        with self._bell:
            self._stopped = True
            self._bell.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ManifoldKNNWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                self._begin()
                while not self._stopped:
                    self._wait_and_learn()
            except Exception as error:
                logger.exception("the learner of `label` has stopped")
                self._publish(error=f"{type(error).__name__}: {error}", working="")

    def _publish(self, **what: Any) -> None:
        with self._bell:
            self.news = replace(self.news, version=self.news.version + 1, **what)

    def nearest(self, row: int, labeled: NDArray[np.intp], n: int) -> NDArray[np.intp]:
        """Return the labelled rows to which the paths over the graph are shortest.

        Until there is a graph, and over one of all pairs, those whose features are nearest.
        """
        if self._lengths is None:
            gaps = self._X[labeled] - self._X[row]
            far = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
        else:
            far = csgraph.dijkstra(self._lengths, directed=False, indices=row)[labeled]
        return labeled[np.argsort(far, kind="stable")[:n]]

    # Beginning: neighbours, graph, who is near whom, a map.

    def _begin(self) -> None:
        self._learn(full=True)
        self._full_seconds = np.inf  # that was a search for neighbours too
        self._publish(working="choosing rows")
        self._ground = walked_ground(self._clf, uncertainty, None)
        self._lengths = _lengths(self._ground.graph)
        self._candidates = self._drawn(self._clf, self._known)
        self._rank()
        self._publish(working="drawing the map")
        self._publish(places=framed_places(self._clf.fitted_.lists.indices), working="")
        self._late = True  # whether slower things wait to be done

    def _drawn(self, clf: ManifoldKNNClassifier, known: dict[int, str]) -> Candidates:
        most = int(np.clip(_STEPS / len(self._X), _FEWEST, _MOST))
        self._drawn_at = max(20, len(known))
        return Candidates(self._now(clf, known), most, 0)

    def _now(self, clf: ManifoldKNNClassifier, known: dict[int, str]) -> Ground:
        """Return the ground with the labels that a classifier knows."""
        if _NOBODY in known.values():
            nobody = np.empty(0, dtype=np.intp)
            return replace(
                self._ground, labeled=nobody, doubt=np.ones(len(self._X)), classifier=None
            )
        return replace(
            self._ground,
            labeled=clf.labeled_indices_,
            doubt=uncertainty(clf),
            classifier=clf if len(clf.classes_) > 1 else None,
        )

    # Learning: as quickly as it goes while somebody waits, and in another thread what takes longer.

    def _wait_and_learn(self) -> None:
        with self._bell:
            self._bell.wait_for(self._has_work, timeout=self._patience())
            end = time.perf_counter() + _SOON
            while self._has_news() and time.perf_counter() < end:
                if not self._bell.wait(min(_GATHERED * self._seconds, _SOON)):
                    break
            if self._stopped:
                return
            fresh, judged, self._judged = self._has_news(), self._judged, None
        if judged is not None:
            self._take(judged)
        if fresh:
            self._learn(full=len(self._clf.classes_) < 2 or self._full_seconds < _SOON)
            self._rank()
            self._late = True
        idle = not fresh and judged is None
        if self._late and not self._judging and (idle or self._n_quick >= _OFTEN):
            self._late, self._judging = False, True
            asked = copy(self._clf), self._known
            Thread(target=self._judge, args=asked, name="judge", daemon=True).start()

    def _patience(self) -> float | None:
        """Return how many seconds nobody must have asked for anything before slower things."""
        if not self._late or self._judging:
            return None
        return _SOON if self._full_seconds < _SOON else _IDLE

    def _has_news(self) -> bool:
        return self._stopped or self._labels()[0] != self._heard

    def _has_work(self) -> bool:
        return self._judged is not None or self._has_news()

    def _judge(self, clf: ManifoldKNNClassifier, known: dict[int, str]) -> None:
        """Hide labels, look for doubtful ones, and draw rows to choose from."""
        judged, start = _Judged(clf, known), time.perf_counter()
        try:
            if clf.hidden_labels_ is None and len(clf.classes_) > 1:
                clf.set_params(**self._given)
                clf.set_labels(*(list(one) for one in zip(*known.items())))
                judged.seconds = time.perf_counter() - start
            if len(clf.classes_) > 1:
                found = find_label_errors(clf).to_dict()
                judged.doubts = [dict(zip(found, values)) for values in zip(*found.values())]
            if len(known) >= 2 * self._drawn_at:
                judged.candidates = self._drawn(clf, known)
        except Exception as error:
            judged.error = error
        with self._bell:
            self._judged = judged
            self._bell.notify()

    def _take(self, judged: _Judged) -> None:
        """Use what was judged: of the answers only how sure they are, if there are labels since."""
        self._judging = False
        if judged.error is not None:
            raise judged.error
        if judged.seconds:
            self._judged_by(judged.clf, judged.seconds)
        self._candidates = judged.candidates or self._candidates
        if judged.known == self._known:
            self._clf = judged.clf
            if len(self._clf.classes_) > 1:
                self._answer(self.news.steps[-1].seconds)
        steps = [
            _with_accuracy(step, judged.clf) if step.labels == len(judged.known) else step
            for step in self.news.steps
        ]
        self._publish(steps=steps, doubts=judged.doubts[:_DOUBTS])

    def _judged_by(self, clf: ManifoldKNNClassifier, seconds: float) -> None:
        """Learn quickly from now on, with what a whole fit has found out."""
        self._full_seconds, self._n_quick = seconds, 0
        if clf.vote == "classes":  # a guess to begin with is what makes it quick
            most = max(_QUICK, round(_QUICK_SHARE * clf.n_iter_))
            most = min(self._given["max_iter"], most)
            self._quick = {"sharpness": clf.sharpness_, "max_iter": most}

    def _learn(self, *, full: bool) -> None:
        start = time.perf_counter()
        asked = self._asked
        number, labels, self._passed = self._labels()
        wanted = labels or {0: _NOBODY}
        changed = {
            row: wanted.get(row, "")
            for row in sorted({*wanted, *self._known})
            if wanted.get(row) != self._known.get(row)
        }
        self._heard = number
        if not changed:
            return
        # Hidden labels teach how sure to be; without them the walk is all there is to do.
        self._clf.set_params(**(self._given if full else self._quick))
        if self._known:
            self._clf.set_labels(list(changed), list(changed.values()))
        else:
            y = np.full(len(self._X), "", dtype=object)
            y[list(changed)] = list(changed.values())
            self._clf.fit(self._X, y)
        self._known, self._n_quick = wanted, self._n_quick + 1
        self._seconds = time.perf_counter() - start
        if full:
            self._judged_by(self._clf, self._seconds)
        if len(self._clf.classes_) < 2:
            self._publish(answers=None)
        else:
            self._answer(time.perf_counter() - (asked if asked < start else start))

    def _answer(self, seconds: float) -> None:
        """Publish answers, and what changed by them."""
        answers = self._answered(self._heard)
        step = self._step(answers, seconds)
        steps = self.news.steps
        again = bool(steps) and steps[-1].labels == step.labels
        if again and steps[-1].changed > step.changed:  # the same labels, looked at more closely
            step = replace(step, changed=steps[-1].changed)
        self._publish(answers=answers, steps=[*(steps[:-1] if again else steps), step])

    def _answered(self, number: int) -> Answers:
        clf = self._clf
        codes = clf.fitted_.labels.numbers(clf.transduction_)
        shares = clf.label_distributions_.astype(np.float32)
        return Answers(number, [str(name) for name in clf.classes_], codes, shares)

    def _step(self, answers: Answers, seconds: float) -> Step:
        free = np.ones(len(self._X), dtype=bool)
        free[list(self._known)] = False
        names, before = np.array(answers.classes, dtype=object)[answers.codes], self.news.answers
        changed = int(free.sum())
        if before is not None:
            changed = int(
                (np.array(before.classes, dtype=object)[before.codes] != names)[free].sum()
            )
        open_ = round(float((1 - answers.shares.max(axis=1))[free].sum()))
        return _with_accuracy(Step(len(self._known), changed, open_, seconds), self._clf)

    def _rank(self) -> None:
        """Choose the next rows, unless an earlier session did that for the same labels."""
        if self._stored["number"] == self._heard:
            return
        ground = self._now(self._clf, self._known)
        seen = np.union1d(ground.labeled, np.array(self._passed, dtype=np.intp))
        rows, speaks_for = self._candidates.ranked(replace(ground, labeled=seen), _QUEUE)
        queue = {
            "number": self._heard,
            "rows": rows.tolist(),
            "why": reasons(ground, rows, speaks_for),
        }
        with suppress(JournalError):  # who labels next is told
            self._keep(queue)
        self._stored = queue
        self._publish(queue=queue)


def _with_accuracy(step: Step, clf: ManifoldKNNClassifier) -> Step:
    """Return a step with the accuracy to expect, if labels were hidden to know it."""
    hidden = clf.hidden_labels_
    if hidden is None or np.isnan(hidden.accuracy):
        return step
    low, high = hidden.interval()
    return replace(step, accuracy=float(hidden.accuracy), low=float(low), high=float(high))


def _lengths(graph: ConstrainedGraph) -> Any:
    """Return the lengths of the edges of a sparse graph, but for their scale."""
    if not graph.is_sparse:
        return None
    lengths = graph.log_weights.copy()
    lengths.data = np.sqrt(np.maximum(-lengths.data, 1e-9))  # 0 would be no edge
    return lengths


def little_changes(steps: list[Step], per_class: dict[str, int], n_rows: int) -> bool:
    """Tell whether more labels would change little: every class has some, and answers stay.

    >>> steps = [Step(k, 0, 0, 0.1) for k in range(1, 14)]
    >>> [little_changes(steps, {"a": 6, "b": few}, 1000) for few in (6, 1)]
    [True, False]
    """
    if not steps or min(per_class.values(), default=0) < _EACH:
        return False
    recent = [step.changed for step in steps if step.labels > steps[-1].labels - _RECENT]
    return len(steps) > len(recent) and sum(recent) < max(_LITTLE * n_rows, 1)
