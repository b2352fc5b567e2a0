"""The page: complete without scripts, alive with them, safe whatever the table holds."""

import base64
import csv
import io
import json
import re
import shutil
import subprocess
import time
from contextlib import redirect_stdout
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manifoldknn.cli.main import main
from manifoldknn.report.page import map_coordinates

FLOWERS = Path(__file__).parents[2] / "examples" / "flowers.csv"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs chromium")
EVIL = (
    '<img src=x onerror="document.title=1"></script><script>document.title="run"</script>'
    "{{ 7 * 7 }}' & {% raw %}<!--"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "r.html"
    code = main(["classify", str(FLOWERS), "--label", "species", "--id", "id", "--quiet",
                 "--out", str(folder / "o.csv"), "--report", str(path)])  # fmt: skip
    assert code == 0
    return path


def in_browser(path, *, script="", size="1250,1600"):
    """Return the document as the browser has it after running a script."""
    text = path.read_text(encoding="utf-8")
    if script:
        path = path.with_name("with-script.html")
        path.write_text(text.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    done = subprocess.run(
        [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={size}",
         "--virtual-time-budget=4000", "--dump-dom", f"file://{path}"],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout.decode()


class _Checker(HTMLParser):
    """Collects what would be fetched, and finds tags that do not match."""

    def __init__(self):
        super().__init__()
        self.fetched, self.open, self.pictures, self.scripts = [], [], 0, 0

    def handle_starttag(self, tag, attrs):
        self.pictures += tag == "img"
        self.scripts += tag == "script"
        self.fetched += [v for k, v in attrs if k in ("src", "href") and not v.startswith("data:")]
        if tag not in ("meta", "img", "line", "rect", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "line"):
            assert self.open.pop() == tag


def test_self_contained_and_well_formed(page):
    text = page.read_text(encoding="utf-8")
    checker = _Checker()
    checker.feed(text)
    assert checker.fetched == []
    assert checker.open == []
    assert not re.search(r"\{\{|\{%|\}\}", text)
    assert not re.search(r"https?://", text)


def test_readable_without_scripts(page):
    text = re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)
    for word in ("600", "alpine", "Rows to label next", "Labels to look at again", "components",
                 "n_neighbors", "scikit-learn", "9 of 9 labels were found again: expect",
                 "Confidence is a probability, calibrated on labels", "sharpness",
                 "Point at a dot to see the row and who voted for it."):  # fmt: skip
        assert word in text
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert len(pictures) == 2
    for picture in pictures:
        image = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))))
        assert (image != 255).any(axis=2).mean() > 0.005
        black = (image == 0).all(axis=2).sum()
        assert black > 9 * 50  # rims of the nine labelled rows


def test_data_for_the_script(page):
    text = page.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="rows">(.*?)</script>', text, re.S)[1])
    content = (page.parent / "o.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(content)))
    predicted = np.frombuffer(base64.b64decode(data["predicted"]), "<i2")
    assert [data["classes"][c] for c in predicted] == [row["predicted"] for row in rows]
    assert data["ids"] == [row["id"] for row in rows]
    voters = np.frombuffer(base64.b64decode(data["voters"]), "<i4").reshape(600, -1)
    assert {rows[v]["species"] for v in voters.ravel()} == {"alpine", "marsh", "meadow"}


def reliability(text):
    """The diagram's section, and its bars as (left, right, height) in shares."""
    section = re.search(r"<h2>Is the confidence right\?</h2>(.*?)</div>", text, re.S)[1]
    drawn = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="([\d.]+)"', section)
    bars = [(float(x) - 10, float(x) - 8 + float(width), float(h)) for x, width, h in drawn]
    return section, [(a / 440, b / 440, h / 170) for a, b, h in bars]


def test_reliability(tmp_path):
    """Classes that overlap: what the diagram shows is what the numbers say."""
    rng = np.random.default_rng(0)
    code = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 1.2 * code[:, None]
    np.savez(tmp_path / "a.npz", X=X, y=np.where(np.arange(400) < 80, code, -1))
    arguments = ["classify", str(tmp_path / "a.npz"), "--label", "y", "--quiet", "--json",
                 "--force", "--report", str(tmp_path / "r.html")]  # fmt: skip
    said = io.StringIO()
    with redirect_stdout(said):
        assert main(arguments) == 0
    tenths = json.loads(said.getvalue())["validation"]["reliability"]
    section, bars = reliability((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert sum(tenth["answers"] for tenth in tenths) == 80
    assert len(tenths) >= 3
    for tenth, bar in zip(tenths, bars, strict=True):
        share = tenth["right"] / tenth["answers"]
        np.testing.assert_allclose(bar, (tenth["from"], tenth["to"], share), atol=2e-3)
        words = f"Of {tenth['answers']} labels answered with {100 * tenth['from']:.0f} to "
        assert words in section
        assert f'text-anchor="middle">{tenth["answers"]}</text>' in section
    assert "take this as a hint" not in section


def test_few_hidden_labels_are_told(page):
    section, bars = reliability(page.read_text(encoding="utf-8"))
    assert "Only 9 labels could be hidden: take this as a hint." in section
    assert bars


@pytest.mark.parametrize(
    ("labels", "options", "confidence", "diagram"),
    [
        (1, [], "a guess, not calibrated: no class has two", "Unknown: no class has two labels"),
        (3, ["--sharpness", "2"], "a guess, not calibrated: the sharpness was given", "<svg"),
        (3, ["--vote", "neighbors"], "the share of the vote, which is no probability", "<svg"),
        (3, ["--no-validate"], "a probability, calibrated", "Not estimated (--no-validate)"),
    ],
)
def test_how_far_confidence_can_be_trusted(tmp_path, labels, options, confidence, diagram):
    code = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 2)) + 4 * code[:, None]
    np.savez(tmp_path / "a.npz", X=X, y=np.where(np.arange(60) < 2 * labels, code, -1))
    page = tmp_path / "r.html"
    line = ["classify", str(tmp_path / "a.npz"), "--label", "y", "--quiet", "--report", str(page)]
    assert main([*line, *options]) == 0
    text = page.read_text(encoding="utf-8")
    assert f"<p>Confidence is {confidence}" in text
    assert diagram in reliability(text)[0]
    checker = _Checker()
    checker.feed(text)
    assert checker.open == []


@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_voters_are_left_out_where_finding_them_is_dear(tmp_path, monkeypatch, vote):
    monkeypatch.setattr("manifoldknn.report.page._MOST_DECISIONS", 600 * 9 - 1)
    page = tmp_path / "r.html"
    code = main(["classify", str(FLOWERS), "--label", "species", "--quiet", "--vote", vote,
                 "--out", str(tmp_path / "o.csv"), "--report", str(page)])  # fmt: skip
    assert code == 0
    text = page.read_text(encoding="utf-8")
    known = vote == "neighbors"
    assert ("and who voted for it" in text) == known
    data = json.loads(re.search(r'id="rows">(.*?)</script>', text, re.S)[1])
    assert data["n_voters"] == (5 if known else 0)


@needs_browser
def test_hover_tells_the_row_and_its_voters(page):
    script = """
    const box = document.querySelector('.map canvas').getBoundingClientRect();
    const d = JSON.parse(document.getElementById('rows').textContent);
    const xy = new Uint16Array(Uint8Array.from(atob(d.pixels), c => c.charCodeAt(0)).buffer);
    document.querySelector('.map canvas').dispatchEvent(new PointerEvent('pointermove', {
      clientX: box.left + xy[0] / d.width * box.width,
      clientY: box.top + xy[1] / d.height * box.height}));
    """
    dom = in_browser(page, script=script)
    tip = re.search(r'<div id="tip"([^>]*)>(.*?)</div>', dom, re.S)
    assert "hidden" not in tip[1]
    assert re.match(r"\d{4}\nlabel: ", tip[2])
    assert "predicted: " in tip[2]
    assert "voted by labelled rows:" in tip[2]
    assert 'data-ready="600"' in dom


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A page of a table whose every name is hostile, with wrong labels that are listed too."""
    folder, rng = tmp_path_factory.mktemp("evil"), np.random.default_rng(0)
    with (folder / "evil.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", f"x{EVIL}", "y", f"label{EVIL}"])
        for i in range(60):
            label = ["b", EVIL][(i + (i == 19)) % 2] if i < 20 else ""
            writer.writerow([f"{i}{EVIL}", *(rng.normal(size=2) + 9 * (i % 2)), label])
    code = main(["classify", str(folder / "evil.csv"), "--label", f"label{EVIL}", "--id", "id",
                 "--quiet", "--report", str(folder / "r.html")])  # fmt: skip
    assert code == 0
    return folder / "r.html"


def test_what_stands_in_the_table_is_only_text(evil):
    """Every hostile name is read back as it was, from text or from the data of the script."""
    text = evil.read_text(encoding="utf-8")
    checker = _Checker()
    checker.feed(text)
    assert (checker.open, checker.fetched, checker.pictures) == ([], [], 2)
    assert checker.scripts == 2
    shown = unescape(text)
    assert f"evil.csv: label{EVIL}" in shown
    assert f"label label{EVIL}" in shown
    assert EVIL[:23] in re.search(r"Labels to look at again(.*?)Health", shown, re.S)[1]
    assert "49" not in shown[: shown.index("<h2>Summary")]
    data = json.loads(re.search(r'id="rows">(.*?)</script>', text, re.S)[1])
    assert data["classes"] == [EVIL[:80], "b"]
    assert data["ids"][7] == f"7{EVIL}"[:80]


@needs_browser
def test_what_stands_in_the_table_is_not_run(evil):
    dom = in_browser(evil)
    assert "<title>run" not in dom
    assert "<title>1" not in dom
    assert '<img src="x"' not in dom
    assert 'data-ready="60"' in dom


@needs_browser
@pytest.mark.slow
def test_a_hundred_thousand_rows_open_in_a_few_seconds(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 4)) + 6 * (np.arange(100_000) % 2)[:, None]
    y = np.where(np.arange(100_000) < 10, np.arange(100_000) % 2, -1)
    np.savez(tmp_path / "a.npz", X=X, y=y)
    code = main(["classify", str(tmp_path / "a.npz"), "--label", "y", "--quiet", "--no-validate",
                 "--report", str(tmp_path / "r.html")])  # fmt: skip
    assert code == 0
    start = time.perf_counter()
    dom = in_browser(tmp_path / "r.html")
    assert 'data-ready="100000"' in dom
    assert time.perf_counter() - start < 15


def test_places():
    X = np.random.default_rng(0).normal(size=(10, 3))
    how, points = map_coordinates(X)
    assert "PCA" in how
    assert points.shape == (10, 2)
    assert map_coordinates(X[:, :1])[1][:, 0].tolist() == X[:, 0].tolist()


def test_without_validation_no_label_is_checked(tmp_path, monkeypatch):
    def fail(*_arguments, **_options):
        raise AssertionError("labels were checked")

    monkeypatch.setattr("manifoldknn.report.page.find_label_errors", fail)
    out, page = str(tmp_path / "o.csv"), str(tmp_path / "r.html")
    code = main(["classify", str(FLOWERS), "--label", "species", "--quiet", "--no-validate",
                 "--out", out, "--report", page])  # fmt: skip
    assert code == 0
    assert "Not looked for (--no-validate)" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_rows_are_placed_by_umap_where_it_is_installed():
    pytest.importorskip("umap")
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 6)), rng.normal(size=(40, 6)) + 9])
    how, points = map_coordinates(X)
    assert how == "UMAP"
    assert points.shape == (80, 2)
    assert np.isfinite(points).all()
    centers = points[:40].mean(axis=0), points[40:].mean(axis=0)
    spread = max(points[:40].std(axis=0).max(), points[40:].std(axis=0).max())
    assert np.linalg.norm(centers[0] - centers[1]) > 3 * spread
    np.testing.assert_array_equal(map_coordinates(X)[1], points)  # the same again
