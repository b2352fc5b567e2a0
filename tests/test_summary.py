"""The summary holds together in odd cases too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.summary import as_table, summary_text, wilson_interval

DATA = {
    "rows": 1000, "labelled": 3, "labels_per_class": {"a": 1, "b": 2},
    "predicted_per_class": {"a": 400, "b": 590, "": 10}, "mean_confidence": 0.5, "unreached": 10,
    "features": 4, "intrinsic_dimension": 2.2,
    "graph": {"kind": "union", "neighbours": 10, "edges": 5000, "components": 2,
              "islands_without_labels": 1, "sigma": 0.1, "farthest_hops": 7},
    "validation": {"accuracy": 0.5, "interval": [0.1, 0.9], "labels_judged": 2, "groups": 3},
    "advice": ["Do this."],
    "notes": ["Mind that."], "seconds": {"reading": 0.1},
}  # fmt: skip


def test_every_fact_is_told():
    text = summary_text(DATA)
    words = [
        "1,000",
        "2 dimensions",
        "2 components",
        "1 island without",
        "50.0% of 2 labels",
        "10% to 90%",
    ]
    words += ["(none)", "Do this.", "Mind that.", "reading 0.1 s", "0.50 on average"]
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mean_confidence": None}, "every row is labelled"),
        ({"validation": None}, "not estimated"),
        ({"validation": DATA["validation"] | {"accuracy": None}}, "no class has two"),
        ({"intrinsic_dimension": None}, "features    4\n"),
        ({"predicted_per_class": {str(i): i for i in range(30)}}, "and 12 more"),
    ],
)
def test_odd_cases(change, words):
    assert words in summary_text(DATA | change)


@given(st.integers(1, 200), st.data())
def test_wilson_interval(n, data):
    """The ends are where the observed share is just 1.96 standard deviations away."""
    share = data.draw(st.integers(0, n)) / n
    for end in wilson_interval(share, n):
        assert 0 <= end <= 1
        if 1e-9 < end < 1 - 1e-9:
            assert abs(share - end) == pytest.approx(1.959964 * (end * (1 - end) / n) ** 0.5)


def test_cells_of_several_lines_stay_on_one():
    assert as_table(["a"], [["x\ny"]]) == "a\nx y"
