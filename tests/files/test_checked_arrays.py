"""What a file holds is looked at before anybody trusts it."""

import numpy as np
import pytest

from manifoldknn.files.checked_arrays import floats, logarithms, numbers, require

GOOD = {
    "floats": np.array([0.5, 2.0]),
    "logs": np.array([0.0, -np.inf]),
    "rows": np.array([0, 3]),
}


def test_what_can_be_is_returned_as_it_is():
    assert floats(GOOD, "floats", (2,)) is GOOD["floats"]
    assert logarithms(GOOD, "logs", (2,), np.float64) is GOOD["logs"]
    assert numbers(GOOD, "rows", 4) is GOOD["rows"]
    require(True, "anything")


@pytest.mark.parametrize(
    "read",
    [
        lambda a: floats(a, "floats", (3,)),
        lambda a: floats({"floats": a["floats"].astype(np.float32)}, "floats", (2,)),
        lambda a: floats({"floats": a["logs"]}, "floats", (2,)),
        lambda a: logarithms({"floats": -a["logs"]}, "floats", (2,), np.float64),
        lambda a: logarithms({"floats": a["logs"] * 0}, "floats", (2,), np.float64),
        lambda a: logarithms(a, "floats", (2,), np.float32),
        lambda a: numbers(a, "floats", 9),
        lambda a: numbers({"floats": a["rows"]}, "floats", 3),
        lambda a: numbers({"floats": a["rows"] - 1}, "floats", 4),
        lambda a: numbers({"floats": a["rows"]}, "floats", 4, least=1),
        lambda _: require(False, "floats"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_cannot_be_is_named(read):
    with pytest.raises(ValueError, match="its floats cannot be"):
        read(GOOD)
