"""The classifier for rows that one machine does not hold."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

import manifoldknn.distributed.answers as answers
import manifoldknn.distributed.pieces as pieces
from manifoldknn.base.parameters import check_integer, check_parameters
from manifoldknn.base.progress import spoken
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.distributed.cells import parts_of_cells
from manifoldknn.distributed.checkpoint import (
    check_room,
    checkpoint_folder,
    temporary,
    token_of,
)
from manifoldknn.distributed.cluster import check_cluster, opened_client
from manifoldknn.distributed.folder import Folder
from manifoldknn.distributed.inputs import Source, checked, lengths, numbers_of, opened, read
from manifoldknn.distributed.modelfiles import load_model, save_model, write_answers
from manifoldknn.distributed.search import chosen_probes, recall
from manifoldknn.distributed.stages import Stages
from manifoldknn.exceptions import warn_caller
from manifoldknn.graph.constrained import candidate_count
from manifoldknn.search.engines import check_neighbors, lists_brought
from manifoldknn.vote.votes import class_prior

logger = logging.getLogger(__name__)

_ROWS_PER_PART = 200_000
_ROWS_PER_WORKER = 50_000  # fewer are walked over sooner by fewer workers
_WALK = ("sigma", "alpha", "sharpness", "theta", "tree_depth", "tol", "max_iter")


class DistributedManifoldKNN(ClassifierMixin, BaseEstimator):
    """Manifold k-nearest neighbours on a Dask cluster: `ManifoldKNNClassifier` for many rows.

    Graph, walk and vote are those of `ManifoldKNNClassifier` with its defaults. Neighbours are
    searched in cells, so that lists depend neither on the cluster nor on chunks.

    Parameters
    ----------
    client : distributed.Client, optional
        Of the cluster. Without it, one is started on this machine for the time of a fit, with a
        worker per core.
    checkpoint : path, optional
        Folder that all workers see. Stages leave their results there; keep it as long as the
        answers are needed. Without it a temporary folder serves, which is deleted with the model:
        all workers must be on this machine then.
    resume : bool, default=False
        Whether to go on from what is in `checkpoint`. A checkpoint of other data or other
        parameters is refused.
    n_parts : int or "auto", default="auto"
        Parts that rows are divided into. A task holds about one of them. "auto": one per worker,
        and no more than 200,000 rows in each.
    graph_neighbors, sigma, alpha, sharpness, tree_depth, theta, unlabeled, class_prior, tol, max_iter
        As in `ManifoldKNNClassifier`.
    neighbors : "auto" or pair of arrays, default="auto"
        Neighbours known beforehand, (indices, distances), in the order of the input.
    random_state : int, optional
        Seed of the cells; 0 by default.
    verbose : int, default=0
        1: a line per stage.

    Attributes
    ----------
    classes_ : ndarray
        Classes, sorted.
    transduction_ : dask Array of shape (n_samples,)
        Class of every row, lazily, in the order of the input. Labelled rows keep their label.
    label_distributions_ : dask Array of shape (n_samples, n_classes)
        Shares of classes, lazily.
    recall_ : float
        Share of the true 30 nearest that the search found, measured on 192 rows; NaN if neighbours
        were given.
    sigma_, alpha_, sharpness_, class_prior_, calibrated_, n_iter_, n_features_in_
        As in `ManifoldKNNClassifier`.
    stage_seconds_ : dict
        Seconds of every stage.
    halo_bytes_ : int
        Bytes that workers sent each other in the walk, sums and maxima apart.
    walk_seconds_ : tuple of float
        Seconds of the walk on the slowest worker, and how many of them it waited for others.

    Examples
    --------
    >>> from manifoldknn.distributed import DistributedManifoldKNN
    >>> DistributedManifoldKNN(n_parts=8, tol=1e-4)
    DistributedManifoldKNN(n_parts=8, tol=0.0001)
    """  # noqa: E501

    def __init__(
        self,
        client: Any = None,
        checkpoint: Any = None,
        *,
        resume: bool = False,
        n_parts: int | str = "auto",
        graph_neighbors: int = 10,
        sigma: float | str = "auto",
        alpha: float | str = "auto",
        sharpness: float | str = "auto",
        tree_depth: int = 2,
        theta: float = 0.1,
        neighbors: Any = "auto",
        unlabeled: Any = "auto",
        class_prior: Any = "equal",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.client = client
        self.checkpoint = checkpoint
        self.resume = resume
        self.n_parts = n_parts
        self.graph_neighbors = graph_neighbors
        self.sigma = sigma
        self.alpha = alpha
        self.sharpness = sharpness
        self.tree_depth = tree_depth
        self.theta = theta
        self.neighbors = neighbors
        self.unlabeled = unlabeled
        self.class_prior = class_prior
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Classify the unlabelled rows of X and remember how.

        Parameters
        ----------
        X : Dask array or dataframe, path or pattern of Parquet files, or array
            All rows. A memory-mapped array is read by the workers.
        y : array-like, Dask array or series, or str
            Labels, in the order of the rows; -1, None, NaN, NA or "" (or `unlabeled`) where there
            is none. A str names the column of X that holds them.

        Returns
        -------
        self : DistributedManifoldKNN
            Fitted.
        """
        self._check()
        source = opened(X, y)
        with spoken(self.verbose), opened_client(self.client) as client:
            check_cluster(client)
            about, where = self._about(source), self.checkpoint
            with checkpoint_folder(client, where, about, self.resume) as folder:
                self._fit(Stages(client, folder, logger.info), source)
        return self

    def _check(self) -> None:
        mine = self.get_params(deep=False)
        known = ManifoldKNNClassifier().get_params(deep=False)
        check_parameters(known | {name: mine[name] for name in mine.keys() & known.keys()})
        if self.n_parts != "auto":
            check_integer("n_parts", self.n_parts, minimum=1)
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs a checkpoint: name the folder.")
        if not (self.random_state is None or isinstance(self.random_state, int | np.integer)):
            raise ValueError(f"random_state={self.random_state!r} must be None or a whole number.")
        if isinstance(self.neighbors, str) and self.neighbors != "auto":
            raise ValueError(
                f"neighbors={self.neighbors!r} must be 'auto' or a pair (indices, distances)."
            )

    def _about(self, source: Source) -> dict[str, str]:
        """Return what tells the checkpoint of this fit from that of another one."""
        from manifoldknn import __version__

        settings = {
            name: repr(value)
            for name, value in self.get_params(deep=False).items()
            if name not in ("client", "checkpoint", "resume", "verbose", "neighbors")
        }
        brought = "" if isinstance(self.neighbors, str) else token_of(self.neighbors)
        return {"data": source.token, "version": __version__, "neighbors": brought} | settings

    def _fit(self, stages: Stages, source: Source) -> None:
        folder, seed = stages.folder, int(self.random_state or 0)
        every = [
            (chunk, labels, name, self.unlabeled)
            for chunk, labels, name in zip(source.chunks, source.labels, source.names)
        ]
        if source.held:  # not to be sent through the scheduler
            for number, how in enumerate(every):
                pieces.made(str(folder.path), "read", number, read, *how)
        notes = stages.run("read", read, every)
        labels = checked(notes, source)
        rows = [note["rows"] for note in notes]
        starts, n = np.concatenate([[0], np.cumsum(rows)]).tolist(), sum(rows)
        check_room(folder, n, len(notes[0]["columns"]))
        k = min(self.graph_neighbors, n - 1)
        n_neighbors = candidate_count("pruned", k, n)
        self._keep_given(folder, n, k)
        stages.run("sample", pieces.sample, [(start, n, seed) for start in starts[:-1]])
        stages.run("cells", pieces.cells, [(len(rows), n, seed)])
        own = [numbers_of(note["classes"], labels) for note in notes]
        stages.run("assign", pieces.assign, list(zip(starts, own)))
        n_parts = self._split(stages, n, len(rows))
        parts = stages.run("part", pieces.part, [(len(rows),)] * n_parts)
        folder.clear("read")
        folder.clear("assign")
        sizes = [note["rows"] for note in parts]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        probes = self._search(stages, offsets, n_neighbors, len(rows))
        self._edges(stages, offsets, k)
        counts = _label_counts(folder, n_parts, len(labels.classes))
        prior = class_prior(self.class_prior, counts, labels.classes)
        most = max(1, n // _ROWS_PER_WORKER)
        settings = {name: getattr(self, name) for name in _WALK}
        walk = stages.walk(sizes, most, len(labels.classes), prior.tolist(), k, **settings)
        if not walk["converged"]:
            warn_caller(
                f"The walk did not reach tol={self.tol} (max_iter={self.max_iter}): raise tol, "
                "raise max_iter or lower alpha. Until then some answers may be wrong.",
                ConvergenceWarning,
            )
        (belonging,) = stages.run("belonging", pieces.belonging, [(n_parts,)])
        model = {
            "offsets": offsets, "probes": probes, "prior": prior.tolist(), "graph_neighbors": k,
            "sharpness": walk["sharpness"], "usual": walk["usual"], "type": notes[0]["type"],
            "n_features": len(notes[0]["columns"]), **belonging,
        }  # fmt: skip
        voted = (offsets, model)
        stages.run("write", answers.write, [(a, b, *voted) for a, b in pairwise(starts)])
        for stage in ("told", "seen", "aside"):  # the last are of workers that were killed
            folder.clear(stage)
        self.folder_ = folder
        _remember(self, labels.classes, rows, walk, model)
        self.stage_seconds_ = stages.seconds
        self.n_walk_tasks_ = stages.walk_tasks

    def _keep_given(self, folder: Folder, n: int, k: int) -> None:
        """Put neighbours that were given where workers see them."""
        if isinstance(self.neighbors, str) or folder.note("given", 0) is not None:
            return
        indices, distances = lists_brought(self.neighbors)
        empty = np.empty((n, 0), dtype=np.float32)
        check_neighbors((indices, distances), empty, metric="euclidean", graph_neighbors=k)
        folder.write("given", 0, {}, indices=indices, distances=distances)

    def _split(self, stages: Stages, n: int, n_chunks: int) -> int:
        """Divide cells into parts, and return how many parts there are."""
        folder = stages.folder
        note = folder.note("split", 0)
        if note is None:
            counts: Any = sum(folder.read("assign", chunk, "counts") for chunk in range(n_chunks))
            centers = folder.read("cells", 0, "centers")
            n_parts = self.n_parts
            if isinstance(n_parts, str):
                n_parts = max(len(stages.workers()), -(-n // _ROWS_PER_PART))
            wanted = min(n_parts, int(np.count_nonzero(counts)))
            cut: Any = parts_of_cells(centers, counts, int(wanted))
            part = np.unique(cut, return_inverse=True)[1]
            note = {"parts": int(part.max()) + 1}
            folder.write("split", 0, note, part=part)
        return int(note["parts"])

    def _search(self, stages: Stages, offsets: list[int], k: int, n_chunks: int) -> int:
        """Find the neighbours of all rows, and return how many cells a row looks into."""
        folder, n_parts = stages.folder, len(offsets) - 1
        count = min(k + 1, offsets[-1])
        stages.run("truth", pieces.truth, [(n_chunks, count)] * n_parts)
        asked, rows = (
            np.concatenate([folder.read("sample", c, name) for c in range(n_chunks)])
            for name in ("checked", "checked_rows")
        )
        true, of_true = _merged_truth(folder, n_parts, rows, k)
        probes = chosen_probes(pieces.cells_in(folder), asked, of_true, offsets[-1])
        if isinstance(self.neighbors, str):
            how = (offsets, k)
            if any(folder.note("lists", part) is None for part in range(n_parts)):
                stages.run("route", pieces.route, [(probes,)] * n_parts)
                stages.run("find", pieces.find, [how] * n_parts)
            stages.run("lists", pieces.lists, [how] * n_parts)
            folder.clear("find")
            folder.clear("route")
            self.recall_ = recall(true, _lists_of(folder, n_parts, rows, k))
        else:
            stages.run("lists", pieces.given, [(offsets, k)] * n_parts)
            self.recall_ = float("nan")
        return probes

    def _edges(self, stages: Stages, offsets: list[int], k: int) -> None:
        n_parts = len(offsets) - 1
        if all(stages.folder.note("edges", part) is not None for part in range(n_parts)):
            return
        stages.run("told", pieces.told, [(offsets,)] * n_parts)
        seen = stages.run("seen", pieces.seen, [(n_parts, k)] * n_parts)
        (rest,) = stages.run("rest", pieces.rest, [([note["groups"] for note in seen],)])
        joined = rest["components"] > 1
        if joined:
            stages.run("apart", pieces.apart, [(start,) for start in offsets[:-1]])
            stages.run("near", pieces.near, [(start, n_parts) for start in offsets[:-1]])
            stages.run("join", pieces.join, [(n_parts,)])
        stages.run("edges", pieces.edges, [(offsets, joined)] * n_parts)

    def predict_proba(self, X: Any) -> Any:
        """Return the class shares of the vote for new rows.

        Parameters
        ----------
        X : Dask array or dataframe, path or pattern of Parquet files, or array
            New rows.

        Returns
        -------
        dask Array, or ndarray for an array
            Shares in the order of `classes_`; lazily, partition by partition.
        """
        return self._predicted(X, shares=True)

    def predict(self, X: Any) -> Any:
        """Classify new rows by reconstruction from their neighbours.

        Parameters
        ----------
        X : Dask array or dataframe, path or pattern of Parquet files, or array
            New rows.

        Returns
        -------
        dask Array, or ndarray for an array
            Classes; lazily, partition by partition.
        """
        return self._predicted(X, shares=False)

    def _predicted(self, X: Any, *, shares: bool) -> Any:
        import dask
        import dask.array as da

        check_is_fitted(self, "model_")
        source = opened(X, None)
        folder, n_classes = self.folder_, len(self.classes_)
        out = []
        for chunk, name, n in zip(source.chunks, source.names, lengths(X, source)):
            found = dask.delayed(answers.predicted)(folder, self.model_, chunk, name)
            if shares:
                out.append(da.from_delayed(found, (n, n_classes), np.float64))
            else:
                called = dask.delayed(answers.named)(found, self.classes_)
                out.append(da.from_delayed(called, (n,), self.classes_.dtype))
        lazy = da.concatenate(out, allow_unknown_chunksizes=True)
        if hasattr(X, "dask") or isinstance(X, str | Path):
            return lazy
        return lazy.compute(scheduler="threads", num_workers=1)

    def write_answers(self, path: Any, *, prefix: str = "") -> None:
        """Write answers for all rows: a Parquet file per chunk, in the order of the input.

        Parameters
        ----------
        path : path
            A folder that is not there yet. It appears when all of it is written.
        prefix : str, default=""
            Put before the names of columns: predicted, confidence and margin.
        """
        check_is_fitted(self, "model_")
        write_answers(self.folder_, Path(path), self.classes_, len(self.chunk_rows_), prefix)

    def save(self, path: Any) -> None:
        """Write the model: a Parquet file per part and chunk, cells, and a manifest.

        Parameters
        ----------
        path : path
            A folder that is not there yet. It appears when all of it is written.
        """
        check_is_fitted(self, "model_")
        about = {
            "parameters": {
                name: value
                for name, value in self.get_params(deep=False).items()
                if isinstance(value, int | float | str | None.__class__)
                and name not in ("client", "checkpoint", "resume")
            },
            "model": self.model_,
            "chunks": self.chunk_rows_,
            "classes": self.classes_.tolist(),
            "walk": {
                "sigma": self.sigma_, "alpha": self.alpha_, "sharpness": self.sharpness_,
                "n_iter": self.n_iter_, "calibrated": self.calibrated_,
                "halo_bytes": self.halo_bytes_, "halo_numbers": self.halo_numbers_,
                "seconds": self.walk_seconds_[0], "waited": self.walk_seconds_[1],
            },
            "recall": self.recall_,
            "stage_seconds": self.stage_seconds_,
        }  # fmt: skip
        save_model(self.folder_, Path(path), about)

    @classmethod
    def load(cls, path: Any) -> DistributedManifoldKNN:
        """Return a model that `save` wrote.

        Parameters
        ----------
        path : path
            Its folder.

        Returns
        -------
        DistributedManifoldKNN
            Fitted. Its rows are unpacked into a temporary folder, which is deleted with it.
        """
        folder = temporary()
        about = load_model(Path(path), folder)
        model = cls(**about["parameters"])
        model.folder_, model.recall_ = folder, about["recall"]
        model.stage_seconds_, model.n_walk_tasks_ = about["stage_seconds"], 0
        classes = np.asarray(about["classes"])
        _remember(model, classes, about["chunks"], about["walk"], about["model"])
        return model


def _remember(
    fitted: DistributedManifoldKNN,
    classes: NDArray[Any],
    rows: list[int],
    walk: dict[str, Any],
    model: dict[str, Any],
) -> None:
    """Set the attributes of a fit."""
    fitted.classes_, fitted.model_ = classes, model
    fitted.sigma_, fitted.alpha_, fitted.sharpness_ = (
        walk[name] for name in ("sigma", "alpha", "sharpness")
    )
    fitted.n_iter_, fitted.calibrated_ = walk["n_iter"], walk["calibrated"]
    fitted.class_prior_, fitted.n_features_in_ = np.array(model["prior"]), model["n_features"]
    fitted.halo_bytes_, fitted.halo_numbers_ = walk["halo_bytes"], walk["halo_numbers"]
    fitted.walk_seconds_ = walk["seconds"], walk["waited"]
    fitted.chunk_rows_ = rows
    fitted.transduction_ = _lazy(fitted, "codes", (), classes)
    fitted.label_distributions_ = _lazy(fitted, "shares", (len(classes),), None)


def _lazy(fitted: DistributedManifoldKNN, name: str, width: tuple[int, ...], classes: Any) -> Any:
    """Return answers in the order of the input, which are read when they are asked for."""
    import dask
    import dask.array as da

    # What is lazy holds the folder, which is deleted when nobody does.
    folder, get = fitted.folder_, dask.delayed(answers.answered)
    dtype = np.float32 if classes is None else classes.dtype
    return da.concatenate(
        [
            da.from_delayed(get(folder, chunk, name, classes), (n, *width), dtype)
            for chunk, n in enumerate(fitted.chunk_rows_)
        ]
    )


def _label_counts(folder: Folder, n_parts: int, n_classes: int) -> NDArray[np.intp]:
    counts = np.zeros(n_classes, dtype=np.intp)
    for part in range(n_parts):
        codes = folder.read("part", part, "codes", mapped=True)
        counts += np.bincount(codes[codes >= 0], minlength=n_classes)
    return counts


def _merged_truth(
    folder: Folder, n_parts: int, rows: NDArray[Any], k: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return true neighbours of checked rows, and their cells."""
    away, order, cell = (
        np.concatenate([folder.read("truth", part, name) for part in range(n_parts)], axis=1)
        for name in ("away", "order", "cell")
    )
    away[order == rows[:, None]] = np.inf
    nearest = np.argsort(away, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(order, nearest, 1), np.take_along_axis(cell, nearest, 1)


def _lists_of(folder: Folder, n_parts: int, rows: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the lists of some rows, by numbers in the input."""
    out = np.zeros((len(rows), k), dtype=np.int64)
    for part in range(n_parts):
        order = folder.read("part", part, "order", mapped=True)
        here = np.flatnonzero(np.isin(order, rows))
        lists = folder.read("lists", part, "order", mapped=True)[here]
        out[np.searchsorted(rows, order[here])] = lists
    return out
