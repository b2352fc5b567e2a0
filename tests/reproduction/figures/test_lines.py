"""Panels: every set has one, every method a line, and there is one legend."""

import pytest

pytest.importorskip("matplotlib")

from manifoldknn.reproduction.figures.averages import Average
from manifoldknn.reproduction.figures.lines import STYLES, grouped_bars, new_figure, panels
from manifoldknn.reproduction.methods import BEYOND, DEFAULT, NEIGHBORS, OF_THE_PAPER, PUBLISHED

CURVES = {
    "a": {"kNN": ([1, 2], [30.0, 20.0]), DEFAULT: ([1, 2], [3.0, 2.0])},
    "b": {DEFAULT: ([1], [4.0])},
}


def test_lines_and_legend():
    figure = panels(CURVES, x_label="k", y_label="error", ticks=(1, 2))
    assert [ax.get_title() for ax in figure.axes] == ["a", "b"]
    first, second = figure.axes
    assert {line.get_label(): line.get_ydata().tolist() for line in first.lines} == {
        "kNN": [30.0, 20.0],
        DEFAULT: [3.0, 2.0],
    }
    assert len(second.lines) == 1
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [DEFAULT, "kNN"]
    assert first.get_ylim()[0] == 0


def test_unused_panels_are_hidden_and_scales_logarithmic():
    figure = panels(dict.fromkeys("abcd", CURVES["b"]), x_label="", y_label="", log_scale=True)
    assert [ax.get_visible() for ax in figure.axes] == [True] * 4 + [False] * 2
    assert figure.axes[0].get_yscale() == "log"


def test_every_method_looks_different():
    names = [*OF_THE_PAPER, PUBLISHED, DEFAULT, NEIGHBORS, *BEYOND]
    looks = {(STYLES[n]["color"], STYLES[n]["marker"]) for n in names}
    assert len(looks) == len(names)
    assert len({STYLES[n]["color"] for n in names}) == len(names)


def test_bars_stand_side_by_side_where_there_is_something():
    _, axes = new_figure(3, 2, 1, 1)
    bars = {DEFAULT: [Average(1.0, 0.1, 3), None], "theirs": [Average(2.0, None, 1)] * 2}
    named = grouped_bars(axes[0, 0], ["b3", "r3"], bars)
    assert list(named) == [DEFAULT, "theirs"]
    assert [bar.get_height() for bar in named[DEFAULT]] == [1.0]
    lefts = sorted(bar.get_x() for of_name in named.values() for bar in of_name)
    assert lefts[0] < lefts[1] < 0.5 < lefts[2]
