"""The command ``manifoldknn predict``: new rows, answered by a saved model."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn import persist
from manifoldknn.base.parameters import check_parameters
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.cli.screen import named, warn
from manifoldknn.files.archive import ModelFileError
from manifoldknn.model.answering import answers_to
from manifoldknn.model.cautions import confidence_words
from manifoldknn.model.quality import off_manifold_limit
from manifoldknn.reporting.summary import as_table, columns_data, columns_text
from manifoldknn.reporting.trust import SURE, found_words, trust_groups
from manifoldknn.tables.cells import counted
from manifoldknn.tables.column_uses import alarms, every_use, manner_notes
from manifoldknn.tables.features import FeatureStep
from manifoldknn.tables.inputs import opened
from manifoldknn.tables.outputs import (
    answers,
    check_format,
    check_targets,
    new_names,
    spreadsheet_safe,
    table_target,
    write_table,
)
from manifoldknn.tables.session import noted, said_as_options, stage
from manifoldknn.tables.table import COLUMN_TYPES, Table, TableError, said_name

_MODEL = "manifoldknn table"


def model_extra(step: FeatureStep, table: Table, label: str) -> dict[str, Any]:
    """Return what a saved model must know about the table it was fitted on, for `load_model`."""
    kind = table.column_type(label)
    return {"kind": _MODEL, "label": label, "label_type": kind, **step.to_plain()}


def load_model(path: str) -> tuple[ManifoldKNNClassifier, FeatureStep, str, str]:
    """Read a model that ``classify --save`` wrote.

    The two texts are the name and the type of the column of labels.
    """
    clf, extra = persist.load_with_extra(path)
    if not isinstance(extra, dict) or extra.get("kind") != _MODEL:
        raise TableError(f"{path} was not saved by manifoldknn classify --save")
    try:
        step = FeatureStep.from_plain(extra)
        label, label_type = extra["label"], extra["label_type"]
        if not isinstance(label, str) or label_type not in COLUMN_TYPES:
            raise ValueError("its label column cannot be")
        if len(step.features) != clf.n_features_in_:
            raise ValueError("its columns do not make its features")
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(
            f"{path} is no model that can be used ({error}): save it again"
        ) from None
    return clf, step, label, label_type


def predict_file(options: argparse.Namespace) -> tuple[dict[str, Any], str, bool]:
    """Label the rows of a file with a saved model.

    Return what happened for JSON and to be read, and whether the table went to standard output.
    """
    target = table_target(options)
    check_targets(options, {"--out": target}, model=options.model)
    seconds: dict[str, float] = {}
    with stage(seconds, "loading"):
        clf, step, label, label_type = load_model(options.model)
        if options.abstain_below is not None:
            clf.set_params(abstain_below=options.abstain_below)
            with said_as_options():
                check_parameters(clf.get_params(deep=False))
    with opened(options) as table:
        check_format(target, options, table)
        names = new_names(table, options.prefix)
        if table.n_rows < 1:
            raise TableError("the file has no rows: bring at least one under the header")
        with stage(seconds, "features"):
            step.na = sorted({*step.na, *(text.strip().lower() for text in options.na or ())})
            X, uses, notes = step.transform(table)
            outside = step.outside(X)
            table.release()
            notes = [*manner_notes(table), *notes]
            warnings = alarms(uses)
            warn(warnings, options)
        known = {plan.name for plan in step.plans} | {label}
        unknown = [name for name in table.names if name not in known]
        if unknown:
            notes.append(f"not used by the model: {', '.join(map(said_name, unknown[:10]))}")
        with stage(seconds, "classifying"), noted(notes):
            shares, codes, unreached = answers_to(clf, X)
            off = -clf.score_samples(X) / off_manifold_limit(clf)
        confidence, margin = answers(shares, codes, unreached)
        texts = ["" if name is None else str(name) for name in clf.fitted_.labels.decode(codes)]
        column = table.typed(label_type, spreadsheet_safe(texts, options, notes))
        added = dict(zip(names, (column, confidence, margin, off, unreached)))
        with stage(seconds, "writing"):
            write_table(table, target, added, options)
    sure = clf.abstain_below or SURE
    columns = table.manner, every_use(table, uses, {label: "label"}), warnings
    data = (
        _data(texts, confidence, unreached, off)
        | columns_data(*columns)
        | {
            "abstained": int((codes < 0).sum()),
            "trust": trust_groups(clf.classes_, codes, confidence, clf.hidden_labels_, sure),
            "calibrated": clf.calibrated_,
            "confidence_is": confidence_words(clf),
            "outside_range": outside,
            "notes": notes,
            "seconds": {name: round(s, 2) for name, s in seconds.items()},
            "out": target,
        }
    )
    return data, f"{columns_text(*columns)}\n\n{_text(data)}", target == "-"


def _data(
    texts: list[str],
    confidence: NDArray[np.float64],
    unreached: NDArray[np.bool_],
    off: NDArray[np.float64],
) -> dict[str, Any]:
    found, counts = np.unique(np.array(texts, dtype=str), return_counts=True)
    return {
        "rows": len(texts),
        "predicted_per_class": dict(zip(found.tolist(), counts.tolist())),
        "mean_confidence": round(float(confidence.mean()), 6),
        "unreached": int(unreached.sum()),
        "off_manifold": int((off > 1).sum()),
    }


def _text(data: dict[str, Any]) -> str:
    per_class = data["predicted_per_class"].items()
    text = as_table(
        ["class", "predicted"], [[name or "(none)", f"{count:,}"] for name, count in per_class]
    )
    text += (
        f"\n\nconfidence  {data['mean_confidence']:.2f} on average; it is {data['confidence_is']}"
    )
    for kind, group in zip(("trusted", "to look at"), data["trust"]):
        text += f"\n{kind:<11} {counted(group['rows'], 'answer')} {group['name']}"
        text += found_words(group)
    if data["abstained"]:
        text += f"\nabstained   {data['abstained']:,} rows are left without an answer"
    text += f"\nodd rows    {data['off_manifold']:,} of {data['rows']:,} with off_manifold above 1"
    outside = data["outside_range"]
    if outside:
        worst = sorted(outside, key=lambda name: (-outside[name], name))
        listed = ", ".join(f"{name!r} {outside[name]:,}" for name in worst[:10])
        text += f"\noutside     values outside the range that the model was fitted on: {listed}"
    text += f"\nwritten     {named(data['out'])}"
    return text + "".join(f"\nnote        {note}" for note in data["notes"])
