"""A fitted classifier in one file, without pickle.

The file holds the samples, the labels, neighbours, edges and densities as plain
arrays, and parameters as JSON. Weights of edges and the search are not stored:
they are made again from the samples with the same seed, and are the same.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

import manifoldknn
from manifoldknn.base.labels import EncodedLabels, encode_labels
from manifoldknn.base.parameters import check_parameters
from manifoldknn.base.samples import check_spread
from manifoldknn.base.tensors import named
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.device.memory import available_memory
from manifoldknn.device.steps import Steps, usable_steps
from manifoldknn.files.archive import ModelFileError, read_archive, write_archive
from manifoldknn.files.checked_arrays import Arrays, floats, logarithms, numbers, require
from manifoldknn.files.forest import put_forest, restored_forest
from manifoldknn.files.json_values import array_from_plain, array_to_plain, from_plain, to_plain
from manifoldknn.files.learning_state import (
    restored_arrivals,
    restored_state,
    state_arrays,
    state_data,
)
from manifoldknn.files.row_index import put_row_index, restored_row_index
from manifoldknn.graph.links import HandLinks, check_links, row_pairs
from manifoldknn.model.fitted import Fitted, recipe_of
from manifoldknn.model.geometry import opened
from manifoldknn.search.engines import GivenIndex, check_neighbors
from manifoldknn.search.growing import GrowingIndex
from manifoldknn.search.neighbors import METRICS
from manifoldknn.vote.hidden import HiddenLabels
from manifoldknn.vote.partner import Partner
from manifoldknn.vote.similarities import Similarities
from manifoldknn.vote.votes import ClassVote, NeighborVote, Vote, class_prior
from manifoldknn.vote.walks import Walked

__all__ = ["ModelFileError", "load", "load_with_extra", "save"]

_KIND = "manifoldknn model"
_VERSION = 4  # 2 and 3 had whole lists and pairs, which can be read
_MOST_JOBS = 1024
_LONGEST_LABEL = 4096
_MOST_COLUMNS = 1 << 22  # of sparse samples, of which a file can claim any number
_USUAL_WIDTH, _MOST_TEXT = 64, 1 << 25  # bytes of a label, and of all


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
        Fitted. Its metric must be a name, its neighbours a name or lists, its partner None or
        "forest", and its `random_state` a number or None: functions and objects cannot be
        written down. (The forest comes back as plain arrays that only predict.)
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
    walk, labels, vote = classifier.fitted_.walk, classifier.fitted_.labels, classifier.fitted_.vote
    _check_lengths(labels.classes, labels.marker)
    _put_matrix(arrays, "samples", classifier.fitted_.index.X)
    arrays |= state_arrays(classifier) | put_row_index(classifier) | _put_hidden(classifier)
    arrays |= {
        "codes": _narrow(labels.codes),
        "logs": walk.similarities.logs,
        "log_scale": walk.similarities.log_scale,
        "prior": classifier.class_prior_,
        "unreached": classifier.unreached_,
        "answers": _narrow(labels.numbers(classifier.transduction_)),
        "links_must": classifier.fitted_.links.must,
        "links_cannot": classifier.fitted_.links.cannot,
    }
    if classifier.partner_ is not None:
        arrays |= put_forest(classifier.partner_)
    if walk.log_sums is not None:
        arrays["log_sums"] = walk.log_sums
    names = getattr(classifier, "feature_names_in_", None)
    data = {
        "written_by": manifoldknn.__version__,
        "params": params,
        "classes": array_to_plain(labels.classes),
        "marker": to_plain(labels.marker),
        "by_class": isinstance(vote, ClassVote),
        "alpha": to_plain(float(classifier.alpha_)),
        "sharpness": to_plain(classifier.sharpness_),
        "usual": to_plain(vote.usual if isinstance(vote, ClassVote) else -np.inf),
        "calibrated": bool(classifier.calibrated_),
        "n_iter": int(classifier.n_iter_),
        "converged": bool(walk.converged),
        "sigma": to_plain(classifier.sigma_),
        "feature_names": None if names is None else [to_plain(str(name)) for name in names],
        "stream": state_data(classifier),
        "extra": dict(extra) if extra is not None else None,
    }
    if "partner" in params or classifier.partner_ is not None:
        data["partner_weight"] = to_plain(classifier.partner_weight_)
    write_archive(path, arrays, data, kind=_KIND, version=_VERSION, force=force)


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> ManifoldKNNClassifier:
    """Read a classifier that `save` wrote.

    Nothing in the file is run. What is not exactly as `save` writes it is refused, and memory stays
    in proportion to the size of the file. Checksums prove that the file is whole, not who wrote it:
    a stranger's model may answer what the stranger likes.

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
    if params["partner"] is None:
        del params["partner"]
    elif not isinstance(params["partner"], str):
        raise ValueError("partner is an object, which cannot be saved: fit with partner='forest'.")
    index = classifier.fitted_.index.first
    by_name = isinstance(params["neighbors"], str)
    if isinstance(index, GivenIndex) and not by_name:
        arrays["given_indices"], arrays["given_distances"] = index.lists
        params["neighbors"] = None
    elif not by_name:
        raise ValueError(
            "neighbors is a searcher, which cannot be saved: fit with neighbors='auto', or with "
            "the (indices, distances) it found."
        )
    params["device"] = named(params["device"])
    prior = params["class_prior"]
    if not isinstance(prior, str):
        params["class_prior"] = None
        arrays["class_prior"] = np.asarray(prior, dtype=np.float64)
    return {name: to_plain(value) for name, value in params.items()}


def _narrow(codes: NDArray[np.intp]) -> NDArray[Any]:
    """Return class numbers in as few bytes as hold them."""
    return codes.astype(np.min_scalar_type(-1 - int(codes.max(initial=0))))


def _put_matrix(arrays: Arrays, name: str, matrix: Any) -> None:
    if not sparse.issparse(matrix):
        arrays[name] = matrix
        return
    matrix = sparse.csr_array(matrix)
    if matrix.shape[1] > _MOST_COLUMNS:
        raise ValueError(f"X has more than {_MOST_COLUMNS} columns, which cannot be saved.")
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
    require(0 < parts[3][1] <= _MOST_COLUMNS, name)
    # Compiled code trusts these numbers: every one of them is checked.
    matrix = sparse.csr_array(tuple(parts[:3]), shape=tuple(int(x) for x in parts[3]))
    matrix.check_format(full_check=True)
    return matrix


def _restored(arrays: Arrays, data: dict[str, Any]) -> ManifoldKNNClassifier:
    """Return the classifier as it was saved: its attributes, and all that `Fitted` holds."""
    model = _with_params(arrays, data["params"])
    X, labels = _get_matrix(arrays, "samples"), _labels(arrays, data)
    n, n_classes, n_walked = X.shape[0], len(labels.classes), data["stream"]["n_walked"]
    values = X.data if sparse.issparse(X) else X
    require(type(n_walked) is int and 2 <= n_walked <= n, "rows")
    require(n >= 2 and len(labels.codes) == n and np.isfinite(values).all(), "samples")
    require(X.dtype in (np.float32, np.float64), "samples")
    check_spread(X)
    model.n_features_in_, names = int(X.shape[1]), data["feature_names"]
    if names is not None:
        names = [from_plain(name) for name in names]
        fit_in = len(names) == X.shape[1] and all(isinstance(name, str) for name in names)
        require(fit_in, "feature names")
        model.feature_names_in_ = np.array(names, dtype=object)
    walk, vote = _walk(arrays, data, labels), _vote(model, arrays, data, labels)
    answers = numbers(arrays, "answers", n_classes, least=-1).astype(np.intp, copy=False)
    unreached = arrays["unreached"]
    require(answers.shape == (n,), "answers")
    require(unreached.dtype == bool and unreached.shape == (n,), "unreached")
    model.classes_, model.labeled_indices_ = labels.classes, labels.labeled
    model.sigma_, model.alpha_ = _positive(data, "sigma"), _positive(data, "alpha")
    require(model.alpha_ < 1, "alpha")
    require(type(data["calibrated"]) is bool, "calibrated")
    model.class_prior_, model.calibrated_ = vote.prior, data["calibrated"]
    model.sharpness_ = vote.sharpness if isinstance(vote, ClassVote) else None
    model.hidden_labels_ = _hidden(labels, arrays)
    model.n_iter_, model.n_walked_, model.unreached_ = walk.n_iter, n_walked, unreached
    model.transduction_ = _decoded(labels, answers)
    partner = _partner(model, arrays, labels, vote)
    said = None if partner is None else partner.said(X)
    links, steps = _links(arrays, labels), usable_steps(model.device)
    index = _opened(model, steps, X, data["stream"]["n_first"])
    state = restored_state(model, index, arrays, data["stream"])
    model.label_distributions_ = _shares(
        vote, walk, answers, said, state["belonging"].values.values
    )
    holds = data["stream"]["settings_hold"]
    state["arrivals"] = restored_arrivals(model, walk, arrays, settings_hold=holds)
    recipe = recipe_of(model, index.X, state["lists"], state["edges"], links)
    model.fitted_ = Fitted(
        steps=steps,
        index=index,
        labels=labels,
        links=links,
        graph=recipe.constrained(labels.codes[:n_walked]),
        walk=walk,
        vote=vote,
        row_index=restored_row_index(arrays, n),
        partner=partner,
        **state,
    )
    return model


def _opened(classifier: ManifoldKNNClassifier, steps: Steps, X: Any, n_first: Any) -> GrowingIndex:
    """Search over the first rows, and the rows that were added to it."""
    require(type(n_first) is int and 2 <= n_first <= X.shape[0], "search")
    first = X[:n_first]
    check_neighbors(
        classifier.neighbors, first, metric=classifier.metric,
        graph_neighbors=min(classifier.graph_neighbors, n_first - 1),
    )  # fmt: skip
    index = GrowingIndex(opened(classifier, steps, first, classifier.neighbors))
    return index if n_first == X.shape[0] else index.appended(X[n_first:])


def _with_params(arrays: Arrays, plain: dict[str, Any]) -> ManifoldKNNClassifier:
    plain = {"partner": to_plain(None), "abstain_below": to_plain(None)} | plain
    require(set(plain) == set(ManifoldKNNClassifier().get_params(deep=False)), "parameters")
    params = {name: from_plain(value) for name, value in plain.items()}
    whole = [v for name, v in params.items() if isinstance(v, int) and name != "unlabeled"]
    require(all(abs(v) < 2**63 for v in whole), "parameters")
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
    classes, marker = array_from_plain(data["classes"]), from_plain(data["marker"])
    again = encode_labels(classes, unlabeled=None).classes  # one type, each once, in order
    require(again.dtype == classes.dtype and np.array_equal(again, classes), "classes")
    _check_lengths(classes, marker)
    codes = numbers(arrays, "codes", len(classes), least=-1)
    require(codes.ndim == 1 and (np.bincount(codes + 1)[1:] > 0).sum() == len(classes), "labels")
    return EncodedLabels(classes, codes.astype(np.intp, copy=False), marker)


def _check_lengths(classes: NDArray[Any], marker: Any) -> None:
    """Refuse labels of which a column of answers would take all memory."""
    for label in (*classes.tolist(), marker):
        if isinstance(label, str | bytes) and len(label) > _LONGEST_LABEL:
            raise ValueError(f"a label has more than {_LONGEST_LABEL} letters: shorten it.")


def _decoded(labels: EncodedLabels, answers: NDArray[np.intp]) -> NDArray[Any]:
    """Return answers as labels; as objects where text of one width would take much memory."""
    width = labels.decode([0, -1]).dtype.itemsize
    if width > _USUAL_WIDTH and width * len(answers) > _MOST_TEXT:
        labels = replace(labels, classes=labels.classes.astype(object))
    return labels.decode(answers)


def _walk(arrays: Arrays, data: dict[str, Any], labels: EncodedLabels) -> Walked:
    by_class, n_iter = data["by_class"], data["n_iter"]
    require(type(by_class) is bool and type(n_iter) is int and n_iter >= 0, "walk")
    n, n_labeled = len(labels.codes), len(labels.labeled)
    shape = (n, len(labels.classes) if by_class else n_labeled)
    logs = logarithms(arrays, "logs", shape, np.float32 if by_class else np.float64)
    require((logs <= 0).all(), "logs")
    log_scale = logarithms(arrays, "log_scale", (n,), np.float64)
    sums = floats(arrays, "log_sums", (n_labeled,)) if by_class else None
    return Walked(Similarities(logs, log_scale), sums, n_iter, bool(data["converged"]))


def _positive(data: dict[str, Any], name: str) -> float:
    value = from_plain(data[name])
    require(type(value) in (int, float) and 0 < value < np.inf, name)
    return float(value)


def _links(arrays: Arrays, labels: EncodedLabels) -> HandLinks:
    n = len(labels.codes)
    links = HandLinks(
        *(row_pairs(name, arrays[name], n) for name in ("links_must", "links_cannot"))
    )
    check_links(links, labels.codes)
    return links


def _vote(
    model: ManifoldKNNClassifier, arrays: Arrays, data: dict[str, Any], labels: EncodedLabels
) -> Vote:
    """Return how similarities become shares."""
    prior = floats(arrays, "prior", (len(labels.classes),))
    class_prior(model.class_prior, np.bincount(labels.codes[labels.labeled]), labels.classes)
    require((prior > 0).all() and abs(float(prior.sum()) - 1.0) < 1e-9, "prior")
    if data["by_class"]:
        weight = from_plain(data["partner_weight"]) if "partner_weight" in data else 0.0
        require(type(weight) is float and 0 <= weight < np.inf, "partner")
        usual = from_plain(data["usual"]) if "usual" in data else -np.inf  # not in older files
        require(type(usual) is float and usual < np.inf, "usual density")
        return ClassVote(prior, _positive(data, "sharpness"), weight, usual)
    return NeighborVote(prior, labels.codes[labels.labeled], model.n_neighbors)


def _partner(
    model: ManifoldKNNClassifier, arrays: Arrays, labels: EncodedLabels, vote: Vote
) -> Partner | None:
    """Restore the partner, and return it if it has a say."""
    n_classes = len(labels.classes)
    model.partner_, model.partner_weight_ = None, 0.0
    if "forest_roots" in arrays:
        model.partner_ = restored_forest(arrays, model.n_features_in_, n_classes)
    if model.partner_ is None or not isinstance(vote, ClassVote) or not vote.partner_weight:
        return None
    model.partner_weight_ = vote.partner_weight
    return Partner(model.partner_, n_classes, model.n_jobs)


def _put_hidden(classifier: ManifoldKNNClassifier) -> Arrays:
    hidden = classifier.hidden_labels_
    if hidden is None:
        return {}
    return {
        "hidden_rows": hidden.rows,
        "hidden_shares": hidden.shares,
        "hidden_weights": hidden.class_weights,
        "hidden_folds": np.array([hidden.n_folds]),
    }


def _hidden(labels: EncodedLabels, arrays: Arrays) -> HiddenLabels | None:
    if "hidden_rows" not in arrays:
        return None
    codes, n_classes = labels.codes, len(labels.classes)
    rows = numbers(arrays, "hidden_rows", len(codes)).astype(np.intp, copy=False)
    folds = numbers(arrays, "hidden_folds", len(codes) + 1, least=1)
    require(rows.ndim == 1 and (codes[rows] >= 0).all() and folds.shape == (1,), "hidden labels")
    shares = floats(arrays, "hidden_shares", (len(rows), n_classes))
    weights = floats(arrays, "hidden_weights", (n_classes,))
    require((shares >= 0).all() and (weights >= 0).all(), "hidden labels")
    return HiddenLabels(rows, codes[rows], shares, weights, int(folds[0]))


def _shares(
    vote: Vote,
    walk: Walked,
    answers: NDArray[np.intp],
    said: NDArray[np.float64] | None,
    belonging: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the votes for all rows; those for unreached rows as they were answered."""
    shares = vote.shares(walk.similarities.logs, said)
    shares = vote.doubted(shares, walk.similarities.log_scale, belonging)
    lost = np.flatnonzero(~shares.any(axis=1))
    n_classes = shares.shape[1]
    named = answers[lost] >= 0
    shares[lost[named]] = np.eye(n_classes)[answers[lost[named]]]
    shares[lost[~named]] = 1.0 / n_classes
    return shares
