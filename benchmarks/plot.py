"""Time and memory against the number of rows, on logarithmic axes."""

from __future__ import annotations

from report import atomic
from targets import exponent

PANELS = (("seconds", "seconds, import and loading included"), ("peak_mb", "peak memory, MB"))


def draw_growth(rows, path):
    """Draw the rows of the growth case.

    Parameters
    ----------
    rows : list of dict
        With "method", "n", "seconds" and "peak_mb".
    path : path-like
        PNG file to write.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter, NullFormatter

    measured = [row for row in rows if row["n"] > 0 and row.get("seconds") is not None]
    all_sizes = sorted({row["n"] for row in measured})
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, (column, heading) in zip(figure.subplots(1, 2), PANELS):
        for number, method in enumerate(dict.fromkeys(row["method"] for row in measured)):
            points = [row for row in measured if row["method"] == method]
            sizes, values = ([row[key] for row in points] for key in ("n", column))
            power = exponent(sizes, values)
            label = method if power is None else f"{method}: n^{power:.2f}"
            width = 2.2 if number == 0 else 1.2
            axes.plot(sizes, values, marker="os^Dv"[number % 5], linewidth=width, label=label)
        axes.set(xscale="log", yscale="log", xlabel="rows", title=heading)
        axes.set_xticks(all_sizes, labels=[f"{size:,}" for size in all_sizes])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(LogFormatter())
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
