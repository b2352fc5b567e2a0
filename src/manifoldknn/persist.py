"""A fitted classifier in one file, without pickle.

The file holds the samples, the labels, the graph and the walk weights as plain
arrays, and parameters as JSON. The neighbour search is not stored: it is built
again from the samples with the same seed, which gives the same search.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

import manifoldknn
from manifoldknn.archive import ModelFileError, read_archive, write_archive
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.engines import GivenIndex, check_neighbors
from manifoldknn.gpu.tensors import named
from manifoldknn.graph import ConstrainedGraph
from manifoldknn.growing import GrowingIndex
from manifoldknn.indexfile import put_row_index, restored_row_index
from manifoldknn.labels import EncodedLabels
from manifoldknn.memory import available_memory
from manifoldknn.nearest import NearestLabeled
from manifoldknn.neighbors import METRICS
from manifoldknn.parameters import check_parameters
from manifoldknn.plain import array_from_plain, array_to_plain, from_plain, to_plain
from manifoldknn.samples import check_spread
from manifoldknn.steps import usable_steps
from manifoldknn.streamfile import Arrays, floats, plain_stream, put_stream, require, restore_stream
from manifoldknn.voters import LabelWalk

__all__ = ["ModelFileError", "load", "load_with_extra", "save"]

_KIND = "manifoldknn model"
_VERSION = 1
_MOST_JOBS = 1024


def save(
    classifier: ManifoldKNNClassifier,
    path: str | os.PathLike[str],
    *,
    extra: Mapping[str, Any] | None = None,
    force: bool = True,
) -> None:
    """Write a fitted classifier to one file.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted. Its metric must be a name, its neighbours a name or lists, and its
        `random_state` a number or None: functions and objects cannot be written down.
        The index of the fitted frame is kept where it is of numbers, texts or dates.
    path : path
        File to write, customarily ``*.mknn``. It is replaced in one step: a failure
        leaves what was there before.
    extra : mapping, optional
        Anything JSON can hold, kept beside the model; see `load_with_extra`.
    force : bool, default=True
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from manifoldknn import ManifoldKNNClassifier, persist
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> clf = ManifoldKNNClassifier(sigma=0.1, graph_neighbors=2)
    >>> clf = clf.fit(X, ["a", "", "", "b", "", ""])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     persist.save(clf, os.path.join(folder, "model.mknn"))
    ...     again = persist.load(os.path.join(folder, "model.mknn"))
    >>> again.predict([[0.15], [5.15]])
    array(['a', 'b'], dtype='<U1')
    """
    check_is_fitted(classifier)
    arrays: Arrays = {}
    params = _plain_params(classifier, arrays)
    walk, labels, graph = classifier._walk, classifier._labels, classifier._graph
    _put_matrix(arrays, "samples", classifier._index.X)
    _put_matrix(arrays, "graph", graph.log_weights)
    arrays |= put_stream(classifier) | put_row_index(classifier)
    arrays |= {
        "must_link": graph.must_link,
        "codes": labels.codes,
        "weights": walk.nearest.weights,
        "voters": walk.nearest.voters,
        "log_scale": walk.nearest.log_scale,
        "voter_classes": walk.voter_classes,
        "class_factors": classifier._class_factors,
        "shares": classifier.label_distributions_,
        "unreached": classifier.unreached_,
        "answers": _answer_codes(classifier),
    }
    data = {
        "written_by": manifoldknn.__version__,
        "params": params,
        "classes": array_to_plain(labels.classes),
        "marker": to_plain(labels.marker),
        "n_voting": int(walk.n_voting),
        "by_class": walk.by_class,
        "n_iter": int(classifier.n_iter_),
        "converged": bool(walk.converged),
        "sigma": to_plain(classifier.sigma_),
        "feature_names": _feature_names(classifier),
        "stream": plain_stream(classifier),
        "extra": dict(extra) if extra is not None else None,
    }
    write_archive(path, arrays, data, kind=_KIND, version=_VERSION, force=force)


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> ManifoldKNNClassifier:
    """Read a classifier that `save` wrote.

    Nothing in the file is run. What is not exactly as `save` writes it is refused.

    Parameters
    ----------
    path : path
        The file.
    max_bytes : int, optional
        Refuse larger files; by default, those larger than the memory that is free.

    Returns
    -------
    ManifoldKNNClassifier
        Answers as the saved one does, bit for bit.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, too large, or no model at all.
    OSError
        If the file cannot be opened.
    """
    return load_with_extra(path, max_bytes=max_bytes)[0]


def load_with_extra(
    path: str | os.PathLike[str], *, max_bytes: int | None = None
) -> tuple[ManifoldKNNClassifier, Any]:
    """Read a classifier and what was kept beside it.

    Parameters
    ----------
    path, max_bytes
        As in `load`.

    Returns
    -------
    classifier : ManifoldKNNClassifier
        Fitted.
    extra : dict or None
        As it was given to `save`.
    """
    limit = available_memory() if max_bytes is None else max_bytes
    arrays, data = read_archive(path, kind=_KIND, version=_VERSION, max_bytes=limit)
    try:
        return _restored(arrays, data), data["extra"]
    except MemoryError:
        raise
    except Exception as error:  # whatever does not fit together
        raise ModelFileError(
            f"{path} is no model that can be used: its contents do not fit together "
            f"({type(error).__name__}: {error}). Save the model again."
        ) from None


def _plain_params(classifier: ManifoldKNNClassifier, arrays: Arrays) -> dict[str, Any]:
    """Return the parameters as JSON; lists of neighbours go into `arrays`."""
    params = classifier.get_params(deep=False)
    if not isinstance(params["metric"], str):
        raise ValueError("metric is a function, which cannot be saved: use a metric by its name.")
    if isinstance(params["random_state"], np.random.RandomState):
        raise ValueError(
            "random_state is a generator, which cannot be saved: fit with a number or None."
        )
    index = classifier._index.first
    by_name = isinstance(params["neighbors"], str)
    if isinstance(index, GivenIndex) and not by_name:
        arrays["given_indices"], arrays["given_distances"] = index._lists
        params["neighbors"] = None
    elif not by_name:
        raise ValueError(
            "neighbors is a searcher, which cannot be saved: fit with neighbors='auto', or with "
            "the (indices, distances) it found."
        )
    params["device"] = named(params["device"])
    prior = params["class_prior"]
    if prior is not None and not isinstance(prior, str):
        params["class_prior"] = None
        arrays["class_prior"] = np.asarray(prior, dtype=np.float64)
    return {name: to_plain(value) for name, value in params.items()}


def _feature_names(classifier: ManifoldKNNClassifier) -> list[dict[str, Any]] | None:
    names = getattr(classifier, "feature_names_in_", None)
    return None if names is None else [to_plain(str(name)) for name in names]


def _answer_codes(classifier: ManifoldKNNClassifier) -> NDArray[np.intp]:
    """Return the transduction as class numbers, -1 where the classifier abstains."""
    labels = classifier._labels
    codes = np.full(len(labels.codes), -1, dtype=np.intp)
    for number, name in enumerate(labels.classes):
        codes[np.asarray(classifier.transduction_ == name, dtype=bool)] = number
    return codes


def _put_matrix(arrays: Arrays, name: str, matrix: Any) -> None:
    if not sparse.issparse(matrix):
        arrays[name] = matrix
        return
    matrix = sparse.csr_array(matrix)
    arrays |= {
        f"{name}_data": matrix.data,
        f"{name}_indices": matrix.indices,
        f"{name}_indptr": matrix.indptr,
        f"{name}_shape": np.array(matrix.shape, dtype=np.int64),
    }


def _get_matrix(arrays: Arrays, name: str) -> Any:
    if name in arrays:
        require(arrays[name].ndim == 2 and arrays[name].dtype.kind == "f", name)
        return arrays[name]
    parts = [arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")]
    require(all(part.ndim == 1 for part in parts) and len(parts[3]) == 2, name)
    require(all(part.dtype.kind == "i" for part in parts[1:]), name)
    # Compiled code trusts these numbers: every one of them is checked.
    matrix = sparse.csr_array(tuple(parts[:3]), shape=tuple(int(x) for x in parts[3]))
    matrix.check_format(full_check=True)
    return matrix


def _restored(arrays: Arrays, data: dict[str, Any]) -> ManifoldKNNClassifier:
    classifier = _with_params(arrays, data["params"])
    X, labels = _get_matrix(arrays, "samples"), _labels(arrays, data)
    n, n_classes = X.shape[0], len(labels.classes)
    values = X.data if sparse.issparse(X) else X
    n_walked = data["stream"]["n_walked"]
    require(type(n_walked) is int and 2 <= n_walked <= n, "rows")
    require(n >= 2 and len(labels.codes) == n and bool(np.isfinite(values).all()), "samples")
    require(X.dtype in (np.float32, np.float64), "samples")
    check_spread(X)
    graph = ConstrainedGraph(
        _get_matrix(arrays, "graph"), _whole(arrays, "must_link", n_walked, n_classes)
    )
    require(graph.log_weights.shape == (n_walked, n_walked), "graph")
    logs = graph.log_weights.data if graph.is_sparse else graph.log_weights
    require(not np.isnan(logs).any() and not np.isposinf(logs).any(), "graph")
    walk = _walk(arrays, data, n, labels)
    names = data["feature_names"]
    classifier.classes_, classifier._labels = labels.classes, labels
    classifier.labeled_indices_ = labels.labeled
    classifier.n_features_in_ = int(X.shape[1])
    if names is not None:
        require(len(names) == X.shape[1], "feature names")
        classifier.feature_names_in_ = np.array([from_plain(name) for name in names], dtype=object)
    classifier._graph, classifier._walk = graph, walk
    classifier._steps = usable_steps(classifier.device)
    classifier._index = _opened(classifier, X, data["stream"]["n_first"])
    sigma = from_plain(data["sigma"])
    require(type(sigma) in (int, float) and 0 < sigma < np.inf, "sigma")
    classifier.sigma_, classifier.n_iter_ = float(sigma), walk.n_iter
    classifier._class_factors = floats(arrays, "class_factors", (n_classes,))
    classifier.label_distributions_ = floats(arrays, "shares", (n, n_classes))
    classifier.unreached_ = arrays["unreached"]
    require(
        classifier.unreached_.dtype == bool and classifier.unreached_.shape == (n,), "unreached"
    )
    classifier.transduction_ = labels.decode(_whole(arrays, "answers", n, n_classes))
    restore_stream(classifier, arrays, data["stream"])
    classifier._row_index = restored_row_index(arrays, n)
    return classifier


def _opened(classifier: ManifoldKNNClassifier, X: Any, n_first: Any) -> GrowingIndex:
    """Search over the first rows, and the rows that were added to it."""
    require(type(n_first) is int and 2 <= n_first <= X.shape[0], "search")
    first = X[:n_first]
    check_neighbors(
        classifier.neighbors, first, metric=classifier.metric,
        graph_neighbors=min(classifier.graph_neighbors, n_first - 1),
    )  # fmt: skip
    index = GrowingIndex(
        classifier._steps.open_index(
            first, classifier.neighbors, metric=classifier.metric, n_jobs=classifier.n_jobs,
            seed=classifier._seed(),
        )
    )  # fmt: skip
    return index if n_first == X.shape[0] else index.appended(X[n_first:])


def _with_params(arrays: Arrays, plain: dict[str, Any]) -> ManifoldKNNClassifier:
    plain = {"device": to_plain("auto")} | plain  # files of older versions have none
    require(set(plain) == set(ManifoldKNNClassifier().get_params(deep=False)), "parameters")
    params = {name: from_plain(value) for name, value in plain.items()}
    if params["neighbors"] is None:
        params["neighbors"] = arrays["given_indices"], arrays["given_distances"]
    if "class_prior" in arrays:
        params["class_prior"] = arrays["class_prior"]
    classifier = ManifoldKNNClassifier().set_params(**params)
    check_parameters(classifier.get_params(deep=False))
    require(classifier.metric in METRICS, "metric")
    n_jobs = classifier.n_jobs
    require(n_jobs is None or abs(n_jobs) <= _MOST_JOBS, "n_jobs")
    return classifier


def _labels(arrays: Arrays, data: dict[str, Any]) -> EncodedLabels:
    classes = array_from_plain(data["classes"])
    require(len(classes) > 0 and len(set(classes.tolist())) == len(classes), "classes")
    codes = arrays["codes"]
    labels = EncodedLabels(
        classes, _whole(arrays, "codes", len(codes), len(classes)), from_plain(data["marker"])
    )
    require(len(labels.labeled) > 0, "labels")
    return labels


def _walk(arrays: Arrays, data: dict[str, Any], n: int, labels: EncodedLabels) -> LabelWalk:
    by_class, n_voting, n_iter = data["by_class"], data["n_voting"], data["n_iter"]
    require(type(by_class) is bool and type(n_voting) is int and type(n_iter) is int, "walk")
    n_voters = len(labels.classes) if by_class else len(labels.labeled)
    kept = arrays["weights"].shape[-1]
    require(0 < kept <= n_voters and 0 < n_voting <= n_voters and n_iter >= 0, "walk")
    voters = arrays["voters"]
    require(voters.shape == (n, kept) and voters.dtype == np.int32, "voters")
    require(bool((voters >= 0).all() and (voters < n_voters).all()), "voters")
    weights = floats(arrays, "weights", (n, kept))
    require(bool((weights >= 0).all()), "weights")
    log_scale = arrays["log_scale"]
    require(log_scale.shape == (n,) and log_scale.dtype == np.float64, "scale")
    require(not (np.isnan(log_scale) | np.isposinf(log_scale)).any(), "scale")
    classes = _whole(arrays, "voter_classes", n_voters, len(labels.classes), least=0)
    nearest = NearestLabeled(weights, voters, log_scale)
    return LabelWalk(nearest, classes, n_voting, by_class, n_iter, bool(data["converged"]))


def _whole(
    arrays: Arrays, name: str, length: int, below: int, *, least: int = -1
) -> NDArray[np.intp]:
    """Return an array of class numbers, all of them possible."""
    array = arrays[name]
    require(array.shape == (length,) and array.dtype.kind == "i", name)
    require(bool((array >= least).all() and (array < below).all()), name)
    return array.astype(np.intp, copy=False)
