"""Figures: lines of several methods in panels of several data sets, bars, and their colours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from manifoldknn.reproduction.experiment import read_toml
from manifoldknn.reproduction.figures.averages import Average

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_COLUMNS = 3
WHISKERS = {"ecolor": "#666666", "elinewidth": 0.8, "capsize": 2}
_OTHER = {"color": "#E69F00"}
STYLES: dict[str, dict[str, Any]] = read_toml("styles.toml")


def new_figure(width: float, height: float, *grid: int) -> tuple[Any, Any]:
    """Return a figure and its axes, without a window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*grid, squeeze=False)


def grouped_bars(
    ax: Any, groups: Sequence[str], bars: Mapping[str, Sequence[Average | None]]
) -> dict[str, Any]:
    """Draw a bar for every name in every group, with its deviation; return what a legend needs."""
    width, named = 0.8 / len(bars), {}
    for place, (name, values) in enumerate(bars.items()):
        there = [(i, value) for i, value in enumerate(values) if value is not None]
        shift = (place - (len(bars) - 1) / 2) * width
        spread = [value.deviation or 0.0 for _, value in there]
        named[name] = ax.bar(
            [i + shift for i, _ in there],
            [value.mean for _, value in there],
            0.92 * width,
            yerr=spread if any(spread) else None,
            color=STYLES.get(name, _OTHER)["color"],
            error_kw=WHISKERS,
        )
    ax.set_xticks(range(len(groups)), groups)
    return named


def panels(
    curves: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    x_label: str,
    y_label: str,
    log_scale: bool | Collection[str] = False,
    ticks: Sequence[float] | None = None,
) -> Figure:
    """Draw one panel per title and one line per method, with one legend above all panels.

    ``curves[title][method]`` holds the positions and heights of a line. Heights are logarithmic in
    all panels, in none or in those of some titles; elsewhere they begin at 0. `ticks` are positions
    to name.
    """
    n_columns = min(_MOST_COLUMNS, len(curves))
    n_rows = -(-len(curves) // n_columns)
    figure, grid = new_figure(3.5 * n_columns, 2.9 * n_rows + 0.7, n_rows, n_columns)
    axes = grid.ravel()
    named: dict[str, Any] = {}
    for ax, (title, lines) in zip(axes, curves.items()):
        for method, (x, y) in lines.items():
            style = {"linewidth": 1.2, "markersize": 4.0, **STYLES.get(method, {})}
            (named[method],) = ax.plot(x, y, label=method, **style)
        ax.set_title(title, fontsize=10)
        ax.grid(alpha=0.25, linewidth=0.6)
        if log_scale if isinstance(log_scale, bool) else title in log_scale:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
        if ticks is not None:
            ax.set_xticks(list(ticks))
    for ax in axes[len(curves) :]:
        ax.set_visible(False)
    figure.supxlabel(x_label, fontsize=10)
    figure.supylabel(y_label, fontsize=10)
    order = [name for name in STYLES if name in named]
    order += [name for name in named if name not in STYLES]
    figure.legend(
        [named[name] for name in order], order, loc="outside upper center",
        ncols=min(6, len(order)), frameon=False, fontsize=9,
    )  # fmt: skip
    return figure
