"""Findings as a table: a pandas frame, or a view in a notebook."""

from itertools import islice
from typing import Any

from numpy.typing import NDArray

from manifoldknn.base.render import rendered

_SHOWN = 60  # rows in a notebook


class Listing:
    """What lists of findings have in common: the columns of a table."""

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table, by name."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return the table as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            A row per finding. ImportError where pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_frame needs pandas, which is not installed: pip install pandas, or use to_dict."
            ) from None
        return pandas.DataFrame(self.to_dict())

    def _repr_html_(self) -> str:
        """Return the table for a notebook; whatever cells hold is shown as text."""
        columns = self.to_dict()
        n_rows = len(next(iter(columns.values())))
        rows = [list(map(_shown, row)) for row in islice(zip(*columns.values()), _SHOWN)]
        return rendered(
            "manifoldknn.insight", "listing.html",
            columns=list(columns), rows=rows, n_more=n_rows - len(rows),
        )  # fmt: skip


def listed(ids: NDArray[Any]) -> list[Any]:
    """Return names of rows as Python has them; moments as they are, not as numbers.

    >>> import numpy as np
    >>> listed(np.array(["2024-01-31"], dtype="datetime64[ns]"))
    [np.datetime64('2024-01-31T00:00:00.000000000')]
    """
    return list(ids) if ids.dtype.kind in "mM" else ids.tolist()


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
