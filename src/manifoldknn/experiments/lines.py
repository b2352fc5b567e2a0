"""Lines of several methods in panels of several data sets, one legend for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldknn.experiments.methods import DEFAULT, PUBLISHED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STYLES", "panels"]

# Colours of Okabe and Ito, which colour-blind readers tell apart, and a shape for each line: ours
# are black and blue and drawn thick.
STYLES: dict[str, dict[str, Any]] = {
    DEFAULT: {"color": "#000000", "marker": "o", "linewidth": 2.2, "zorder": 5},
    PUBLISHED: {"color": "#0072B2", "marker": "s", "linewidth": 2.0, "zorder": 4},
    "kNN": {"color": "#E69F00", "marker": "^", "linestyle": "--"},
    "wkNN": {"color": "#D55E00", "marker": "v", "linestyle": "--"},
    "gkNN": {"color": "#009E73", "marker": "D", "linestyle": "--"},
    "SVM": {"color": "#56B4E9", "marker": "P"},
    "ANN": {"color": "#CC79A7", "marker": "X"},
    "NB": {"color": "#7A7A7A", "marker": "<"},
    "DT": {"color": "#8C6D31", "marker": ">"},
    "LabelSpreading": {"color": "#999933", "marker": "h", "linestyle": ":"},
    "Poisson": {"color": "#882255", "marker": "*", "linestyle": ":"},
    "standard, default": {"color": "#000000", "marker": "o", "linewidth": 2.0},
    "sequential, default": {"color": "#000000", "marker": "o", "linestyle": ":", "mfc": "white"},
    # Dashed, since it often lies on the line above.
    "standard, as published": {
        "color": "#0072B2",
        "marker": "s",
        "linewidth": 2.0,
        "linestyle": (0, (4, 3)),
    },
    "sequential, as published": {
        "color": "#0072B2",
        "marker": "s",
        "linestyle": ":",
        "mfc": "white",
    },
}


def panels(
    curves: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    x_label: str,
    y_label: str,
    n_columns: int = 3,
    log_scale: bool | Collection[str] = False,
    ticks: Sequence[float] | None = None,
) -> Figure:
    """Draw one panel per title and one line per method.

    Parameters
    ----------
    curves : mapping
        ``curves[title][method]`` holds the positions and heights of a line.
    x_label, y_label : str
        What the axes say.
    n_columns : int, default=3
        Panels side by side.
    log_scale : bool or collection of str, default=False
        Whether heights are logarithmic, or the titles of the panels where they are; elsewhere
        they begin at 0.
    ticks : sequence of float, optional
        Positions to name.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with one legend below all panels.
    """
    from matplotlib.figure import Figure

    n_columns = min(n_columns, len(curves))
    n_rows = -(-len(curves) // n_columns)
    figure = Figure(figsize=(3.5 * n_columns, 2.9 * n_rows + 0.7), layout="constrained")
    axes = np.atleast_1d(figure.subplots(n_rows, n_columns, squeeze=False)).ravel()
    named: dict[str, Any] = {}
    for ax, (title, lines) in zip(axes, curves.items()):
        for method, (x, y) in lines.items():
            style = {"linewidth": 1.2, "markersize": 4.0, **STYLES.get(method, {})}
            (named[method],) = ax.plot(x, y, label=method, **style)
        ax.set_title(title, fontsize=10)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
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
        [named[name] for name in order],
        order,
        loc="outside upper center",
        ncols=min(6, len(order)),
        frameon=False,
        fontsize=9,
    )
    return figure
