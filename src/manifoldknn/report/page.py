"""One page to look at: what was found, how sure it is, and what to do next.

The page needs nothing but itself. Its pictures are there without scripts; a
small script adds what a row is called and who voted for it where one points.
"""

import argparse
import base64
import platform
from importlib import metadata
from itertools import islice
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
from manifoldknn.base.render import rendered
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.insight.inspection import GraphHealth
from manifoldknn.report.raster import draw_points, png, shades, to_pixels
from manifoldknn.report.summary import known, summary_text
from manifoldknn.tables.session import Session
from manifoldknn.vote.votes import normalized

WIDTH, HEIGHT, MARGIN = 1160, 860, 24
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A7A7A")
_SMALL, _LARGE = 3.0, 8.0
_MOST_UMAP_ROWS = 20_000
_MOST_LISTED = 200
_MOST_IN_LEGEND = 40
_BARS = 20
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
    suggestions = _suggestions(session, options.n)
    n_suspicious, suspicious = _suspicious(session) if options.validate else (0, None)
    return_freed_memory()
    codes = clf.fitted_.labels.numbers(clf.transduction_)
    how, points = map_coordinates(clf.fitted_.index.X)
    pixels = to_pixels(points, WIDTH, HEIGHT, MARGIN)
    labeled = clf.labeled_indices_
    names = [_color(i) for i in range(len(clf.classes_))]
    colors = np.array([_rgb(name) for name in names] + [(180, 180, 180)], dtype=np.uint8)
    far = np.argsort(-off_manifold, kind="stable")[:5]
    page = rendered(
        "manifoldknn.report",
        "page.html",
        name="standard input" if options.file == "-" else Path(options.file).name,
        label=options.label,
        data=data,
        summary=summary_text(data | {"advice": [], "notes": []}),
        how=how,
        voters_are_told=_voters_are_told(clf),
        legend=list(zip(names, map(_short, clf.classes_)))[:_MOST_IN_LEGEND],
        n_unnamed=max(0, len(names) - _MOST_IN_LEGEND),
        maps=[_picture(pixels, of, labeled) for of in (colors[codes], shades(confidence))],
        histogram=np.histogram(confidence[session.labels == ""], _BARS, (0.0, 1.0))[0].tolist(),
        chance=_chance(data["validation"]),
        classes=_classes(data, dict(zip(map(str, clf.classes_), names))),
        suggestions=suggestions,
        suspicious=suspicious,
        n_suspicious=n_suspicious,
        health=health,
        known=known,
        short=_short,
        farthest=[(session.ids[i], off_manifold[i]) for i in far],
        settings=_settings(clf, options),
        rows=_rows_data(session, pixels, codes, confidence),
    )
    with replaced_file(options.report, force=options.force) as file:
        file.write(page.encode("utf-8", "replace"))


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


def _short(value: Any, length: int = 60) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def _chance(valid: dict[str, Any] | None) -> list[tuple[float, float]]:
    """Return between which shares right every tenth of hidden labels may be by chance."""
    both = [(tenth["right"], tenth["answers"]) for tenth in (valid or {}).get("reliability", [])]
    return [tuple(beta.ppf([0.025, 0.975], k + 0.5, n - k + 0.5).tolist()) for k, n in both]


def _classes(data: dict[str, Any], colors: dict[str, str]) -> list[tuple[str, int, int, str]]:
    """Return name, labels, answers and colour of classes, the largest first."""
    found, given = data["predicted_per_class"], data["labels_per_class"]
    return [
        (_short(name or "(none)"), given.get(name, 0), found[name], colors.get(name, "#b4b4b4"))
        for name in sorted(found, key=lambda c: -found[c])[:_MOST_LISTED]
    ]


def _beside(session: Session, row: int) -> str:
    """Return the nearest rows and what they are called."""
    near = session.classifier.fitted_.lists.indices[row, :_NEIGHBORS_SHOWN]
    predicted = session.classifier.transduction_
    return ", ".join(f"{_short(session.ids[i], 24)} ({_short(predicted[i], 24)})" for i in near)


def _suggestions(session: Session, n: int) -> list[tuple[str, str, str]]:
    found = suggest(session.classifier, n, index=session.ids)
    return [
        (_short(name), _short(reason, 200), _beside(session, row))
        for name, row, reason in zip(found.ids, found.rows, found.reasons)
    ]


def _suspicious(session: Session) -> tuple[int, list[tuple[str, str, str, float, str]]]:
    """Return how many labels look wrong, and the most suspicious of them."""
    found = find_label_errors(session.classifier, index=session.ids)
    columns = (found.ids, found.given, found.suggested, found.suggested_share, found.rows)
    return len(found), [
        (_short(name), _short(given), _short(better), share, _beside(session, row))
        for name, given, better, share, row in islice(zip(*columns), _MOST_LISTED)
    ]


def _settings(clf: Any, options: argparse.Namespace) -> dict[str, str]:
    scaled = "scaled to [0, 1]" if options.scale else "not scaled"
    named = "none" if options.id is None else options.id or "the first column"
    wanted = ("numpy", "scipy", "scikit-learn", "faiss-cpu")
    versions = [f"manifoldknn {manifoldknn.__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in wanted]
    return {name: str(getattr(clf, name)) for name in PARAMETERS} | {
        "columns": f"label {options.label}, id {named}, {scaled}",
        "versions": ", ".join(versions),
    }


def _rows_data(
    session: Session,
    pixels: NDArray[np.intp],
    codes: NDArray[np.intp],
    confidence: NDArray[np.float64],
) -> dict[str, Any]:
    """Return what the script needs, a few bytes per row."""
    clf, n = session.classifier, len(codes)
    weights, voters = np.zeros((n, 0)), np.zeros((n, 0), dtype=np.intp)
    if _voters_are_told(clf):
        weights, voters = clf.kneighbors()
    shares = normalized(weights) if clf.sharpness_ is None else weights
    numbered = session.ids.dtype.kind == "i"
    return {
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


def _voters_are_told(clf: ManifoldKNNClassifier) -> bool:
    """Tell whether it is known, or found out quickly, who decided every row."""
    n_decisions = len(clf.transduction_) * len(clf.labeled_indices_)
    return clf.sharpness_ is None or n_decisions <= _MOST_DECISIONS


def _packed(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(dtype).tobytes()).decode()
