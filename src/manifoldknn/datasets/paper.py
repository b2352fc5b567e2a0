"""The six real data sets of the paper: found, fetched, and checked before anything is used.

A set is looked for in the folder that the environment variable ``MANIFOLDKNN_DATA`` names, then
in the user's cache, and is then downloaded from OpenML through scikit-learn and kept in the cache.
Wherever it comes from, it must have the right shape, the right number of rows of every class,
the right values in every class, and after cleaning as many rows as the paper says.
"""

import os
import sys
import tomllib
import zipfile
import zlib
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.atomic import replaced_file

_UNREADABLE = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)
_TOLERANCE = 1e-5  # of class means in [0, 1]; two labels swapped move them by more


@dataclass(frozen=True)
class Spec:
    """Everything by which a data set is known."""

    name: str  # as in the paper
    files: tuple[str, ...]  # names that a file of it may have; the first is the usual one
    openml: tuple[int, ...]  # OpenML data sets whose columns it consists of
    n_features: int
    n_paper: int  # rows that the paper states
    classes_paper: int  # classes that the paper states
    drops_repeats: bool  # whether the paper's rows are what is left without repeated rows
    counts: tuple[int, ...]  # rows of every class before that, by their numbers or names
    # Mean of all values of every class, columns scaled to [0, 1]. Neither the order of rows and
    # columns nor the unit of a column changes it; wrong labels do.
    class_means: tuple[float, ...]
    deviation: float  # of the rows' means, which changes when columns are joined wrongly

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of X before cleaning."""
        return sum(self.counts), self.n_features


def row_means(X: Floats) -> Floats:
    """Return the mean of every row, columns scaled to [0, 1]; constant columns count as 0.

    >>> row_means(np.array([[0.0, 7.0], [5.0, 7.0], [10.0, 7.0]]))
    array([0.  , 0.25, 0.5 ])
    """
    return np.asarray(scaled(X).mean(axis=1))


def scaled(X: Floats) -> Floats:
    """Return X with every column mapped to [0, 1], constant ones to 0."""
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    return np.asarray((X - low) / np.where(spread > 0, spread, 1.0))


def _spec(name: str, read: dict[str, Any]) -> Spec:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in read.items()}
    return Spec(name, **fields)


_TEXT = (resources.files(__package__) / "specs.toml").read_text("utf-8")
PAPER_SETS = {name: _spec(name, fields) for name, fields in tomllib.loads(_TEXT).items()}


@dataclass(frozen=True, eq=False)
class PaperData:
    """A checked data set."""

    name: str  # as in the paper
    X: Floats  # samples, with repeated rows removed where the paper did that
    y: Ints  # classes, from 0
    n_removed: int  # repeated rows that were removed
    source: str  # the file, or the OpenML data sets, that they come from


def load_paper(name: str, *, scale: bool = True, download: bool = True) -> PaperData:
    """Load one of the six real data sets of the paper.

    Parameters
    ----------
    name : {"usps", "segmentation", "banknote", "pendigits", "multifeature", "satlog"}
        Which one.
    scale : bool, default=True
        Map every column to [0, 1] (constant ones to 0), as for all published numbers of this
        project. False: values as they are.
    download : bool, default=True
        Whether a set that is in neither folder may be downloaded from OpenML.

    Returns
    -------
    PaperData
        The set. Of segmentation and banknote repeated rows are removed, the first one kept: that
        leaves the paper's 2086 and 1348.

    Raises
    ------
    ValueError
        If the name is unknown, or if a file or a download is not what it should be. The message
        names the file, what was found and what was expected.
    FileNotFoundError
        If the set is nowhere to be found. The message says where to put which file.

    Notes
    -----
    A file is ``<name>.npz`` with arrays ``X`` and ``y``, repeated rows included; mfeat.npz and
    satimage.npz will do for multifeature and satlog. The cache is ``manifoldknn`` in the
    system's folder for caches. The paper says that segmentation has 6 classes; it has 7.

    Examples
    --------
    >>> from manifoldknn.datasets import PAPER_SETS, load_paper
    >>> [(s.name, s.n_paper, s.n_features) for s in PAPER_SETS.values()][:2]
    [('usps', 9298, 256), ('segmentation', 2086, 19)]
    >>> load_paper("iris")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    ValueError: name='iris' must be one of 'usps', 'segmentation', 'banknote',
    'pendigits', 'multifeature', 'satlog'.
    """
    if not isinstance(name, str) or name not in PAPER_SETS:
        known = ", ".join(map(repr, PAPER_SETS))
        raise ValueError(f"name={name!r} must be one of {known}.")
    spec = PAPER_SETS[name]
    path = _find(spec)
    if path is not None:
        source = str(path)
        X, y = _checked(*_read(path), spec, source)
    elif download:
        source = f"OpenML {', '.join(map(str, spec.openml))}"
        X, y = _checked(*_fetched(spec), spec, source)
        _cache().mkdir(parents=True, exist_ok=True)
        with replaced_file(_cache() / spec.files[0]) as file:
            np.savez_compressed(file, X=X, y=y)
    else:
        raise FileNotFoundError(_what_to_do(spec, "it may not be downloaded (download=False)"))
    kept = np.arange(len(X))
    if spec.drops_repeats:
        # Compared as 32-bit numbers: files of that precision and others must agree.
        kept = np.sort(np.unique(X.astype(np.float32), axis=0, return_index=True)[1])
    if len(kept) != spec.n_paper:
        raise _wrong(
            source, spec, f"{len(kept)} rows without repetitions", f"{spec.n_paper} different rows"
        )
    n_removed, X = len(X) - len(kept), X[kept]
    return PaperData(name, scaled(X) if scale else X, y[kept], n_removed, source)


def _find(spec: Spec) -> Path | None:
    """Return the first file of that set, in the user's folder and then in the cache."""
    folders = [_cache()]
    named = os.environ.get("MANIFOLDKNN_DATA")
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise FileNotFoundError(
                f"MANIFOLDKNN_DATA={named} is not a folder: correct it, or unset it to use the "
                f"cache {_cache()}."
            )
        folders.insert(0, folder)
    files = (folder / file for folder in folders for file in spec.files)
    return next((file for file in files if file.is_file()), None)


def _cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "manifoldknn"


def _read(path: Path) -> tuple[Any, Any]:
    try:
        # Opened here, as np.load leaves files open that turn out to be no archives.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return arrays["X"], arrays["y"]
    except _UNREADABLE as error:
        reason = f"{type(error).__name__}: {error}".strip(": ")
        raise ValueError(
            f"{path} cannot be read ({reason}): expected an .npz file with arrays X and y, whole "
            "and without pickled objects. Copy or download it again."
        ) from error


def _fetched(spec: Spec) -> tuple[Any, Any]:
    """Download a set; its parts, if it has several, side by side."""
    from sklearn.datasets import fetch_openml

    try:
        parts = [
            fetch_openml(
                data_id=number, as_frame=False, return_X_y=True, parser="liac-arff", cache=False
            )
            for number in spec.openml
        ]
    except (OSError, ValueError) as error:
        reason = f"downloading it from OpenML failed ({type(error).__name__}: {error})"
        raise FileNotFoundError(_what_to_do(spec, reason)) from error
    blocks = [X.toarray() if hasattr(X, "toarray") else X for X, _ in parts]
    y = parts[0][1]
    for number, (_, labels) in zip(spec.openml, parts):
        if not np.array_equal(labels, y):
            raise ValueError(
                f"OpenML {number} has its rows in another order than OpenML {spec.openml[0]}: "
                f"their labels differ, so they cannot be joined. {_what_to_do(spec, '')}"
            )
    return np.hstack(blocks), y


def _what_to_do(spec: Spec, reason: str) -> str:
    bring = (
        f"write {spec.files[0]} with numpy.savez(file, X=X, y=y), X of shape {spec.shape}, into "
        f"{_cache()} or into a folder that the environment variable MANIFOLDKNN_DATA names."
    )
    if not reason:
        return f"Bring the data yourself: {bring}"
    return (
        f"The data set {spec.name!r} is neither in the folder that MANIFOLDKNN_DATA names nor in "
        f"the cache, and {reason}. Either connect to the network and call again, or {bring}"
    )


def _checked(X: Any, y: Any, spec: Spec, source: str) -> tuple[Floats, Ints]:
    """Return samples and class numbers, or refuse them by the name of their source."""
    wrong = partial(_wrong, source, spec)
    if X.shape != spec.shape:
        alike = next((s.name for s in PAPER_SETS.values() if s.shape == X.shape), None)
        hint = f", the shape of {alike!r}" if alike else ""
        raise wrong(f"X of shape {X.shape}{hint}", f"X of shape {spec.shape}")
    if y.shape != (len(X),):
        raise wrong(f"y of shape {y.shape}", f"y of shape {(len(X),)}")
    try:
        X = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong(f"X of type {X.dtype}", "numbers") from None
    if not np.isfinite(X).all():
        raise wrong(f"{(~np.isfinite(X)).sum()} missing values in X", "none")
    y = _class_numbers(y)
    counts = np.bincount(y).tolist()
    if counts != list(spec.counts):
        raise wrong(f"classes of {counts} rows", f"{list(spec.counts)}")
    means = row_means(X)
    found = np.bincount(y, means) / counts
    off = np.abs(found - spec.class_means) > _TOLERANCE
    if off.any():
        c = int(np.argmax(off))
        raise wrong(
            f"rows labelled {c} with a mean of {found[c]:.6f} (columns scaled to [0, 1])",
            f"{spec.class_means[c]:.6f}; rows are mislabelled or values are changed",
        )
    if abs(means.std() - spec.deviation) > _TOLERANCE:
        raise wrong(
            f"row means with a deviation of {means.std():.6f}",
            f"{spec.deviation:.6f}; columns do not belong to one another",
        )
    return X, y


def _wrong(source: str, spec: Spec, found: str, expected: str) -> ValueError:
    downloaded = source.startswith("OpenML")
    advice = _what_to_do(spec, "") if downloaded else "Replace or remove that file."
    return ValueError(
        f"{source} is not the data set {spec.name!r}: found {found}, expected {expected}. {advice}"
    )


def _class_numbers(y: Array) -> Ints:
    """Return class numbers from 0 in the order of their numbers, or of their names."""
    names, codes = np.unique(y, return_inverse=True)
    try:
        order = np.argsort(names.astype(np.float64))  # as text, "10" would come before "2"
    except (TypeError, ValueError):
        order = np.argsort([str(name).lower() for name in names])
    place = np.empty(len(names), dtype=np.intp)
    place[order] = np.arange(len(names))
    return place[codes.reshape(-1)]
