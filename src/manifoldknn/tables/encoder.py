"""The table features of the command line, as a scikit-learn transformer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from manifoldknn.exceptions import ColumnWarning, warn_caller
from manifoldknn.insight.listing import Listing
from manifoldknn.tables.column_uses import alarms, every_use
from manifoldknn.tables.features import FeatureStep
from manifoldknn.tables.formats.frame import FrameTable
from manifoldknn.tables.profile import Use
from manifoldknn.tables.table import TableError


@dataclass(frozen=True)
class ColumnUses(Listing):
    """What became of the columns of a table.

    Attributes
    ----------
    uses : list of Use
        A line per column: `name`, `used`, `kind` and `how` it is used, or why not.
    """

    uses: list[Use]

    def __len__(self) -> int:
        return len(self.uses)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table, by name."""
        return {
            "column": [use.name for use in self.uses],
            "used_as": [use.kind if use.used else "left out" for use in self.uses],
            "how_or_why_not": [use.how for use in self.uses],
        }


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table as it comes into numbers between 0 and 1, as ``manifoldknn classify`` does.

    Numbers are scaled by range; those with a long tail (a range of more than eight times the
    distance between their 5 % and 95 % quantiles) by rank. Dates are numbers. Booleans and
    categories, up to 30 of them, are a quarter of a range apart. A missing value becomes the
    median, and a feature of its own says that it was missing. Text is read as in a file: ``<0,5``,
    ``5 %`` and ``n.d.`` do not keep a column from being numbers, nor do other words in up to a
    tenth of the cells, which count as missing. Columns that tell nothing, or differ in every row,
    are left out.

    Parameters
    ----------
    features : list of str, optional
        Columns to use; none of them may be left out. By default all that are of use.
    drop : list of str, optional
        Columns not to use.
    scale : bool, default=True
        Whether numbers and dates are scaled.
    na : list of str, optional
        Further texts that mean missing, such as "-999".

    Attributes
    ----------
    columns_ : ColumnUses
        What became of every column. A notebook shows it as a table, and so does ``to_frame()``.
    step_ : FeatureStep
        What was learned: a few numbers and words per column.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had string column names.

    See Also
    --------
    ManifoldKNNClassifier : Takes these features.

    Notes
    -----
    Fit on all rows, labelled or not. Later cells are read as those of the fit. A row with an unseen
    category is a whole range of a scaled column away from every fitted row. There
    `ManifoldKNNClassifier` answers as if the cell told nothing, with little confidence, often less
    than deserved. A `ColumnWarning` tells how many there are. Values outside the fitted range lie
    outside [0, 1]. Features are float32, float64 without `scale`.

    Examples
    --------
    >>> import pandas as pd
    >>> from manifoldknn import ManifoldKNNClassifier, TableEncoder
    >>> from sklearn.pipeline import make_pipeline
    >>> frame = pd.DataFrame({
    ...     "petal": ["1,4", "1,5", "n.d.", "4,7", "4,5", "4,9"],
    ...     "site": ["A", "A", "B", None, "B", "B"],
    ... })
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['petal', 'petal is missing', 'site=A', 'site=B', 'site is missing']
    >>> model = make_pipeline(TableEncoder(), ManifoldKNNClassifier(graph_neighbors=3))
    >>> model.fit(frame, ["setosa", None, None, "virginica", None, None])[-1].transduction_.tolist()
    ['setosa', 'setosa', 'virginica', 'virginica', 'virginica', 'virginica']
    """

    def __init__(
        self,
        *,
        features: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        scale: bool = True,
        na: Sequence[str] | None = None,
    ) -> None:
        self.features = features
        self.drop = drop
        self.scale = scale
        self.na = na

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how columns become features.

        Parameters
        ----------
        X : pandas, polars or pyarrow frame, or array-like of shape (n_samples, n_columns)
            A table. Every column of an array has a scale of its own.
        y : ignored
            Labels are not looked at. A column of X must not have their name.

        Returns
        -------
        self : TableEncoder
            Fitted.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Learn how columns become features, and make those of X.

        Parameters
        ----------
        X : pandas, polars or pyarrow frame, or array-like of shape (n_samples, n_columns)
            A table.
        y : ignored
            Labels are not looked at. A column of X must not have their name.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or a frame as ``set_output`` has it
            Features.
        """
        table = self._table(X, reset=True)
        if table.n_rows < 2:
            raise TableError("X has n_samples=1, and features are learned from at least 2 rows.")
        used = self._used(table)
        _refuse_labels(used, y)
        try:
            step, made = FeatureStep.fit(
                table, used, scale=bool(self.scale), insist=self.features is not None,
                na=self.na or (),
            )  # fmt: skip
        except TableError as error:
            raise TableError(_in_python(str(error))) from None
        uses = every_use(table, step.uses, {})
        self.step_ = step
        self.columns_ = ColumnUses([replace(use, how=_in_python(use.how)) for use in uses])
        _warn([*alarms(uses), *step.notes])
        return made

    def transform(self, X: Any) -> NDArray[Any]:
        """Make the features of a table with the columns of the fitted one.

        Parameters
        ----------
        X : pandas, polars or pyarrow frame, or array-like of shape (n_samples, n_columns)
            A table.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or a frame as ``set_output`` has it
            Features.
        """
        check_is_fitted(self)
        table = self._table(X, reset=False)
        try:
            made, uses, notes = self.step_.transform(table)
        except TableError as error:
            raise TableError(_in_python(str(error))) from None
        _warn([*alarms(uses), *notes])
        return made

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the fitted columns; only checked.

        Returns
        -------
        ndarray of str objects
            As "width", "width is missing" or "site=A".
        """
        check_is_fitted(self)
        known = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            if known is not None and not np.array_equal(given, known):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(given)}"
                )
        return np.asarray(self.step_.features, dtype=object)

    def _table(self, X: Any, *, reset: bool) -> FrameTable:
        """Return X as a table, its columns being those of the fit."""
        table = FrameTable(X)
        X = X if hasattr(X, "shape") else np.empty((table.n_rows, len(table.names)))
        validate_data(self, X, reset=reset, skip_check_array=True)
        for what, n in (("sample", table.n_rows), ("feature", len(table.names))):
            if not n:
                raise TableError(
                    f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is "
                    "required."
                )
        return table

    def _used(self, table: FrameTable) -> list[str]:
        """Return the columns to make features of."""
        for option in ("features", "drop"):
            for name in getattr(self, option) or ():
                if name not in table.names:
                    some = ", ".join(table.names[:12]) + (" ..." if len(table.names) > 12 else "")
                    raise TableError(f"{option}: no column {name!r}; the columns are: {some}")
        wanted = table.names if self.features is None else dict.fromkeys(self.features)
        return [name for name in wanted if name not in set(self.drop or ())]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _refuse_labels(used: list[str], y: Any) -> None:
    """Raise TableError if a column is called like y: where labels are features, nothing is left."""
    name = getattr(y, "name", None)
    if isinstance(name, str) and name in used:
        raise TableError(
            f"column {name!r} of X is called like y: leave the labels out, as by drop=[{name!r}]"
        )


def _in_python(text: str) -> str:
    """Return what is said of options of the command in the words of parameters.

    >>> _in_python("correct it, or leave the column out with --drop size")
    'correct it, or leave the column out with drop= size'
    """
    text = re.sub(r"; if it names the rows, say --id .*", "", text)
    return re.sub(r"--(drop|features|na)\b", r"\1=", text)


def _warn(notes: list[str]) -> None:
    """Tell what the user should know of the columns, in one warning."""
    if notes:
        warn_caller("; ".join(map(_in_python, notes)), ColumnWarning)
