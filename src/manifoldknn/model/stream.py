"""Learning from a stream: rows and labels that come after the fit (section 5 of the paper).

Unlabelled rows are classified by reconstruction and join the model at once:
later rows lean on them. Their price is that of a prediction. A label changes
the graph (a class is tied together by it, others cut apart, degrees and with
them every step of the walk change), so a label means a walk over the grown
graph; who is near whom is not searched again.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base.labels import EncodedLabels, encode_further, encode_labels
from manifoldknn.base.parameters import check_parameters
from manifoldknn.base.progress import Stages, spoken
from manifoldknn.base.tensors import as_numpy, named
from manifoldknn.graph.constrained import candidate_count
from manifoldknn.graph.links import HandLinks, check_links
from manifoldknn.graph.spanning import Edges
from manifoldknn.model.arrivals import UNKNOWN, Arrivals
from manifoldknn.model.fitted import list_settings, search_seed
from manifoldknn.model.quality import QualityMixin
from manifoldknn.search.growing import GrowingArray, GrowingIndex
from manifoldknn.search.neighbors import Neighbors
from manifoldknn.search.searchers import is_searcher, searcher_for
from manifoldknn.vote.similarities import combined
from manifoldknn.vote.votes import ClassVote

if TYPE_CHECKING:
    from manifoldknn.device.steps import Steps

_REFRESH_SHARE = 5  # refresh when a fifth as many rows have come as the walk went over,
_LEAST_ODD = 10  # or when this many, and one in a hundred of those, were off the manifold
_ODD_SHARE_OF_WALKED = 100
_ODD_SHARE_OF_ARRIVALS = 10  # and more than a tenth of all that came


@dataclass(frozen=True)
class Geometry:
    """Who is near whom: what does not depend on labels."""

    index: GrowingIndex  # search over all rows
    lists: Neighbors  # neighbours of every row
    edges: Edges | None  # pairs that the third rule links, if known
    as_new: bool  # whether the lists are what a new search would find


def refresh_is_due(n_walked: int, n_arrived: int, n_odd: int) -> bool:
    """Tell whether ``refresh="auto"`` walks again, `n_odd` arrivals having been off the manifold.

    It does when the model has grown by a fifth, so that walks cost a constant share of time per row
    however long the stream is; or when the stream has moved: more than a tenth of what came, at
    least 10 rows and a hundredth of what was walked, was off the manifold.

    >>> refresh_is_due(1000, 199, 0), refresh_is_due(1000, 200, 0)
    (False, True)
    >>> refresh_is_due(1000, 100, 10), refresh_is_due(1000, 99, 10)
    (False, True)
    """
    if _REFRESH_SHARE * n_arrived >= n_walked:
        return n_arrived > 0
    least = max(_LEAST_ODD, n_walked / _ODD_SHARE_OF_WALKED)
    return n_odd >= least and _ODD_SHARE_OF_ARRIVALS * n_odd > n_arrived


class OnlineMixin(QualityMixin):
    """Methods that change a fitted model: all of a change happens, or nothing."""

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, *, refresh: bool | str = "auto"
    ) -> Self:
        """Take more rows in, labelled or not.

        Rows without labels are classified from what the model knows and become part
        of it; a chunk with labels makes the model walk again over the grown graph, so that
        the labels take effect on everything. New classes are welcome.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            New rows; the first call may bring the first rows.
        y : array-like of shape (n_new,), optional
            Labels; -1, None, NaN, NA or "" (or `unlabeled`) where there is none. Without
            it, no row is labelled.
        classes : array-like, optional
            All labels that may come, as other classifiers need them; here only a check.
        refresh : {"auto", True, False}, default="auto"
            Whether to walk again although there are no labels. "auto": when the model has
            grown by a fifth since the last walk, or when more than a tenth of the rows
            since, at least 10 and a hundredth of those walked over, was off the manifold.

        Returns
        -------
        self : ManifoldKNNClassifier
            `transduction_` and the other attributes of rows have grown by the new rows, in
            the order of arrival. After an exception the model is as it was.

        Notes
        -----
        m unlabelled rows cost what predicting them does, plus one copy of the vectors with
        a number per row. Labels cost a walk from all labelled samples, and for an exact
        search O(n·m·d) for the neighbours of m rows that came since the last one.
        Parameters changed by ``set_params`` take effect with the next walk. As with other
        estimators, other threads should not predict while the model is being changed.
        """
        if not (isinstance(refresh, bool | np.bool_) or (refresh == "auto")):
            raise ValueError(f"refresh={refresh!r} must be 'auto', True or False.")
        with self._all_or_nothing(), spoken(self.verbose):
            if not hasattr(self, "classes_"):
                return self._first_chunk(X, y, classes)
            X = self._new_rows(X)
            known, codes = self._further_labels(y, X.shape[0], classes)
            if (codes >= 0).any() or self._settings_changed():
                self.fitted_ = replace(self.fitted_, index=self.fitted_.index.appended(X))
                labels = replace(known, codes=np.concatenate([known.codes, codes]))
                self._relearn(labels, search=refresh is True)
                return self
            self._take_in(X)
            if refresh is True or (refresh == "auto" and self._refresh_is_due()):
                self._relearn(self.fitted_.labels, search=True)
        return self

    def set_labels(self, indices: Any, y: Any) -> Self:
        """Label rows that the model has already, or correct or withdraw their labels.

        Parameters
        ----------
        indices : array-like of int, or mask
            Rows in the order in which they came: those of `fit` first.
        y : array-like of the same length, or one label for all
            Labels; -1, None, NaN, NA or "" (or `unlabeled`) withdraws one. New classes are
            welcome; one that loses its last label is forgotten.

        Returns
        -------
        self : ManifoldKNNClassifier
            The labels have taken effect on everything. After an exception the model is as
            it was.

        Notes
        -----
        Costs a walk from all labelled samples; if rows came since the last one, they join
        the graph as by `partial_fit` with labels.
        """
        check_is_fitted(self)
        rows, y = self._checked_rows(as_numpy(indices)), as_numpy(y)
        single = y is None or np.ndim(y) == 0
        if isinstance(y, np.ndarray) and single:
            y = y[()]
        known, codes = encode_further(
            [y] * len(rows) if single else y, self.fitted_.labels, unlabeled=self.unlabeled
        )
        if len(codes) != len(rows):
            raise ValueError(
                f"indices and y have different lengths, {len(rows)} and {len(codes)}: pass one "
                "label per row, or a single one for all."
            )
        if not len(rows):
            return self
        joint = known.codes.copy()
        joint[rows] = codes
        with self._all_or_nothing(), spoken(self.verbose):
            self._relearn(known.relabeled(joint), search=False)
        return self

    def refresh(self) -> Self:
        """Walk over everything seen so far, as if it had been there from the first.

        Returns
        -------
        self : ManifoldKNNClassifier
            What `fit` on all rows and labels, in the order of arrival, would give: the same
            weights with an exact neighbour search, whatever the chunks were; with an
            approximate search also that of `fit`, which looks at rows in their order. (Of
            neighbours that are equally far, those that came first count, here and in `fit`.)

        Notes
        -----
        Costs a walk, and the neighbours of the rows that came since the last one: with an
        exact search O(n·m·d) for m rows; other searches are opened anew. The walk starts
        afresh: where it begins would show in the last digits.
        """
        check_is_fitted(self)
        with self._all_or_nothing(), spoken(self.verbose):
            self._relearn(self.fitted_.labels, search=True)
        return self

    @abstractmethod
    def _learn(
        self, steps: Steps, X: Any, labels: EncodedLabels, stages: Stages,
        geometry: Geometry | None, search: Any, *, links: HandLinks,
        start: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
        """Build the graph, walk and vote."""

    @abstractmethod
    def _steps_for(self, X: Any) -> Steps:
        """Return the steps of the method on the machine that samples are for."""

    @abstractmethod
    def _fit(self, X: Any, y: Any, *, in_stream: bool = False) -> Self:
        """Fit from scratch."""

    def _parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return parameters

    def _first_chunk(self, X: Any, y: Any, classes: Any) -> Self:
        if y is None:
            raise ValueError(
                "y is None, but the first chunk needs at least one labelled row: pass y, with -1 "
                "(or None) where a row is unlabelled, or call fit."
            )
        check_parameters(self._parameters())
        labels = encode_labels(y, unlabeled=self.unlabeled)
        _check_announced(labels.classes, classes, self.unlabeled)
        return self._fit(X, y, in_stream=True)

    def _further_labels(
        self, y: Any, n_rows: int, classes: Any
    ) -> tuple[EncodedLabels, NDArray[np.intp]]:
        if y is None:
            return self.fitted_.labels, np.full(n_rows, -1, dtype=np.intp)
        known, codes = encode_further(y, self.fitted_.labels, unlabeled=self.unlabeled)
        if len(codes) != n_rows:
            raise ValueError(
                f"X and y have inconsistent numbers of samples: {n_rows} rows and {len(codes)} "
                "labels. Pass one entry of y per row of X, -1 (or None) where it is unlabelled."
            )
        _check_announced(known.classes[np.unique(codes[codes >= 0])], classes, self.unlabeled)
        return known, codes

    def _checked_rows(self, indices: Any) -> NDArray[np.intp]:
        n = self.fitted_.index.n_samples
        rows = np.atleast_1d(np.asarray(indices))
        if rows.dtype == np.bool_ and rows.shape == (n,):
            return np.flatnonzero(rows)
        if rows.shape == (0,):
            return np.empty(0, dtype=np.intp)
        whole = rows.ndim == 1 and rows.dtype.kind in "iu"
        if not whole or ((rows < 0) | (rows >= n)).any():
            raise ValueError(
                f"indices must hold row numbers from 0 to {n - 1}, or be a mask of all {n} rows."
            )
        if len(np.unique(rows)) < len(rows):
            raise ValueError("indices names a row twice: give every row one label.")
        return rows.astype(np.intp)

    def _take_in(self, X: Any) -> None:
        """Let unlabelled rows join."""
        made = self._made(X)
        found = combined(made.z, made.indices, self.fitted_.walk.similarities)
        shares, codes, unreached = self._answer(found, X)
        odd = np.full(len(codes), UNKNOWN, dtype=np.int8)  # dear, so only when somebody asks
        before = self.fitted_.arrivals
        if before is None:
            before = Arrivals.none(
                self.fitted_.walk.similarities, self.label_distributions_, self.graph_neighbors
            )
        arrivals = before.joined_by(made, found, shares, odd)
        index = self.fitted_.index.appended(X)
        if index.is_crowded and not self._lists_were_brought():
            index = GrowingIndex(self._opened(index.X))
        unknown = np.full(len(codes), -1, dtype=np.intp)
        labels = self.fitted_.labels
        self.fitted_ = replace(
            self.fitted_,
            arrivals=arrivals,
            index=index,
            walk=replace(self.fitted_.walk, similarities=arrivals.similarities),
            labels=replace(labels, codes=np.concatenate([labels.codes, unknown])),
        )
        self.label_distributions_ = arrivals.shares.values
        self.transduction_ = np.concatenate([self.transduction_, self.fitted_.labels.decode(codes)])
        self.unreached_ = np.concatenate([self.unreached_, unreached])

    def _refresh_is_due(self) -> bool:
        arrivals = self.fitted_.arrivals
        if arrivals is None:
            return False
        if refresh_is_due(arrivals.n_walked, len(arrivals), 0):
            return True
        odd = arrivals.off_manifold.values
        unknown = np.flatnonzero(odd == UNKNOWN)
        if unknown.size:
            odd = odd.copy()
            odd[unknown] = self._own_oddities(arrivals.n_walked + unknown) > self._limit()
            grown = replace(arrivals, off_manifold=GrowingArray(odd))
            self.fitted_ = replace(self.fitted_, arrivals=grown)
        return refresh_is_due(arrivals.n_walked, len(arrivals), int(odd.sum()))

    def _relearn(self, labels: EncodedLabels, *, search: bool) -> None:
        check_parameters(self._parameters())
        geometry = self._known_geometry(search=search)
        X = self.fitted_.index.X if geometry is None else geometry.index.X
        steps, row_index = self.fitted_.steps, self.fitted_.row_index
        if self.fitted_.settings[-1:] != (
            named(self.device),
        ):  # else it stays, also where that is gone
            steps = self._steps_for(X)
        searcher = self.neighbors if geometry is not None else searcher_for(self.neighbors, X)
        check_links(self.fitted_.links, labels.codes, labels.classes)
        # A refresh is what a fit would be, to the last bit; a label may begin where the model is.
        start = None if search else self._guess(labels)
        self._learn(
            steps, X, labels, Stages(None, 4, X, None), geometry, searcher,
            links=self.fitted_.links, start=start,
        )  # fmt: skip
        self.fitted_ = replace(self.fitted_, row_index=row_index)

    def _guess(self, labels: EncodedLabels) -> NDArray[np.float64] | None:
        """Return log f as the model knows it, for the classes there are now."""
        known = self.fitted_.walk.similarities
        if not isinstance(self.fitted_.vote, ClassVote):
            return None
        guess = np.full((len(labels.codes), len(labels.classes)), -np.inf)
        place = {name: column for column, name in enumerate(self.classes_.tolist())}
        for column, name in enumerate(labels.classes.tolist()):
            if name in place:
                guess[: len(known.logs), column] = known.logs[:, place[name]] + known.log_scale
        return guess

    def _known_geometry(self, *, search: bool) -> Geometry | None:
        """Return what need not be searched again: index, neighbours and edges of all rows.

        With `search`, only what a new search would find as well.
        """
        index, lists = self.fitted_.index, self.fitted_.lists
        n, n_listed = index.n_samples, len(lists.indices)
        brought = self._lists_were_brought()
        if self._settings_changed():
            return None
        if n_listed == n and (self.fitted_.lists_as_new or brought or not search):
            return Geometry(index, lists, self.fitted_.edges, self.fitted_.lists_as_new)
        exact = index.first.is_exact and self._searches_exactly(index)
        if not brought and ((search and not exact) or index.first.n_samples > n_listed):
            return None
        if not brought and not exact and index.is_crowded:
            return None
        count = candidate_count(self.graph, self.graph_neighbors, n)
        if lists.indices.shape[1] < min(count, n_listed - 1) and not brought:
            return None
        lists = index.grown_lists(lists, count)
        if exact:
            index = GrowingIndex(self._opened(index.X))
        return Geometry(index, lists, None, exact)

    def _settings_changed(self) -> bool:
        """Tell whether parameters that neighbours and edges follow from are others now."""
        return self.fitted_.settings != list_settings(self)

    def _lists_were_brought(self) -> bool:
        return not isinstance(self.neighbors, str) and not is_searcher(self.neighbors)

    def _searches_exactly(self, index: GrowingIndex) -> bool:
        """Tell whether a search over all rows would be exact."""
        if self.neighbors == "auto":
            shape = (index.n_samples, index.template.shape[1])
            return self.fitted_.steps.searches_exactly(index.template, self.metric, shape)
        return bool(self.neighbors == "exact")

    def _opened(self, X: Any) -> Any:
        """Return a search over more rows than there were."""
        return self.fitted_.steps.open_index(
            X,
            "auto" if self._lists_were_brought() else searcher_for(self.neighbors, X),
            metric=self.metric,
            n_jobs=self.n_jobs,
            seed=search_seed(self),
        )


def _check_announced(used: NDArray[Any], classes: Any, unlabeled: Any) -> None:
    """Raise ValueError if `classes` was given and lacks one that is used."""
    if classes is None or not len(used):
        return
    announced = encode_labels(classes, unlabeled=unlabeled).classes
    missing = np.setdiff1d(used, announced)
    if missing.size:
        raise ValueError(
            f"y holds {missing.tolist()[0]!r}, which classes does not: name all classes there, or "
            "leave classes out, since new ones are welcome."
        )
