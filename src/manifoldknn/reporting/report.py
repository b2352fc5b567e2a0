"""The report page of the command line, from Python."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.model.rowids import check_all_walked, fitted_row_ids
from manifoldknn.reporting.findings import findings
from manifoldknn.reporting.page import write_report
from manifoldknn.reporting.summary import summary_data
from manifoldknn.tables.column_uses import alarms
from manifoldknn.tables.encoder import TableEncoder
from manifoldknn.tables.features import FeatureStep, Plan
from manifoldknn.tables.formats.frame import FrameTable
from manifoldknn.tables.profile import Use
from manifoldknn.tables.session import Session


def report(
    model: Any,
    frame: Any,
    path: str | os.PathLike[str],
    *,
    n: int = 20,
    validate: bool = True,
    name: str = "table",
    label: str = "label",
    force: bool = False,
) -> None:
    """Write the page of ``manifoldknn classify --report``: how good, where not, what next.

    Parameters
    ----------
    model : ManifoldKNNClassifier, or Pipeline that ends with one
        Fitted. A `TableEncoder` in the pipeline tells what became of the columns.
    frame : pandas, polars or pyarrow frame, or array-like
        The fitted rows, in their order: what their cells show on the page. It may have further
        columns. Rows are called as `suggest` and `set_labels` call them: by the index of the frame
        the classifier itself was fitted on, as
        ``TableEncoder().set_output(transform="pandas")`` hands it on, else by number.
    path : str or path
        The file to write.
    n : int, default=20
        How many rows to suggest.
    validate : bool, default=True
        Whether to estimate the accuracy and to look for labels that are wrong.
    name, label : str
        What the page calls the table and the labels.
    force : bool, default=False
        Whether a file that exists is replaced.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import ManifoldKNNClassifier, report
    >>> frame, y = load_iris(return_X_y=True, as_frame=True)
    >>> y[y.index % 10 > 0] = -1
    >>> clf = ManifoldKNNClassifier().fit(frame, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(clf, frame, pathlib.Path(folder) / "iris.html")
    ...     len(list(pathlib.Path(folder).iterdir()))
    1
    """
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    clf = steps[-1]
    if not isinstance(clf, ManifoldKNNClassifier):
        raise TypeError(f"model must be, or end with, a ManifoldKNNClassifier, not {clf!r}.")
    check_all_walked(clf)
    encoder = next((step for step in steps if isinstance(step, TableEncoder)), None)
    session = _session(clf, encoder, FrameTable(frame))
    found = findings(session, validate=validate)
    answers = clf.transduction_, found.confidence
    data = summary_data(session, found.health, found.hidden, *answers, validated=validate)
    data["warnings"] = session.warnings
    write_report(
        path, session, found.health, data, found.confidence, found.off_manifold,
        n=n, name=name, label=label, force=force,
    )  # fmt: skip


def _session(
    clf: ManifoldKNNClassifier, encoder: TableEncoder | None, table: FrameTable
) -> Session:
    """Return what the page wants to know of a table that was learned from."""
    n_rows = len(clf.transduction_)
    if table.n_rows != n_rows:
        raise ValueError(
            f"frame has {table.n_rows} rows, and the classifier knows {n_rows}: pass the rows it "
            "was fitted on, in their order."
        )
    labels = np.full(n_rows, "", dtype=object)
    labels[clf.labeled_indices_] = clf.transduction_[clf.labeled_indices_].astype(str)
    if encoder is not None:
        step, columns = encoder.step_, encoder.columns_.uses
    else:
        numbers = [Plan(str(place), "number") for place in range(clf.n_features_in_)]
        step, columns = FeatureStep(numbers, scale=False), []
        if len(table.names) == clf.n_features_in_:
            columns = [Use(name, True, "number", "") for name in table.names]
    warned = alarms(columns)
    notes = [*warned, *step.notes]
    ids = fitted_row_ids(clf)
    return Session(table, ids, labels, step, clf, {}, notes, columns, warnings=warned)
