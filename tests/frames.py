"""Kinds of frames that users bring."""

import polars as pl
import pytest
from sklearn import __version__ as sklearn_version

# scikit-learn before 1.9 reads the names of such frames by a protocol that polars 2 dropped.
NAMED_POLARS = pytest.param(
    pl.DataFrame,
    marks=pytest.mark.skipif(
        not hasattr(pl.DataFrame, "__dataframe__")
        and tuple(map(int, sklearn_version.split(".")[:2])) < (1, 9),
        reason="this scikit-learn cannot read the column names of this polars",
    ),
)
