"""The manifold k-nearest-neighbour classifier: neighbours → graph → walk → vote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base.heap import return_freed_memory
from manifoldknn.base.labels import EncodedLabels, encode_labels
from manifoldknn.base.parameters import check_parameters
from manifoldknn.base.progress import CallbackSupportMixin, Stages, spoken, with_callbacks
from manifoldknn.base.tensors import as_numpy, is_tensor, named
from manifoldknn.device.steps import BuiltGraph, Steps, choose_steps
from manifoldknn.exceptions import warn_caller
from manifoldknn.extend.belonging import belonging_of
from manifoldknn.extend.offmanifold import OwnResiduals, ReconstructionError
from manifoldknn.graph.links import HandLinks, check_links, hand_links
from manifoldknn.model.answering import answered, new_rows, predicted, true_codes
from manifoldknn.model.cautions import usable_graph_neighbors, warn_about_labels, warned_of_far_rows
from manifoldknn.model.deciding import deciders
from manifoldknn.model.fitted import Fitted, all_or_nothing
from manifoldknn.model.geometry import (
    Geometry,
    known_geometry,
    list_settings,
    searched,
    settings_changed,
)
from manifoldknn.model.hidden_labels import hidden_labels
from manifoldknn.model.quality import errors_of, oddities_of, off_manifold_limit
from manifoldknn.model.rowids import grown_row_index, numbered_pairs, own_names
from manifoldknn.model.stream import (
    changed_labels,
    check_first_labels,
    first_guess,
    further_labels,
    judged_arrivals,
    taken_in,
)
from manifoldknn.search.user_searches import searcher_for
from manifoldknn.vote.densities import FIRST_REACH
from manifoldknn.vote.doubt import usual_density
from manifoldknn.vote.hidden import (
    ExpectedAccuracy,
    answered_shares,
    hidden_groups,
    hidden_tolerance,
    judged,
)
from manifoldknn.vote.partner import LOUDEST, Partner, first_partner
from manifoldknn.vote.sharpness import (
    best_powers,
    best_sharpness,
    resolved_reach,
    shown_reach,
    usual_sharpness,
)
from manifoldknn.vote.votes import ClassVote, NeighborVote, Vote, class_prior
from manifoldknn.vote.walks import Walked
from manifoldknn.walk.choose import chosen_alpha


class ManifoldKNNClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classify rows by the labelled samples nearest along the data's own shape.

    A constrained tired random walk over a graph of *all* samples, labelled or
    not, measures similarity [1]_. By default every class becomes the density of walkers
    from its labels, and the densest class wins: unlike the paper's vote of the heaviest
    labels, that favours no class for having more labels. `as_published` gives the method as
    the paper has it. New rows are classified by local reconstruction, without
    learning again. Features should have comparable scales: scale them to [0, 1] first.

    Parameters
    ----------
    n_neighbors : int, default=5
        For ``vote="neighbors"``, labelled samples that vote for a row; all of them if there
        are fewer. For both votes, how many `kneighbors` tells.
    vote : {"classes", "neighbors"}, default="classes"
        "classes": class densities, with calibrated probabilities. "neighbors": the
        `n_neighbors` labelled samples with the largest walk weights vote, as in the paper; a
        weight for every row and label is kept.
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
    alpha : float or "auto", default="auto"
        Share of strength the walker keeps per step, above 0 and at most 1 - 1e-7. "auto": where
        classes vote, 1 - 0.3·l/n for l labels among n rows, at least ½ and at most 0.9997, so that
        a walker lives about as long as it takes to meet labels; where neighbours vote, 0.99.
    sharpness : float or "auto", default="auto"
        Power β of the densities: small, and all answers are doubtful. "auto": labels are
        hidden in five groups, with the links they make, and β makes them likeliest. It changes
        probabilities, and with an equal prior no answer.
    partner : None, "forest" or classifier with predict_proba, default=None
        Another classifier that has a say where classes vote, for tables of categories or counts,
        in whose distances there is little to see. It is trained, as a clone, on the labelled rows
        alone. Its probabilities s join the densities as f^β·s^γ, γ from the hidden labels: 0 where
        the graph knows better, and where no label can be hidden. "forest": 200 trees with
        balanced class weights. Bring about five labels per class; with three it can mislead. It
        works on the CPU, and gets sparse X as it is.
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
    class_prior : {"equal", "labeled"} or array-like of shape (n_classes,), default="equal"
        How common classes are. "equal": nothing is known, since people label what they
        meet. "labeled": as among the labels, less what may be chance; right only if rows to
        label were drawn at random. A vector holds the true shares, one positive number per
        class in the order of `classes_`.
    abstain_below : float, optional
        Answer with the unlabelled marker where the largest probability is below this, and where no
        labelled sample reaches a row. Probabilities stay, and labelled rows keep their label.
    tol : float, default=1e-3
        Error allowed in a density, relative to itself as far as the vote looks, or in a walk
        weight, relative to the largest of the same row. Conjugate gradients check it;
        where the graph is factorised (the full graph, and flat ones) all are accurate to
        rounding.
        Precision follows from it: single where that is enough, corrected in double.
    max_iter : int, default=1000
        Limit on conjugate-gradient iterations per block of columns.
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
        Seeds the approximate neighbour search and the forest. None is a fixed seed: two fits give
        the same answer.
    verbose : int, default=0
        1: say on standard error which stage is running and how long it took, which way the
        walk is computed and why, and every two seconds how long a neighbour search or a walk
        will still take, or the iterations and the residual of the walk. 2: also residuals and
        rows of every step of the walk. (scikit-learn's callbacks work too, where the installed
        version has them.)

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    transduction_ : ndarray of shape (n_samples,)
        A label for every row, of the fitted X and of those taken in since, in the order
        of arrival; labelled rows keep theirs.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes for every row, labelled ones included; where
        neighbours vote, shares of the vote.
    alpha_ : float
        The share of strength used.
    sharpness_ : float or None
        The power used; None where neighbours vote.
    partner_ : classifier or None
        The partner, fitted on class numbers: places in `classes_`. None without one, and where
        there is one class only.
    partner_weight_ : float
        The power γ of what it says; 0 where it has no say.
    class_prior_ : ndarray of shape (n_classes,)
        The shares of classes used, which sum to 1.
    calibrated_ : bool
        Whether hidden labels have set the sharpness. If not, the order of probabilities can be
        trusted and their size is a guess: so with one label per class.
    hidden_labels_ : HiddenLabels or None
        What the hidden labels were called: `accuracy` to expect, its `interval()`, and how
        often answers of some confidence were right, `reliability()`. None where no label was
        hidden.
    expected_accuracy_ : ExpectedAccuracy or None
        How many of the answers are likely to be right: `accuracy`, and its 95 % interval from `low`
        to `high`. It comes from `hidden_labels_`; where the fit hid none, they are hidden when this
        is first asked for. None if every class has a single label.
    labeled_indices_ : ndarray of int
        Labelled rows.
    sigma_ : float
        The kernel width used.
    unreached_ : ndarray of bool of shape (n_samples,)
        Rows that no labelled sample reaches.
    n_walked_ : int
        Rows that the last walk went over; later ones joined by reconstruction.
    n_iter_ : int
        Iterations of the walk, over all its blocks of columns; a solve with a factor counts
        as one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had string column names.

    Notes
    -----
    Where classes vote a fit computes C + 1 columns of the walk, however many labels there
    are, and as many for each group of hidden labels; a model keeps a number per row and
    class. Where neighbours vote it is a column, and a number per row, for every label.

    Probabilities p compare classes with each other; a row that none of them is near is doubted.
    They become t·p + (1 - t)/C, which no answer changes. t = min(1, f/f̂)·b, at least 10⁻³. f is
    the row's largest density, f̂ what nine of ten labels reach of their own class when hidden (of
    nine labels at least). b = min(1, (ô/o)⁴): o is the distance to the nearest other row, divided
    by what is usual around, and ô what one of a hundred rows exceeds.

    Rows have names: the index of the pandas frames they came in, or else, if any came in an array,
    numbers from 0. Names stand in the `ids` of `suggest`, `find_label_errors`, `inspect` and
    reports, and `set_labels` and links take them. Arrays hold, and count, rows by number:
    ``frame.index[numbers]`` names them.

    Equal rows are samples like others, at distance 0 and with weight exp(0) = 1. Of very many
    the first are neighbours of all, and the others, F, of nobody else. So the search looks at
    distinct rows only, and the walk takes F out at once, x_F = A_FF⁻¹(-A_FC)x_C with a diagonal
    A_FF. For u distinct of n rows that is a search over u rows and O(n·`graph_neighbors`).

    Do not fork a process after a fit: threads of the matrix libraries do not survive that, and the
    child can hang. Start workers with ``multiprocessing.get_context("spawn")``, or with joblib
    (loky).

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
        vote: str = "classes",
        graph: str = "pruned",
        graph_neighbors: int = 10,
        sigma: float | str = "auto",
        alpha: float | str = "auto",
        sharpness: float | str = "auto",
        partner: Any = None,
        tree_depth: int = 2,
        theta: float = 0.1,
        metric: Any = "euclidean",
        neighbors: Any = "auto",
        unlabeled: Any = "auto",
        on_unreached: str = "nearest",
        class_prior: Any = "equal",
        abstain_below: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        device: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.vote = vote
        self.graph = graph
        self.graph_neighbors = graph_neighbors
        self.sigma = sigma
        self.alpha = alpha
        self.sharpness = sharpness
        self.partner = partner
        self.tree_depth = tree_depth
        self.theta = theta
        self.metric = metric
        self.neighbors = neighbors
        self.unlabeled = unlabeled
        self.on_unreached = on_unreached
        self.class_prior = class_prior
        self.abstain_below = abstain_below
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, *, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Classify the unlabelled rows of X and remember how.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            All samples, labelled and unlabelled.
        y : array-like of shape (n_samples,)
            Labels; -1, None, NaN, NA or "" (or `unlabeled`) where there is none.
        must_link, cannot_link : array-like of shape (n_pairs, 2), optional
            Pairs of rows that are of one class, or of different ones, whatever the class: the
            weight of their edge is 1 or 0, as between labelled rows. They hold until the next
            `fit`. Rows are named by the index of X if it is a frame with one, else by number.

        Returns
        -------
        self : ManifoldKNNClassifier
            Fitted.
        """
        with all_or_nothing(self), spoken(self.verbose):
            return self._fit(X, y, must_link=must_link, cannot_link=cannot_link)

    def _fit(
        self,
        X: Any,
        y: Any,
        *,
        in_stream: bool = False,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> Self:
        check_parameters(self.get_params(deep=False))
        row_index = X.index if hasattr(X, "iloc") else None
        steps = choose_steps(self.device, X)
        X = steps.samples(self, X, y)
        if in_stream:  # who streams uses one buffer again and again
            X = X.clone() if is_tensor(X) else X.copy()
        labels = encode_labels(y, unlabeled=self.unlabeled)
        names = own_names(row_index, X.shape[0])
        must_link = numbered_pairs("must_link", must_link, names)
        cannot_link = numbered_pairs("cannot_link", cannot_link, names)
        links = hand_links(must_link, cannot_link, labels.codes, labels.classes, names)
        stages = Stages(None if in_stream else self, 4, X, y)
        self._learn(
            steps, X, labels, stages, None, self.neighbors, in_stream=in_stream, links=links,
            row_index=row_index,
        )  # fmt: skip
        stages.end()
        return self

    def _learn(
        self,
        steps: Steps,
        X: Any,
        labels: EncodedLabels,
        stages: Stages,
        geometry: Geometry | None,
        search: Any,
        in_stream: bool = True,
        *,
        links: HandLinks,
        row_index: Any,
        start: NDArray[np.float64] | None = None,
    ) -> None:
        """Neighbours → graph → walk → vote; if `geometry` is known, nobody has to `search`."""
        n, n_classes = X.shape[0], len(labels.classes)
        counts = np.bincount(labels.codes[labels.labeled], minlength=n_classes)
        prior = class_prior(self.class_prior, counts, labels.classes)
        graph_neighbors = usable_graph_neighbors(self.graph_neighbors, n)
        pairs = {
            "metric": self.metric,
            "graph": self.graph,
            "graph_neighbors": graph_neighbors,
            "n_jobs": self.n_jobs,
        }
        to_search = search if geometry is None else None
        steps.check(X, to_search, len(labels.labeled), n_classes=n_classes, vote=self.vote, **pairs)
        warn_about_labels(labels, everything=not in_stream)
        how = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        partner = first_partner(self.partner, X, labels.codes, **how)
        with stages.stage("neighbours"):
            found = geometry or searched(self, steps, X, search, graph_neighbors)
        with stages.stage("graph"):
            built = steps.graph(
                X, found.lists, labels.codes, edges=found.edges, sigma=self.sigma,
                tree_depth=self.tree_depth, theta=self.theta, links=links, **pairs,
            )  # fmt: skip
        with stages.stage("walk"):
            self.classes_, self.labeled_indices_ = labels.classes, labels.labeled
            self.sigma_ = built.recipe.sigma
            self.alpha_ = chosen_alpha(self.alpha, self.vote, len(labels.labeled), n)
            groups = self._to_hide(labels.codes, n_classes, partner)
            reach = FIRST_REACH if start is None else self._last_reach()
            walk = self._walk_from_labels(steps, built, labels.codes, groups, start, reach)
        brought = not isinstance(self.neighbors, str)
        with stages.stage("vote"):
            self.n_iter_, self.n_walked_, self.class_prior_ = walk.n_iter, n, prior
            walk, vote, *hidden = self._voted(steps, built, labels.codes, groups, walk, partner)
            self.fitted_ = Fitted(
                steps=steps,
                index=found.index,
                labels=labels,
                lists=found.lists,
                edges=built.recipe.edges,
                lists_as_new=found.as_new,
                settings=list_settings(self),
                links=links,
                graph=built.graph,
                walk=walk,
                vote=vote,
                own=OwnResiduals(n),
                belonging=belonging_of(found.index, found.lists, brought=brought),
                row_index=row_index,
                partner=partner if self.partner_weight_ > 0 else None,
            )
            belonging = self.fitted_.belonging.values.values
            shares, codes, unreached = answered(self, walk.similarities, X, belonging)
            codes[labels.labeled] = labels.codes[labels.labeled]
            self.label_distributions_ = shares
            self.transduction_ = labels.decode(codes)
            self.unreached_ = unreached
            self.hidden_labels_ = None
            if groups:
                said = answered_shares(codes, n_classes)
                logs, opinions = hidden
                self.hidden_labels_ = judged(
                    groups, logs, labels.codes, vote, said, opinions, belonging=belonging
                )

    def _to_hide(
        self, codes: NDArray[np.intp], n_classes: int, partner: Partner | None
    ) -> list[NDArray[np.intp]]:
        """Return labelled rows in the groups in which they are hidden, if the vote has to learn."""
        learns = isinstance(self.sharpness, str) or partner is not None
        return hidden_groups(codes) if self.vote == "classes" and learns and n_classes > 1 else []

    def _last_reach(self) -> float:
        """Return how far the vote before looked: after a few labels more it is much the same."""
        reach = self.fitted_.walk.reach
        return max(FIRST_REACH, reach) if np.isfinite(reach) else FIRST_REACH

    def _walk_from_labels(
        self,
        steps: Steps,
        built: BuiltGraph,
        codes: NDArray[np.intp],
        groups: list[NDArray[np.intp]],
        start: NDArray[np.float64] | None = None,
        reach: float = FIRST_REACH,
    ) -> Walked:
        walk = steps.walk(
            built, codes, len(self.classes_), self.alpha_, by_class=self.vote == "classes",
            groups=groups, tol=self.tol, max_iter=self.max_iter, n_jobs=self.n_jobs, reach=reach,
            start=start,
        )  # fmt: skip
        if not walk.converged:
            warn_caller(
                f"The walk did not reach tol={self.tol} (max_iter={self.max_iter}): raise tol, "
                "raise max_iter or lower alpha. Until then some answers may be wrong.",
                ConvergenceWarning,
            )
        return warned_of_far_rows(walk, built.graph, self.alpha_, self.tol)

    def _voted(
        self,
        steps: Steps,
        built: BuiltGraph,
        codes: NDArray[np.intp],
        groups: list[NDArray[np.intp]],
        walk: Walked,
        partner: Partner | None,
    ) -> tuple[Walked, Vote, list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Choose how similarities become shares.

        Returns a walk that is accurate as far as the vote looks, the vote, log f of what was hidden
        for it, and what the partner says of that.
        """
        prior = self.class_prior_
        self.sharpness_, self.calibrated_ = None, False
        self.partner_, self.partner_weight_ = None if partner is None else partner.fitted, 0.0
        if self.vote == "neighbors":
            voters = NeighborVote(prior, codes[self.labeled_indices_], self.n_neighbors)
            return walk, voters, [], []
        said = [] if partner is None else partner.hidden(built.recipe.X, codes, groups)
        while True:  # until densities are accurate as far as the vote looks
            known = walk.similarities
            reach = resolved_reach(known.logs[codes < 0], walk.reach)
            if reach <= walk.reach:
                powers, logs = self._learned_powers(steps, built, codes, groups, walk, said)
                reach = shown_reach(
                    powers[0], walk.reach, tol=hidden_tolerance(self.tol), also=powers[1] * LOUDEST
                )
            if reach <= walk.reach:
                break
            walk = self._walk_from_labels(steps, built, codes, groups, known.logarithms(), reach)
        # A hidden label teaches something only where two classes reach its row.
        self.sharpness_, self.partner_weight_ = powers
        told = any((np.isfinite(part).sum(axis=1) > 1).any() for part in logs)
        self.calibrated_ = isinstance(self.sharpness, str) and told
        usual = -np.inf
        if groups:
            usual = usual_density(np.concatenate(logs), codes[np.concatenate(groups)])
        return walk, ClassVote(prior, *powers, usual), logs, said

    def _learned_powers(
        self,
        steps: Steps,
        built: BuiltGraph,
        codes: NDArray[np.intp],
        groups: list[NDArray[np.intp]],
        walk: Walked,
        said: list[NDArray[np.float64]],
    ) -> tuple[tuple[float, float], list[NDArray[np.float64]]]:
        """Return β and γ, and log f of the rows whose labels were hidden for them, by groups."""
        free = isinstance(self.sharpness, str)
        usual = usual_sharpness(walk.similarities.logs[codes < 0]) if free else self.sharpness
        if not groups:
            return (float(usual), 0.0), []
        logs = steps.hidden(
            built, codes, groups, len(self.classes_), self.alpha_, walk,
            tol=hidden_tolerance(self.tol), max_iter=self.max_iter, n_jobs=self.n_jobs,
        )  # fmt: skip
        found, given = np.concatenate(logs), codes[np.concatenate(groups)]
        prior, centre = self.class_prior_, float(usual)
        if said:
            opinions = np.concatenate(said)
            return best_powers(found, opinions, given, prior, centre, free=free), logs
        return (best_sharpness(found, given, prior, centre), 0.0), logs

    @property
    def expected_accuracy_(self) -> ExpectedAccuracy | None:
        """The accuracy to expect, with the ends of its 95 % interval; None if unknown."""
        check_is_fitted(self)
        if self.hidden_labels_ is None:  # as where the sharpness is given
            self.hidden_labels_ = hidden_labels(self)
        return None if self.hidden_labels_ is None else self.hidden_labels_.expected

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
        _, codes = predicted(self, X, with_shares=False)
        return self.fitted_.labels.decode(codes)

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
        return predicted(self, X, with_shares=True)[0]

    def kneighbors(self, X: Any = None) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Tell which labelled samples decided a row, and how strongly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it, the fitted rows themselves.

        Returns
        -------
        weights : ndarray of shape (n_queries, k)
            Largest first, k the smaller of `n_neighbors` and the number of labelled
            samples. Where classes vote, shares in the sum of all densities of the row;
            where neighbours vote, walk weights w̄.
        indices : ndarray of shape (n_queries, k)
            Rows of the fitted X by number, from 0. Where all weights are 0 nobody voted: the row is
            unreached.

        Notes
        -----
        Where classes vote this walks again, from the rows or from the labels, whichever are
        fewer: for a few rows it is quick.
        """
        return deciders(self, X)

    def score_samples(self, X: Any = None) -> NDArray[np.float64]:
        """Score how well rows fit between the rows of the model; lower is odder.

        The score is -max(r / (r̄ + s̄), s / 2s̄): r the residual of the row's reconstruction,
        s its distance to the nearest sample, r̄ the root mean square of its neighbours'
        residuals, s̄ the mean of their distances to their nearest samples that differ. It is 0 for a
        row that repeats one of the model and some -0.5 for one as odd as its neighbours are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it the rows of the model, each judged without itself and its
            copies.

        Returns
        -------
        ndarray of shape (n_queries,)
            Scores, not positive.

        Notes
        -----
        Costs a prediction, and once the reconstruction of every neighbour involved.
        """
        return -oddities_of(self, X)

    def is_off_manifold(self, X: Any = None) -> NDArray[np.bool_]:
        """Tell which rows are far from everything the model has seen.

        Their class is a guess: the walk says nothing about where they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it the rows of the model.

        Returns
        -------
        ndarray of bool of shape (n_queries,)
            True where ``score_samples(X)`` is below that of 99 % of the model's own rows
            (each judged without itself; 512 of them are looked at), and below -0.5.
        """
        return self.score_samples(X) < -off_manifold_limit(self)

    def reconstruction_error(self, X: Any = None) -> ReconstructionError:
        """Measure what reconstruction from neighbours gets wrong (section 6 of the paper).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it the rows of the model that the last walk went over, each
            reconstructed without itself.

        Returns
        -------
        ReconstructionError
            `samples` and `weights`, the paper's RMSE in percent, and `residuals`, one
            number per row. Weights are class densities where classes vote.

        Notes
        -----
        True weights of new rows are those of a walk over the graph grown by them: with
        X this costs a fit, though the model stays as it is.
        """
        return errors_of(self, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of new rows that get their label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
            New rows.
        y : array-like of shape (n_queries,)
            Their labels. Unlabelled rows do not count, and a `UnlabeledScoreWarning` says so:
            cross-validate with `SemiSupervisedSplit`.
        sample_weight : array-like of shape (n_queries,), optional
            Weights of the rows.

        Returns
        -------
        float
            Accuracy.
        """
        _, found = predicted(self, X, with_shares=False)
        truth, judged = true_codes(self, y, len(found))
        weights = None if sample_weight is None else np.asarray(as_numpy(sample_weight))[judged]
        return float(accuracy_score(truth, found[judged], sample_weight=weights))

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
        refresh = refresh if refresh == "auto" else bool(refresh)
        with all_or_nothing(self), spoken(self.verbose):
            if not hasattr(self, "classes_"):
                check_first_labels(y, classes, self.unlabeled)
                return self._fit(X, y, in_stream=True)
            row_index = grown_row_index(self, X)
            X = new_rows(self, X)
            labels, any_new = further_labels(self, y, X.shape[0], classes)
            self.fitted_ = replace(self.fitted_, row_index=row_index)
            if any_new or settings_changed(self):
                self.fitted_ = replace(self.fitted_, index=self.fitted_.index.appended(X))
                return self._relearn(labels, search=refresh is True)
            self.fitted_, answers, unreached = taken_in(self, X, labels)
            assert self.fitted_.arrivals is not None
            self.label_distributions_ = self.fitted_.arrivals.shares.values
            self.transduction_ = np.concatenate([self.transduction_, answers])
            self.unreached_ = np.concatenate([self.unreached_, unreached])
            if refresh == "auto":
                self.fitted_, refresh = judged_arrivals(self)
            if refresh:
                self._relearn(self.fitted_.labels, search=True)
                return_freed_memory()  # each walk is over more rows: what is kept would add up
        return self

    def set_labels(self, indices: Any, y: Any) -> Self:
        """Label rows that the model has already, or correct or withdraw their labels.

        Parameters
        ----------
        indices : array-like, mask or Suggestions
            Rows by name, as `suggest` tells them: by the index of the fitted frame, or by number
            from 0 in the order in which they came. A mask has an entry for every row.
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
        labels = changed_labels(self, indices, y)
        if labels is not None:
            with all_or_nothing(self), spoken(self.verbose):
                self._relearn(labels, search=False)
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
        with all_or_nothing(self), spoken(self.verbose):
            return self._relearn(self.fitted_.labels, search=True)

    def _relearn(self, labels: EncodedLabels, *, search: bool) -> Self:
        """Walk again over all rows; with `search`, to what a fit would give to the last bit."""
        check_parameters(self.get_params(deep=False))
        before = self.fitted_
        known = known_geometry(self, search=search)
        X = before.index.X if known is None else known.index.X
        steps = before.steps
        if before.settings[-1:] != (named(self.device),):  # else it stays, also where that is gone
            steps = choose_steps(self.device, X)
        searcher = self.neighbors if known is not None else searcher_for(self.neighbors, X)
        names = own_names(before.row_index, len(labels.codes))
        check_links(before.links, labels.codes, labels.classes, names)
        start = None if search else first_guess(self, labels)
        self._learn(
            steps, X, labels, Stages(None, 4, X, None), known, searcher,
            links=before.links, row_index=before.row_index, start=start,
        )  # fmt: skip
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def as_published(**parameters: Any) -> ManifoldKNNClassifier:
    """Return the classifier as the paper has it.

    Every pair of rows is linked, walkers keep 99 % of their strength per step, and the k
    labelled samples with the largest walk weights vote.

    Parameters
    ----------
    **parameters
        Further parameters of `ManifoldKNNClassifier`, or others for these.

    Returns
    -------
    ManifoldKNNClassifier
        With ``vote="neighbors", graph="full", alpha=0.99``, and its strengthened tree.

    Notes
    -----
    O(n²) memory and O(n³) time. Our default differs in two things: far fewer pairs are
    linked, which is quicker and was more accurate, and classes vote as densities, so that
    no class wins for having more labels.

    Examples
    --------
    >>> from manifoldknn import as_published
    >>> as_published(n_neighbors=3)
    ManifoldKNNClassifier(alpha=0.99, graph='full', n_neighbors=3, vote='neighbors')
    """
    published: dict[str, Any] = {"vote": "neighbors", "graph": "full", "alpha": 0.99}
    return ManifoldKNNClassifier(**(published | parameters))
