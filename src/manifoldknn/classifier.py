"""The manifold k-nearest-neighbour classifier: neighbours → graph → walk → vote."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from manifoldknn.cautions import usable_graph_neighbors, warn_about_labels
from manifoldknn.exceptions import warn_caller
from manifoldknn.gpu.tensors import is_tensor
from manifoldknn.graph import candidate_count
from manifoldknn.growing import GrowingIndex
from manifoldknn.labels import EncodedLabels, encode_labels
from manifoldknn.offmanifold import OwnResiduals
from manifoldknn.online import Geometry, OnlineMixin
from manifoldknn.parameters import check_class_prior, check_parameters
from manifoldknn.progress import CallbackSupportMixin, Stages, spoken, with_callbacks
from manifoldknn.searchers import check_enough
from manifoldknn.steps import choose_steps
from manifoldknn.vote import class_mass_factors
from manifoldknn.voters import LabelWalk


class ManifoldKNNClassifier(OnlineMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classify rows by the labelled samples nearest along the data's own shape.

    A constrained tired random walk over a graph of *all* samples, labelled or
    not, measures similarity; the `n_neighbors` labelled samples with the largest
    walk weights vote. New rows are classified by local reconstruction, without
    learning again [1]_. Features should have comparable scales: scale them to
    [0, 1] first.

    Parameters
    ----------
    n_neighbors : int, default=5
        Labelled samples that vote for a row; all of them if there are fewer.
    graph : {"pruned", "union", "full"}, default="pruned"
        Pairs of samples that are linked. "union": one is among the other's
        `graph_neighbors` nearest. "pruned": each is among the other's nearest, or one
        among the other's three nearest, plus a spanning tree that keeps the graph
        connected. "full": every pair, as in
        the paper; O(n²) memory and O(n³) time.
    graph_neighbors : int, default=10
        Neighbours per sample in the graph, in the strengthened tree and in the
        reconstruction of new rows. With fewer other samples, all of them.
    sigma : float or "auto", default="auto"
        Width of the Gaussian kernel exp(-d²/2σ²). "auto" takes
        0.75·√(median(d₇² - d₁²)), d_q the distance to the q-th neighbour.
    alpha : float, default=0.99
        Share of strength the walker keeps per step, in (0, 1).
    tree_depth : int, default=2
        Levels of the strengthened tree below each labelled sample; 0: no tree.
    theta : float, default=0.1
        Strength of that tree, as a share of the largest admissible one.
    metric : str or callable, default="euclidean"
        Distance between rows. Reconstruction of new rows is always Euclidean, on
        rows of length 1 for "cosine".
    neighbors : str, searcher, (indices, distances) or sparse matrix, default="auto"
        Who finds neighbours. "exact": every pair counts. "inverted": approximate, on
        inverted lists (faiss) widened until a sample of rows finds at least 97 % of
        its 30 nearest; Euclidean or cosine, dense X. "auto": exact up to some
        thousand rows, then inverted. Or a searcher with ``fit`` and ``kneighbors``, like
        scikit-learn's `NearestNeighbors`, or ``transform`` to sparse distances, like
        `KNeighborsTransformer`. Fitted on the same X it is used as it is, and should
        not be fitted again while the model lives; fitted on anything else it is refused;
        otherwise a clone is fitted (scikit-learn's `clone`, and so a grid search, forgets
        what was fitted). It should have the same metric: a `MetricWarning` says so where
        it has not. Or neighbours of every row found
        before, as two arrays or as the sparse distances of `kneighbors_graph`. Bring
        30 per row and itself: the pruned graph's spanning tree is taken from them.
    unlabeled : object, default="auto"
        What marks an unlabelled row in y. "auto": -1 among integers; "" among
        strings. None, NaN and NA always do.
    on_unreached : {"nearest", "abstain", "raise"}, default="nearest"
        Answer for rows that no labelled sample reaches: the class of the nearest
        labelled sample, the unlabelled marker (with equal probabilities), or
        an error.
    class_prior : None, "labeled" or array-like of shape (n_classes,), default=None
        Class-mass normalisation: multiply the scores of class c by prior_c / mass_c,
        mass_c being its share of all scores of the unlabelled rows. A vector holds
        one positive number per class in the order of `classes_`. "labeled" takes the
        shares of the labelled rows; right only if those were drawn at random.
    tol : float, default=1e-3
        Error allowed in a walk weight, relative to the largest weight of the
        same row, however small that is. Conjugate gradients check it for every row, and
        where most rows are labelled what is left out of their sums is bounded by it;
        where the graph is factorised (the full graph, and where labels are many or the
        graph is flat) weights are accurate to rounding. On all of MNIST 0.1 changes 0.01 %
        of the labels against 1e-9 and saves a fifth of the time; 0.01 and less change none.
        Precision follows from it: single where that is enough, corrected in double.
    max_iter : int, default=1000
        Limit on conjugate-gradient iterations per block of labels.
    n_jobs : int, optional
        Threads of the neighbour search and of the walk; all cores by default. The
        answer does not depend on it.
    device : {"auto", "cpu", "cuda", "cuda:N", "mps"} or torch.device, default="auto"
        Where to compute; all but the CPU need ``manifoldknn[gpu]``, which is PyTorch.
        "auto": on the CPU, unless X is a tensor on a GPU. `predict` runs where the fit
        did; another device set by ``set_params`` takes effect with the next walk. X and y
        may be tensors anywhere; what comes back are NumPy arrays. On a GPU:
        dense X, metric "euclidean" or "cosine", graph "pruned" or "union". ("mps" has no
        double precision: there only products of the search run on the GPU.)
    random_state : int, RandomState instance or None, default=None
        Seeds the approximate neighbour search. None is a fixed seed: two fits give
        the same answer.
    verbose : int, default=0
        1: say on standard error which stage is running and how long it took, and every two
        seconds how long a neighbour search or a walk will still take, or the iterations and
        the residual of the walk. 2: also residuals and rows of every step of the walk.
        (scikit-learn's callbacks work too, where the installed version has them.)

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    transduction_ : ndarray of shape (n_samples,)
        A label for every row, of the fitted X and of those taken in since, in the order
        of arrival; labelled rows keep theirs.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Class shares of the vote for every row, labelled ones included.
    labeled_indices_ : ndarray of int
        Labelled rows.
    sigma_ : float
        The kernel width used.
    unreached_ : ndarray of bool of shape (n_samples,)
        Rows that no labelled sample reaches.
    n_walked_ : int
        Rows that the last walk went over; later ones joined by reconstruction.
    n_iter_ : int
        Iterations of the walk, over all its blocks of labels; 1 where the graph was
        factorised.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had string column names.

    Notes
    -----
    A new row's weights combine those of its neighbours. The weights of all labelled
    samples are kept for that up to 8 million of them (rows times labels); beyond,
    the 64 heaviest of each row, or 4·`n_neighbors`, and the others count as 0.

    References
    ----------
    .. [1] E. Tu, Y. Zhang, L. Zhu, J. Yang, N. Kasabov. "A graph-based
       semi-supervised k nearest-neighbor method for nonlinear manifold distributed
       data classification". Information Sciences 367-368 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from manifoldknn import ManifoldKNNClassifier
    >>> X, truth = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.full(200, -1)
    >>> for c in (0, 1):
    ...     y[np.flatnonzero(truth == c)[:3]] = c
    >>> clf = ManifoldKNNClassifier().fit(X, y)
    >>> float((clf.transduction_ == truth).mean())
    1.0
    >>> clf.predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        graph: str = "pruned",
        graph_neighbors: int = 10,
        sigma: float | str = "auto",
        alpha: float = 0.99,
        tree_depth: int = 2,
        theta: float = 0.1,
        metric: Any = "euclidean",
        neighbors: Any = "auto",
        unlabeled: Any = "auto",
        on_unreached: str = "nearest",
        class_prior: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        device: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.graph_neighbors = graph_neighbors
        self.sigma = sigma
        self.alpha = alpha
        self.tree_depth = tree_depth
        self.theta = theta
        self.metric = metric
        self.neighbors = neighbors
        self.unlabeled = unlabeled
        self.on_unreached = on_unreached
        self.class_prior = class_prior
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> Self:
        """Classify the unlabelled rows of X and remember how.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            All samples, labelled and unlabelled.
        y : array-like of shape (n_samples,)
            Labels; -1, None, NaN, NA or "" (or `unlabeled`) where there is none.

        Returns
        -------
        self : ManifoldKNNClassifier
            Fitted.
        """
        with self._all_or_nothing(), spoken(self.verbose):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any, *, in_stream: bool = False) -> Self:
        check_parameters(self.get_params(deep=False))
        self._row_index = X.index if hasattr(X, "iloc") else None
        self._steps = choose_steps(self.device, X)
        X = self._steps.samples(self, X, y)
        if in_stream:  # who streams uses one buffer again and again
            X = X.clone() if is_tensor(X) else X.copy()
        labels = encode_labels(y, unlabeled=self.unlabeled)
        stages = Stages(None if in_stream else self, 4, X, y)
        self._learn(X, labels, stages, None, self.neighbors, in_stream=in_stream)
        stages.end()
        return self

    def _learn(
        self,
        X: Any,
        labels: EncodedLabels,
        stages: Stages,
        geometry: Geometry | None,
        search: Any,
        in_stream: bool = True,
    ) -> None:
        """Neighbours → graph → walk → vote; if `geometry` is known, nobody has to `search`."""
        prior = check_class_prior(self.class_prior, labels.codes, labels.classes)
        graph_neighbors = usable_graph_neighbors(self.graph_neighbors, X.shape[0])
        self._steps.check(
            X,
            search if geometry is None else None,
            len(labels.labeled),
            metric=self.metric,
            n_classes=len(labels.classes),
            n_neighbors=self.n_neighbors,
            graph=self.graph,
            graph_neighbors=graph_neighbors,
            n_jobs=self.n_jobs,
        )
        warn_about_labels(labels, everything=not in_stream)
        pairs: dict[str, Any] = {
            "graph": self.graph,
            "graph_neighbors": graph_neighbors,
            "metric": self.metric,
        }

        with stages.stage("neighbours"):
            found = geometry or self._searched(X, search, graph_neighbors)
            neighbors = found.lists
        with stages.stage("graph"):
            built = self._steps.graph(
                X,
                neighbors,
                labels.codes,
                edges=found.edges,
                sigma=self.sigma,
                tree_depth=self.tree_depth,
                theta=self.theta,
                n_jobs=self.n_jobs,
                **pairs,
            )
        with stages.stage("walk"):
            self.classes_, self._labels = labels.classes, labels
            self.labeled_indices_ = labels.labeled
            self._index, self._lists, self._edges = found.index, neighbors, built.edges
            self._lists_as_new = found.as_new
            self._settings = self._list_settings()
            self._graph = built.graph
            self._walk = self._walk_from_labels()
            self._arrivals, self._own = None, OwnResiduals(X.shape[0])
        with stages.stage("vote"):
            self.sigma_ = built.sigma
            self.n_iter_, self.n_walked_ = self._walk.n_iter, X.shape[0]
            self._class_factors = np.ones(len(labels.classes))
            if prior is not None:
                unlabeled = self._walk.nearest.rows(labels.codes < 0)
                self._class_factors = class_mass_factors(self._shares(unlabeled), prior)
            shares, codes, unreached = self._answer(self._walk.nearest, X)
            codes[labels.labeled] = labels.codes[labels.labeled]
            self.label_distributions_ = shares
            self.transduction_ = labels.decode(codes)
            self.unreached_ = unreached

    def _searched(self, X: Any, search: Any, graph_neighbors: int) -> Geometry:
        """Search the neighbours of every row."""
        how = {"metric": self.metric, "n_jobs": self.n_jobs, "seed": self._seed()}
        index = GrowingIndex(self._steps.open_index(X, search, **how))
        count = candidate_count(self.graph, graph_neighbors, X.shape[0])
        neighbors = self._steps.lists(index, count)
        if not np.isfinite(neighbors.distances).all():
            raise ValueError(
                f"metric={self.metric!r} gave distances that are not finite: check it, or "
                "rescale X."
            )
        check_enough(neighbors, graph_neighbors)
        return Geometry(index, neighbors, None, as_new=True)

    def _walk_from_labels(self, by_class: bool | None = None) -> LabelWalk:
        walk = self._steps.walk(
            self._graph,
            self.labeled_indices_,
            self._labels.codes[self.labeled_indices_],
            n_neighbors=self.n_neighbors,
            alpha=self.alpha,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            by_class=by_class,
        )
        if not walk.converged:
            warn_caller(
                f"The walk did not reach tol={self.tol} (max_iter={self.max_iter}): raise tol, "
                "raise max_iter or lower alpha. Until then some answers may be wrong.",
                ConvergenceWarning,
            )
        return walk

    def predict(self, X: Any) -> NDArray[Any]:
        """Classify new rows by reconstruction from their neighbours.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_queries,)
            Labels; the unlabelled marker where the classifier abstains.

        Notes
        -----
        The model stays as it is. Rows are worked on in chunks: beside the rows and their
        answers a batch takes less than 100 MB, on a GPU a quarter of what is free there.
        """
        _, codes = self._predicted(self._rows_to_predict(X), with_shares=False)
        return self._labels.decode(codes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the class shares of the vote for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_queries, n_classes)
            Shares in the order of `classes_`; rows sum to 1.
        """
        return self._predicted(self._rows_to_predict(X), with_shares=True)[0]

    def kneighbors(self, X: Any = None) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Tell which labelled samples vote for a row, and with what weight.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it, the fitted rows themselves.

        Returns
        -------
        weights : ndarray of shape (n_queries, k)
            Walk weights w̄, largest first, k the smaller of `n_neighbors` and the
            number of labelled samples.
        indices : ndarray of shape (n_queries, k)
            Rows of the fitted X. Where all weights are 0 nobody voted: the row is
            unreached.
        """
        check_is_fitted(self)
        nearest = self._nearest_by_label()
        if X is not None:
            nearest = self._reconstructed(self._new_rows(X), nearest)
        k = min(self.n_neighbors, len(self.labeled_indices_))
        return nearest.absolute_weights(k), self.labeled_indices_[nearest.voters[:, :k]]

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
