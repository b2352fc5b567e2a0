"""From a file with a few labels to a fitted classifier, as the command line does it."""

from __future__ import annotations

import argparse
import difflib
import logging
import re
import shlex
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from manifoldknn.base.heap import return_freed_memory, return_spare_memory
from manifoldknn.base.parameters import PARAMETERS, check_parameters
from manifoldknn.base.progress import timed_stages
from manifoldknn.classifier import ManifoldKNNClassifier, as_published
from manifoldknn.exceptions import EverythingLabeledWarning, ManifoldKNNWarning, UnreachedError
from manifoldknn.insight.suggestions import Suggestions, suggest
from manifoldknn.model.cautions import partner_words
from manifoldknn.search.neighbors import check_metric
from manifoldknn.tables import cells
from manifoldknn.tables.column_uses import alarms, every_use, left_out_notes, manner_notes
from manifoldknn.tables.features import FeatureStep
from manifoldknn.tables.linkfile import read_links
from manifoldknn.tables.profile import Use
from manifoldknn.tables.table import Table, TableError, format_of, open_table, said_name

__all__ = [
    "Session",
    "as_options",
    "column_ids",
    "learn",
    "noted",
    "open_input",
    "prepare",
    "said_as_options",
    "stage",
]

logger = logging.getLogger("manifoldknn")

_NOTHING_LEFT = {
    "classify": "every row has a label, so nothing is left to find out.",
    "suggest": "every row has a label, so there is no row to suggest.",
}
_HOW_TO_BEGIN = (
    "`manifoldknn suggest` names rows to begin with, `manifoldknn label` shows them in a browser"
)
_BEGINNERS = ("suggest", "label")  # commands that need no labels yet
_HOW_UNLABELED = (
    "Empty the cells of rows without a label, or name what stands there with --unlabeled"
)

_NO_LABEL = frozenset({
    "unknown", "unlabeled", "unlabelled", "unclear", "undefined", "unclassified", "todo", "tbd",
    "unbekannt", "unklar",
})  # fmt: skip
_MOST_NUMBERS = 100  # classes that are numbers; more are codes only if each has many labels
_EACH = 10
_FOR_A_FOREST = 5  # labels per class, on average

_SAID = (*PARAMETERS, "must_link", "cannot_link")
_SETTABLE = "|".join(_SAID)
_COMPOUND = "|".join(name for name in _SAID if "_" in name)  # no ordinary words


@dataclass
class Session:
    """A table that was learned from."""

    table: Table
    ids: NDArray[Any]  # what the user calls the rows
    labels: NDArray[Any]  # trimmed, "" where there is none
    step: FeatureStep  # how columns became features
    classifier: ManifoldKNNClassifier  # fitted, but by `prepare`
    seconds: dict[str, float] = field(default_factory=dict)  # how long each stage took
    notes: list[str] = field(default_factory=list)  # what the user should know
    columns: list[Use] = field(default_factory=list)  # what became of every column of the file
    unlearned: dict[str, Any] = field(default_factory=dict)  # what `suggest` takes instead
    warnings: list[str] = field(default_factory=list)  # what must not be overlooked

    def suggested(self, n: int) -> Suggestions:
        """Return rows to label next, also where labels are too few to learn from."""
        source = self.unlearned or {"source": self.classifier}
        with stage(self.seconds, "suggestions"), noted(self.notes), said_as_options(self.ids):
            return suggest(n=n, index=self.ids, **source)


@contextmanager
def stage(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Tell that a stage begins, and note how long it takes."""
    logger.info("%s ...", name)
    start = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
    return_freed_memory()


def as_options(text: str) -> str:
    """Return advice about parameters in Python as advice about options, rows counted from 1.

    >>> as_options("raise graph_neighbors, or use graph='pruned'")
    'raise --graph-neighbors, or use --graph pruned'
    """
    text = re.sub(r"first is row (\d+)", lambda found: f"first is row {int(found[1]) + 1}", text)
    text = re.sub(rf"\b({_SETTABLE})=(?:'([^']*)'|([\w.+-]*\w))", _as_setting, text)
    return re.sub(rf"(?<![\w-])({_COMPOUND})(?![\w-])", _as_setting, text)


def _as_setting(match: re.Match[str]) -> str:
    name, *values = match.groups()
    return " ".join([f"--{name.replace('_', '-')}", *(value for value in values if value)])


@contextmanager
def noted(notes: list[str]) -> Iterator[None]:
    """Add what is warned about inside the block to the notes, each thing once.

    These are warnings of this package, and of walks that did not converge.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        for category in (ManifoldKNNWarning, ConvergenceWarning):
            warnings.simplefilter("always", category)
        warnings.simplefilter("ignore", EverythingLabeledWarning)  # `learn` has its own words
        yield
    told = [as_options(str(warning.message)) for warning in caught]
    notes.extend(note for note in dict.fromkeys(told) if note not in notes)


@contextmanager
def said_as_options(ids: NDArray[Any] | None = None) -> Iterator[None]:
    """Let errors about parameters name the options that set them, and rows by their ids."""
    try:
        yield
    except UnreachedError:  # not about a value
        raise
    except ValueError as error:
        text = as_options(str(error))
        if ids is not None:
            pair = re.compile(r"\brows (\d+) and (\d+)")
            text = pair.sub(lambda two: f"rows {ids[int(two[1])]} and {ids[int(two[2])]}", text)
        raise TableError(text) from error


def open_input(
    path: Path, form: str | None, delimiter: str | None, encoding: str | None = None
) -> Table:
    """Open the user's file, or say in one line why not."""
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise TableError(f"--delimiter {delimiter!r} must be one character, such as ';' or tab")
    if not path.exists():
        raise TableError(f"there is no file {path}: check the name")
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file in it")
    chosen = form or format_of(path.name)
    if chosen is None:
        raise TableError(
            f"the format of {path.name} is not known by its name: add --format csv (or tsv, "
            "xlsx, parquet, arrow, npy, npz), or save it as one of these"
        )
    return open_table(path, chosen, delimiter=delimiter, encoding=encoding)


def learn(table: Table, options: argparse.Namespace) -> Session:
    """Read labels and features, search neighbours and fit."""
    session, X, links = prepare(table, options)
    notes, labels, classifier = session.notes, session.labels, session.classifier
    if options.command in _BEGINNERS and len(set(labels.tolist()) - {""}) < 2:
        session.unlearned = {"source": X, "y": labels, "estimator": classifier, **links}
    else:
        with (
            timed_stages(session.seconds, after=return_spare_memory),
            noted(notes),
            said_as_options(session.ids),
        ):
            classifier.fit(X, labels, **links)
        notes.extend(partner_words(classifier))
    return_freed_memory()
    return session


def prepare(
    table: Table, options: argparse.Namespace
) -> tuple[Session, NDArray[Any], dict[str, Any]]:
    """Read labels and features; return a session that has learned nothing, features and links."""
    seconds: dict[str, float] = {}
    notes: list[str] = []
    wanted = {name: getattr(options, name) for name in PARAMETERS}
    wanted["partner"] = None if options.partner == "none" else options.partner
    make = as_published if options.as_published else ManifoldKNNClassifier
    classifier = make(**{name: value for name, value in wanted.items() if value is not None})
    with said_as_options():
        check_parameters(classifier.get_params(deep=False))
        check_metric(classifier.metric, is_sparse=False)
    used = _used_columns(table, options, notes)
    with stage(seconds, "reading"):
        special = [name for name in (options.label, options.id) if name is not None]
        texts = table.texts(special, then=used)
        if table.n_rows < 3:
            rows = cells.counted(table.n_rows, "row")
            raise TableError(f"the file has only {rows}: bring at least 3")
        labels = np.full(table.n_rows, "", dtype=object)
        if options.label is not None:
            told = texts[options.label], options.label, options.unlabeled, notes
            labels = clean_labels(*told, begins=options.command in _BEGINNERS)
        ids = column_ids(texts, options.id, table.n_rows)
        if isinstance(options.class_prior, dict):
            classifier.class_prior = _named_prior(options.class_prior, set(labels.tolist()) - {""})
        if options.partner is None and _suits_a_forest(options.command, classifier, labels):
            classifier.partner = "forest"
        files = {"must_link": options.must_link, "cannot_link": options.cannot_link}
        links = {kind: read_links(Path(file), ids, notes) for kind, file in files.items() if file}
        if (labels != "").all() and options.command in _NOTHING_LEFT:
            notes.append(f"{_NOTHING_LEFT[options.command]} {_HOW_UNLABELED}")
        del texts
    with stage(seconds, "features"):
        step, X = FeatureStep.fit(
            table, used, scale=options.scale, insist=bool(options.features), na=options.na or ()
        )
        table.release()
        notes.extend([*manner_notes(table), *step.notes, *left_out_notes(step.left_out)])
    _check_features(X)
    columns = every_use(table, step.uses, {options.label: "label", options.id: "id"})
    warned = [*alarms(columns), *class_hints(labels, options.label)]
    notes[:0] = warned
    session = Session(
        table, ids, labels, step, classifier, seconds, notes, columns, warnings=warned
    )
    return session, X, links


def _suits_a_forest(command: str, classifier: ManifoldKNNClassifier, labels: NDArray[Any]) -> bool:
    """Tell whether answers are wanted, and labels are enough for a forest to learn from."""
    enough = (labels != "").sum() >= _FOR_A_FOREST * len(set(labels.tolist()) - {""})
    return bool(command in ("classify", "suggest") and classifier.vote == "classes" and enough)


def _named_prior(shares: dict[str, float], classes: set[str]) -> list[float]:
    """Return shares in the order of classes, or say which class is without."""
    for name in sorted(classes ^ set(shares)):
        why = "has no share" if name in classes else "has no label"
        raise TableError(f"--class-prior: {name!r} {why}; give a share to each labelled class")
    return [shares[name] for name in sorted(classes)]


def _check_features(X: NDArray[Any]) -> None:
    if (X[0] == X).all():
        raise TableError("all rows have the same features, so nothing tells them apart")
    if not np.isfinite(X).all():
        raise TableError("some features are too large to be measured: rescale them")


def _used_columns(table: Table, options: argparse.Namespace, notes: list[str]) -> list[str]:
    """Return the columns to make features of; say which of those named do not exist."""

    def named_so(name: str | None) -> Any:  # blanks around names of columns do not count
        return name if name is None or name in table.names else name.strip()

    options.label, options.id = named_so(options.label), named_so(options.id)
    options.features = options.features and [named_so(name) for name in options.features]
    options.drop = options.drop and [named_so(name) for name in options.drop]
    single = {"--label": options.label, "--id": options.id}
    special = {option: [name] for option, name in single.items() if name is not None}
    named = {"--features": options.features or [], "--drop": options.drop or []}
    for option, names in (special | named).items():
        for name in names:
            if name not in table.names:
                near = difflib.get_close_matches(name, table.names, 1, 0.5)
                hint = f"did you mean {near[0]!r}? " if near else ""
                some = ", ".join(table.names[:12]) + (" ..." if len(table.names) > 12 else "")
                raise TableError(f"{option}: no column {name!r}; {hint}The columns are: {some}")
    if options.label is not None and options.label == options.id:
        raise TableError(f"--label and --id both name {options.label!r}: name another with --id")
    kept = list(dict.fromkeys(options.features or table.names))
    without = {options.label, options.id, *(options.drop or [])}
    if not options.features:
        index = [name for name in table.index_names if name not in without]
        notes.extend(f"left out {said_name(name)}: the index of a frame" for name in index)
        without.update(index)
    used = [name for name in kept if name not in without]
    if not used:
        raise TableError(
            "no column is left for features: name some with --features, or add columns with "
            "embeddings of texts or pictures"
        )
    return used


def clean_labels(
    texts: list[str], name: str, marker: str | None, notes: list[str], *, begins: bool = False
) -> NDArray[Any]:
    """Return labels trimmed, "" where there is none, and note what was done.

    The `marker` is further text that means "no label"; if "", only empty cells do. If it is None
    and all labels are whole numbers, -1 means it too. Who only `begins` needs no two classes.

    >>> notes = []
    >>> clean_labels([" a", "b", "", "a"], "kind", None, notes).tolist(), notes
    (['a', 'b', '', 'a'], ["1 label(s) in 'kind' had blanks around them, which were trimmed"])
    """
    trimmed = [text.strip() for text in texts]
    changed = sum(a != b and bool(b) for a, b in zip(texts, trimmed))
    if changed:
        notes.append(f"{changed} label(s) in {name!r} had blanks around them, which were trimmed")
    present = set(trimmed) - {""}
    minus_one = ""
    if marker is not None:
        marker = marker.strip()
        if marker and marker not in present and "" not in trimmed:
            raise TableError(f"--unlabeled {marker!r} does not occur in column {name!r}: check it")
    elif "-1" in present and all(_is_whole(text) for text in present):
        marker = "-1"
        minus_one = "; -1 was taken as no label: if it is a class, add --unlabeled ''"
        notes.append(f"-1 in {name!r} counts as no label; use --unlabeled '' if it is a class")
    labels = np.empty(len(trimmed), dtype=object)
    labels[:] = ["" if text == marker else text for text in trimmed]
    classes = set(labels.tolist()) - {""}
    if not (classes or begins):
        raise TableError(
            f"column {name!r} has no labels: fill in a few, of at least two classes; "
            f"{_HOW_TO_BEGIN}{minus_one}"
        )
    if len(classes) == 1 and not begins:
        raise TableError(
            f"column {name!r} has one class only, {classes.pop()!r}: label rows of another class "
            f"too{minus_one}"
        )
    _check_classes(classes, int((labels != "").sum()), name)
    return labels


def class_hints(labels: NDArray[Any], name: str | None) -> list[str]:
    """Return what to say of classes that may mean "no label", or the same but for capitals.

    >>> class_hints(np.array(["a", "?", "A", "?"]), "kind")[0]
    "'?' in 'kind' counts as a class (2 rows); if it means no label, add --unlabeled '?'"
    """
    counts, alike = Counter(text for text in labels.tolist() if text), dict[str, list[str]]()
    for text in sorted(counts):
        alike.setdefault(" ".join(text.casefold().split()), []).append(text)
    return [
        f"{text!r} in {name!r} counts as a class ({cells.counted(count, 'row')}); if it means no "
        f"label, add --unlabeled {shlex.quote(text)}"
        for text, count in sorted(counts.items())
        if cells.is_missing(text) or text.lower() in _NO_LABEL or text == name
    ] + [
        f"{' and '.join(map(repr, texts))} in {name!r} are different classes; if they are one, "
        "write them alike"
        for texts in alike.values()
        if len(texts) > 1
    ]


def _check_classes(classes: set[str], n_labels: int, name: str) -> None:
    """Refuse what is no column of classes but a measurement."""
    if len(classes) <= _MOST_NUMBERS or (
        n_labels >= _EACH * len(classes) and all(map(_is_whole, classes))
    ):
        return
    if cells.read_numbers(sorted(classes))[1].n_read == len(classes):
        raise TableError(
            f"column {name!r} holds {len(classes)} different numbers: is it a measurement? Name a "
            "column of classes with --label, or put a letter before each number if they are"
        )


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def column_ids(texts: dict[str, list[str]], name: str | None, n_rows: int) -> NDArray[Any]:
    """Return the ids of rows, all different; row numbers from 1 if no column has them."""
    if name is None:
        return np.arange(1, n_rows + 1)
    ids = texts[name]
    seen: dict[str, int] = {}
    for row, text in enumerate(ids, 1):
        before = seen.setdefault(text, row)
        if before != row:
            raise TableError(
                f"column {name!r} is no id: {text[:60]!r} stands in rows {before} and {row}; "
                "choose another column or correct it"
            )
    column = np.empty(len(ids), dtype=object)
    column[:] = ids
    return column
