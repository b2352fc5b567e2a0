"""One page to look at: what was found, how sure it is, and what to do next.

The page needs nothing but itself. Its pictures are there without scripts; a
small script adds what a row is called and who voted for it where one points.
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import platform
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.decomposition import PCA

import manifoldknn
from manifoldknn import find_label_errors, suggest
from manifoldknn.base.atomic import replaced_file
from manifoldknn.base.heap import return_freed_memory
from manifoldknn.base.parameters import PARAMETERS
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.insight.inspection import GraphHealth
from manifoldknn.report.raster import draw_points, png, shades, to_pixels
from manifoldknn.report.summary import known, summary_text
from manifoldknn.tables.session import Session
from manifoldknn.vote.votes import normalized

__all__ = ["map_coordinates", "write_report"]

WIDTH, HEIGHT, MARGIN = 1160, 860, 24
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A7A7A")
_SMALL, _LARGE = 3.0, 8.0
_MOST_UMAP_ROWS = 20_000
_MOST_LISTED = 200
_BARS = 20
_PLOT_WIDTH, _PLOT_HEIGHT = 440, 170
_FEW_HIDDEN = 50
_NEIGHBORS_SHOWN = 5
_MOST_DECISIONS = 1 << 22  # rows times labels; beyond, finding who decided takes too long


def write_report(
    options: argparse.Namespace,
    session: Session,
    health: GraphHealth,
    data: dict[str, Any],
    confidence: NDArray[np.float64],
    off_manifold: NDArray[np.float64],
) -> None:
    """Write the report of a run to ``options.report``, `data` coming from `summary_data`."""
    clf = session.classifier
    lists = {
        "suspicious": _suspicious(session, options),
        "suggestions": _suggestions(session, options.n),
    }
    return_freed_memory()
    codes = clf.fitted_.labels.numbers(clf.transduction_)
    how, points = map_coordinates(clf.fitted_.index.X)
    pixels = to_pixels(points, WIDTH, HEIGHT, MARGIN)
    labeled = clf.labeled_indices_
    colors = np.array([_rgb(_color(i)) for i in range(len(clf.classes_))] + [(180, 180, 180)])
    colors = colors.astype(np.uint8)
    name = "standard input" if options.file == "-" else Path(options.file).name
    parts = {
        "title": html.escape(f"{name}: {options.label}"),
        "lead": _lead(data),
        "summary": f"<pre>{html.escape(summary_text(data | {'advice': [], 'notes': []}))}</pre>",
        "advice": _remarks(data),
        "map_words": html.escape(f"Each dot is a row, placed by {how}; near dots are alike."),
        "hint": f"Point at a dot to see the row{' and who voted for it' * _voters_are_told(clf)}.",
        "legend": _legend(clf.classes_),
        "map_class": _picture(pixels, colors[codes], labeled),
        "map_confidence": _picture(pixels, shades(confidence), labeled),
        "confidence": html.escape(f"Confidence is {data['confidence_is']}."),
        "histogram": _histogram(confidence[session.labels == ""]),
        "reliability": _reliability(data["validation"]),
        "classes": _classes(data, clf.classes_),
        **lists,
        "health": _health(health, session, off_manifold),
        "settings": _settings(clf, options),
        "data": _rows_data(session, pixels, codes, confidence),
        "style": _resource("page.css"),
        "script": _resource("page.js"),
    }
    page = _resource("page.html")
    pieces = page.split("@@")  # text, name, text, name, ...
    pieces[1::2] = [parts[key] for key in pieces[1::2]]
    with replaced_file(options.report, force=options.force) as file:
        file.write("".join(pieces).encode("utf-8", "replace"))


def map_coordinates(X: Any) -> tuple[str, NDArray[np.float64]]:
    """Place rows in the plane, by UMAP if it is installed and rows are few, else by PCA."""
    if X.shape[1] == 1:
        return "the only feature", np.column_stack([X[:, 0], np.zeros(len(X))]).astype(float)
    if len(X) <= _MOST_UMAP_ROWS and len(X) > 15:
        try:
            from umap import UMAP
        except ImportError:
            pass
        else:
            points = UMAP(random_state=0, n_jobs=1).fit_transform(X)
            return "UMAP", np.asarray(points, dtype=np.float64)
    search = PCA(2, svd_solver="covariance_eigh" if X.shape[1] <= 1000 else "randomized")
    search.set_params(random_state=0)
    points = search.fit_transform(X)
    share = float(search.explained_variance_ratio_.sum())
    how = f"their two main directions (PCA, {share:.0%} of the spread)"
    return how, np.asarray(points, dtype=np.float64)


def _resource(name: str) -> str:
    return (resources.files("manifoldknn.report") / "templates" / name).read_text(encoding="utf-8")


def _color(number: int) -> str:
    """Return a colour for a class: seven that any eye tells apart, then others."""
    if number < len(_COLORS):
        return _COLORS[number]
    hue = (number * 0.618034) % 1.0
    channels = [0.25 + 0.5 * abs(((hue * 6 + k) % 6) - 3) / 3 for k in (0, 4, 2)]
    return "#" + "".join(f"{round(255 * c):02x}" for c in channels)


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _picture(pixels: NDArray[np.intp], colors: NDArray[np.uint8], labeled: NDArray[np.intp]) -> str:
    picture = np.full((HEIGHT, WIDTH, 3), 255, dtype=np.uint8)
    draw_points(picture, pixels, colors, _SMALL if len(pixels) < 20_000 else 1.5)
    if len(labeled) <= 5000:  # more of them would cover everything
        black = np.zeros((len(labeled), 3), dtype=np.uint8)
        draw_points(picture, pixels[labeled], black, _LARGE)
        draw_points(picture, pixels[labeled], colors[labeled], _LARGE - 2.5)
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()


def _lead(data: dict[str, Any]) -> str:
    valid = data["validation"] or {}
    text = f"{data['rows']:,} rows were labelled from {data['labelled']:,} labels."
    if valid.get("accuracy") is not None:
        low, high = valid["interval"]
        text += (
            f" When hidden, {valid['labels_found']:,} of {valid['labels_judged']:,} labels were "
            f"found again: expect {low:.0%} to {high:.0%} of rows to be right."
        )
    return html.escape(text)


def _remarks(data: dict[str, Any]) -> str:
    lines = [*data["advice"], *data["notes"]]
    if not lines:
        return ""
    return '<div class="advice">' + "".join(f"<p>{html.escape(x)}</p>" for x in lines) + "</div>"


def _legend(classes: NDArray[Any]) -> str:
    items = [
        f'<span><span class="dot" style="background:{_color(i)}"></span>{_short(name)}</span>'
        for i, name in enumerate(classes[:40])
    ]
    if len(classes) > 40:
        items.append(f"<span>and {len(classes) - 40} more</span>")
    return "".join(items) + '<span><span class="dot big"></span>labelled row</span>'


def _short(value: Any, length: int = 60) -> str:
    text = " ".join(str(value).split())
    return html.escape(text if len(text) <= length else text[: length - 1] + "…")


def _histogram(confidence: NDArray[np.float64]) -> str:
    if not confidence.size:
        return '<p class="none">Every row is labelled.</p>'
    counts, edges = np.histogram(confidence, _BARS, (0.0, 1.0))
    top = max(1, int(counts.max()))
    bars = [
        _bar(
            edges[i],
            edges[i + 1],
            count / top,
            f"{edges[i]:.2f} to {edges[i + 1]:.2f}: {count:,} rows",
        )
        for i, count in enumerate(counts)
    ]
    words = f"Histogram of confidence; the longest bar is {top} rows"
    return _plot(bars, words) + f"<p>Longest bar: {top:,} rows.</p>"


def _reliability(valid: dict[str, Any] | None) -> str:
    """Draw how often answers of some confidence were right when labels were hidden."""
    if valid is None:
        return '<p class="none">Not estimated (--no-validate).</p>'
    tenths, n_hidden = valid["reliability"], valid["labels_judged"]
    if not tenths:
        return '<p class="none">Unknown: no class has two labels, so none could be hidden.</p>'
    parts = []
    for tenth in tenths:
        n, right = tenth["answers"], tenth["right"]
        middle = _x((tenth["from"] + tenth["to"]) / 2)
        low, high = beta.ppf([0.025, 0.975], right + 0.5, n - right + 0.5)
        parts.append(_bar(tenth["from"], tenth["to"], right / n, _of_tenth(tenth), "#9ecbe6"))
        parts.append(
            f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{_y(low):.1f}" y2="{_y(high):.1f}" '
            f'stroke="#111" stroke-width="2"/><text x="{middle:.1f}" y="10" '
            f'text-anchor="middle">{n:,}</text>'
        )
    parts.append(
        f'<line x1="{_x(0):g}" y1="{_y(0):g}" x2="{_x(1):g}" y2="{_y(1):g}" stroke="#d55e00" '
        f'stroke-width="1.5" stroke-dasharray="5 4"/><text x="{_x(0):g}" y="27">all right</text>'
        f'<line x1="{_x(0):g}" x2="{_x(1):g}" y1="{_y(1):g}" y2="{_y(1):g}" stroke="#d9d9d9"/>'
    )
    most = max(tenths, key=lambda tenth: tenth["answers"])
    few = f" Only {n_hidden} labels could be hidden: take this as a hint."
    return (
        _plot(parts, "Share of hidden labels that were found again, by confidence")
        + f"<p>{_of_tenth(most)}. Where bars end on the dashed line, confidence is right. Black "
        "lines show how much may be chance; the numbers on top count labels."
        f"{few if n_hidden < _FEW_HIDDEN else ''}</p>"
    )


def _of_tenth(tenth: dict[str, Any]) -> str:
    return (
        f"Of {tenth['answers']:,} labels answered with {100 * tenth['from']:.0f} to "
        f"{100 * tenth['to']:.0f} %, {tenth['right']:,} were right when hidden"
    )


def _x(share: float) -> float:
    return 10 + share * _PLOT_WIDTH


def _y(share: float) -> float:
    return 14 + (1 - share) * _PLOT_HEIGHT


def _bar(left: float, right: float, share: float, title: str, color: str = "#0072b2") -> str:
    return (
        f'<rect x="{_x(left):.1f}" y="{_y(share):.1f}" width="{_x(right) - _x(left) - 2:.1f}" '
        f'height="{_PLOT_HEIGHT * share:.1f}" fill="{color}"><title>{title}</title></rect>'
    )


def _plot(parts: list[str], words: str) -> str:
    """Return a plot over confidence from 0 to 1."""
    axis = "".join(
        f'<text x="{_x(s):.0f}" y="{_y(0) + 16:g}" text-anchor="middle">{s:g}</text>'
        for s in (0, 0.25, 0.5, 0.75, 1)
    )
    return (
        f'<svg viewBox="0 0 {_PLOT_WIDTH + 20} {_PLOT_HEIGHT + 36}" role="img" font-size="12" '
        f'aria-label="{words}"><line x1="{_x(0):g}" x2="{_x(1):g}" y1="{_y(0):g}" y2="{_y(0):g}" '
        f'stroke="#888"/>{"".join(parts)}{axis}</svg>'
    )


def _classes(data: dict[str, Any], classes: NDArray[Any]) -> str:
    found, given = data["predicted_per_class"], data["labels_per_class"]
    top = max(found.values())
    colors = {str(name): _color(i) for i, name in enumerate(classes)}
    rows = []
    for name in sorted(found, key=lambda c: -found[c])[:_MOST_LISTED]:
        bar = 100 * found[name] / top
        rows.append(
            f'<tr><td>{_short(name or "(none)")}</td><td class="n">{given.get(name, 0):,}</td>'
            f'<td class="n">{found[name]:,}</td><td><span class="bar" style="width:{bar:.0f}px;'
            f'background:{colors.get(name, "#b4b4b4")}"></span></td></tr>'
        )
    head = '<tr><th>class</th><th class="n">labelled</th><th class="n">predicted</th><th></th></tr>'
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'


def _beside(session: Session, row: int) -> str:
    """Return the nearest rows and what they are called."""
    near = session.classifier.fitted_.lists.indices[row, :_NEIGHBORS_SHOWN]
    predicted = session.classifier.transduction_
    return ", ".join(f"{_short(session.ids[i], 24)} ({_short(predicted[i], 24)})" for i in near)


def _suggestions(session: Session, n: int) -> str:
    found = suggest(session.classifier, n, index=session.ids)
    if not len(found):
        return '<p class="none">Every row is labelled.</p>'
    rows = [
        f"<tr><td>{_short(name)}</td><td>{_short(reason, 200)}</td>"
        f"<td>{_beside(session, row)}</td></tr>"
        for name, row, reason in zip(found.ids, found.rows, found.reasons)
    ]
    head = "<tr><th>row</th><th>why</th><th>nearest rows</th></tr>"
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'


def _suspicious(session: Session, options: argparse.Namespace) -> str:
    if not options.validate:
        return '<p class="none">Not looked for (--no-validate).</p>'
    found = find_label_errors(session.classifier, index=session.ids)
    if not len(found):
        return '<p class="none">None: every label agrees with its neighbourhood.</p>'
    shown = min(len(found), _MOST_LISTED)
    rows = [
        f"<tr><td>{_short(found.ids[i])}</td><td>{_short(found.given[i])}</td>"
        f'<td>{_short(found.suggested[i])}</td><td class="n">{found.suggested_share[i]:.0%}</td>'
        f"<td>{_beside(session, found.rows[i])}</td></tr>"
        for i in range(shown)
    ]
    more = f"<p>The {shown} most suspicious of {len(found)}.</p>" if shown < len(found) else ""
    head = (
        '<tr><th>row</th><th>label</th><th>the others say</th><th class="n">probability</th>'
        "<th>nearest rows</th></tr>"
    )
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>{more}'


def _health(health: GraphHealth, session: Session, off_manifold: NDArray[np.float64]) -> str:
    far = np.argsort(-off_manifold, kind="stable")[:5]
    hops = ", ".join(f"{h if h >= 0 else 'never'}: {c:,}" for h, c in sorted(health.hops.items()))
    islands = "; ".join(
        f"{i['size']:,} rows, {i['n_labeled']} labels, such as {_short(i['example'], 24)}"
        for i in health.islands
    )
    hubs = ", ".join(f"{_short(h['id'], 24)} ({h['count']:,} rows)" for h in health.hubs)
    low, middle, high = health.edges_per_row
    pairs = {
        "edges": f"{health.n_edges:,}; per row {low:.0f} to {high:.0f}, typically {middle:.0f}",
        "components": f"{health.n_components:,}",
        "islands held by weak edges": islands or "none",
        "edges to the nearest label: rows": html.escape(hops),
        "hubs": hubs or "none",
        "sigma": f"{known(health.sigma, '.4g')}; the best edge of a row typically weighs "
        f"{known(health.typical_weight, '.2g')}",
        "dimension": f"{known(health.intrinsic, '.1f')}; {health.ambient} features",
        "repeated rows": f"{health.n_duplicates:,}",
        "farthest off their neighbours' surface (above 1 is odd)": ", ".join(
            f"{_short(session.ids[i], 24)} ({off_manifold[i]:.1f})" for i in far
        ),
    }
    return _pairs(pairs)


def _settings(clf: Any, options: argparse.Namespace) -> str:
    pairs = {name: html.escape(str(getattr(clf, name))) for name in PARAMETERS}
    scaled = "scaled to [0, 1]" if options.scale else "not scaled"
    named = "none" if options.id is None else options.id or "the first column"
    pairs["columns"] = html.escape(f"label {options.label}, id {named}, {scaled}")
    wanted = ("numpy", "scipy", "scikit-learn", "faiss-cpu")
    versions = [f"manifoldknn {manifoldknn.__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in wanted]
    pairs["versions"] = html.escape(", ".join(versions))
    return _pairs(pairs)


def _pairs(pairs: dict[str, str]) -> str:
    rows = [f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in pairs.items()]
    return f'<div class="scroll"><table>{"".join(rows)}</table></div>'


def _rows_data(
    session: Session,
    pixels: NDArray[np.intp],
    codes: NDArray[np.intp],
    confidence: NDArray[np.float64],
) -> str:
    """Return what the script needs, a few bytes per row."""
    clf, n = session.classifier, len(codes)
    weights, voters = np.zeros((n, 0)), np.zeros((n, 0), dtype=np.intp)
    if _voters_are_told(clf):
        weights, voters = clf.kneighbors()
    shares = normalized(weights) if clf.sharpness_ is None else weights
    numbered = session.ids.dtype.kind == "i"
    data = {
        "width": WIDTH,
        "height": HEIGHT,
        "classes": [str(name)[:80] for name in clf.classes_],
        "ids": None if numbered else [str(name)[:80] for name in session.ids],
        "n_voters": int(voters.shape[1]),
        "pixels": _packed(pixels, "<u2"),
        "predicted": _packed(codes, "<i2"),
        "given": _packed(clf.fitted_.labels.codes, "<i2"),
        "confidence": _packed(np.round(255 * confidence), "<u1"),
        "voters": _packed(voters, "<i4"),
        "shares": _packed(np.round(255 * shares), "<u1"),
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")  # nothing in it can end the script


def _voters_are_told(clf: ManifoldKNNClassifier) -> bool:
    """Tell whether it is known, or found out quickly, who decided every row."""
    n_decisions = len(clf.transduction_) * len(clf.labeled_indices_)
    return clf.sharpness_ is None or n_decisions <= _MOST_DECISIONS


def _packed(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(dtype).tobytes()).decode()
