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

from manifoldknn.base.render import COLORS, SHAPES
from manifoldknn.cli.main import main
from manifoldknn.reporting import page as page_module

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
    """Collects what would be fetched, and finds tags that do not match and places in no order."""

    def __init__(self):
        super().__init__()
        self.fetched, self.open, self.pictures, self.scripts = [], [], 0, 0
        self.named, self.wanted, self.unnamed = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.pictures += tag == "img"
        self.scripts += tag == "script"
        links = [v for k, v in attrs if k in ("src", "href") and not v.startswith("data:")]
        self.fetched += [link for link in links if not link.startswith("#")]
        of = dict(attrs)
        self.named.add(of.get("id"))
        self.wanted |= {link[1:] for link in links if link.startswith("#")}
        self.wanted |= {of[k] for k in ("for", "aria-describedby") if k in of}
        assert of.get("tabindex", "0") == "0"  # the order of keys is that of the page
        if "tabindex" in of and not of.get("aria-label"):
            self.unnamed.append(tag)
        if tag not in ("meta", "img", "line", "rect", "path", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "line", "path"):
            assert self.open.pop() == tag


def test_self_contained_and_well_formed(page):
    text = page.read_text(encoding="utf-8")
    checker = _Checker()
    checker.feed(text)
    assert checker.fetched == []
    assert checker.open == []
    assert checker.unnamed == []
    assert checker.wanted <= checker.named
    assert not re.search(r"\{\{|\{%|\}\}", text)
    assert not re.search(r"https?://", text)


def test_readable_without_scripts(page):
    text = re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)
    for word in ("600", "alpine", "Rows to label next", "Labels to look at again", "components",
                 "n_neighbors", "scikit-learn", "9 of 9 labels were found again.",
                 "Confidence is a probability, calibrated on labels", "sharpness",
                 "to see the row and who voted for it.", "How good?", "Where not?", "What next?",
                 "petal_length"):  # fmt: skip
        assert word in text
    (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))))
    assert (image != 255).any(axis=2).mean() > 0.005
    assert (image == 0).all(axis=2).sum() > 9 * 50  # rims of the nine labelled rows


def script_data(text):
    return json.loads(re.search(r'id="rows">(.*?)</script>', text, re.S)[1])


def unpacked(data, name, dtype):
    return np.frombuffer(base64.b64decode(data[name]), dtype)


def test_data_for_the_script(page):
    data = script_data(page.read_text(encoding="utf-8"))
    content = (page.parent / "o.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(content)))
    answers = [data["classes"][c] for c in unpacked(data, "predicted", "<i2")]
    assert answers == [row["predicted"] for row in rows]
    percent = [f"{100 * float(row['confidence']):.0f}" for row in rows]
    assert [str(share) for share in unpacked(data, "confidence", "<u1")] == percent
    unsure = [float(row["confidence"]) < 0.8 for row in rows]
    assert (unpacked(data, "flags", "<u1") >= 2).tolist() == unsure
    assert data["ids"] == [row["id"] for row in rows]
    for name, column in zip(data["columns"], data["cells"], strict=True):
        assert column == [row[name] for row in rows]
    assert {"site", "height"} < set(data["columns"])
    assert not {"id", "species"} & set(data["columns"])
    voters = unpacked(data, "voters", "<i2").reshape(600, -1)
    assert {rows[v]["species"] for v in voters.ravel()} == {"alpine", "marsh", "meadow"}
    places = unpacked(data, "places", "<u2").reshape(600, 2)
    assert (np.ptp(places, axis=0).max(), np.ptp(places, axis=0).min() > 9000) == (65535, True)


def test_the_same_dots_for_any_number_of_threads(page, tmp_path):
    line = ["classify", str(FLOWERS), "--label", "species", "--id", "id", "--quiet", "--out"]
    more = ["--n-jobs", "2", "--report", str(tmp_path / "r.html")]
    assert main([*line, str(tmp_path / "o.csv"), *more]) == 0
    texts = [path.read_text(encoding="utf-8") for path in (page, tmp_path / "r.html")]
    assert script_data(texts[0]) == script_data(texts[1])


def test_every_listed_row_links_to_its_dot_and_shows_its_cells(page):
    text = page.read_text(encoding="utf-8")
    data = script_data(text)
    section = re.search(r'<section id="next">(.*?)</section>', text, re.S)[1]
    lines = re.findall(r'data-dot="(\d+)">(\d+)</a>(.*?)</tr>', section, re.S)
    assert len(lines) == 20
    for dot, name, rest in lines:
        assert data["ids"][int(dot)] == name
        assert all(f"<td>{column[int(dot)]}</td>" in rest for column in data["cells"])


def test_columns_and_why_some_are_left_out(tmp_path):
    rows = [f"{i},{i % 7},same,{'a' if i % 7 < 3 else 'b'}" for i in range(40)]
    rows = [row if i < 10 else row[:-1] for i, row in enumerate(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["n,x,c,y", *rows]) + "\n", encoding="utf-8")
    line = ["classify", str(tmp_path / "t.csv"), "--label", "y", "--quiet"]
    assert main([*line, "--report", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    section = re.search(r'<section id="columns">(.*?)</table>', text, re.S)[1]
    assert re.search(r"<th[^>]*>x</th><td>number</td>", section)
    assert re.search(r"<th[^>]*>c</th><td>left out</td><td[^>]*>the same in all rows", section)
    assert re.search(r"<th[^>]*>n</th><td>left out</td><td[^>]*>only numbers the rows", section)
    assert script_data(text)["columns"] == ["x"]  # the others say nothing of a row


def test_groups_that_can_be_trusted_have_a_place(tmp_path, capsys):
    line = ["classify", str(FLOWERS), "--label", "species", "--id", "id", "--quiet", "--json"]
    line += ["--abstain-below", "0.9", "--out", str(tmp_path / "o.csv")]
    assert main([*line, "--report", str(tmp_path / "r.html")]) == 0
    data = json.loads(capsys.readouterr().out)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    sure, unsure = data["trust"]
    assert sure["rows"] + unsure["rows"] == data["rows"] - data["labelled"]
    assert data["abstained"] == unsure["rows"] > 0
    for group in (sure, unsure):  # nine hidden labels are too few for a share of them
        found = f": {group['labels_found']} of {group['labels_judged']} hidden labels right."
        assert group["labels_judged"]
        assert f"<strong>{group['rows']} answers</strong> {group['name']}{found}</p>" in text
    assert f"{data['abstained']} of them without an answer (--abstain-below)" in text
    flags = unpacked(script_data(text), "flags", "<u1")
    given = unpacked(script_data(text), "given", "<i2")
    assert ((flags >= 2) & (given < 0)).sum() == unsure["rows"]
    for told in sure["per_class"]:
        row = re.search(rf"<th[^>]*><svg.*?</svg> {told['class']}</th>(.*?)</tr>", text, re.S)[1]
        assert f">{told['rows']} <span" in row or f">{told['rows']}</td>" in row


def contrast(one, other):
    """As the guidelines for accessible pages measure it."""

    def light(color):
        color = color * 2 if len(color) == 3 else color
        parts = np.array([int(color[i : i + 2], 16) for i in (0, 2, 4)]) / 255
        parts = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return parts @ [0.2126, 0.7152, 0.0722] + 0.05

    pair = sorted([light(one.lstrip("#")), light(other.lstrip("#"))])
    return pair[1] / pair[0]


def test_colors_are_seen_on_white_and_on_dark():
    css = (Path(page_module.__file__).parent / "templates" / "page.css").read_text("utf-8")
    themes = [dict(re.findall(r"--(\w+): (#\w+)", part)) for part in css.split("@media")[:2]]
    assert len(themes) == 2
    for theme in themes:
        for color in COLORS:
            assert contrast(color, theme["paper"]) > 3
        for text in ("ink", "soft", "accent", "alert"):
            assert min(contrast(theme[text], theme[back]) for back in ("paper", "card")) > 4.5
    assert len(set(COLORS)) == len(COLORS)
    assert np.lcm(len(SHAPES), len(COLORS)) == 90  # pairs of colour and shape


def test_of_many_rows_a_part_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr("manifoldknn.reporting.dots.MOST_DOTS", 100)
    monkeypatch.setattr("manifoldknn.reporting.page.MOST_DOTS", 100)
    out = tmp_path / "o.csv"
    code = main(["classify", str(FLOWERS), "--label", "species", "--id", "id", "--quiet",
                 "--out", str(out), "--report", str(tmp_path / "r.html")])  # fmt: skip
    assert code == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "100 of 600 rows are drawn" in text
    data = script_data(text)
    with out.open(encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert len(data["ids"]) == 100
    assert {name for name, row in rows.items() if row["species"]} < set(data["ids"])
    for name, column in zip(data["columns"], data["cells"], strict=True):
        assert column == [rows[i][name] for i in data["ids"]]
    voters = unpacked(data, "voters", "<i2")
    assert {rows[data["ids"][v]]["species"] for v in voters} == {"alpine", "marsh", "meadow"}
    for dot, name in re.findall(r'data-dot="(\d+)">(\d+)</a>', text):
        assert data["ids"][int(dot)] == name


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
        (3, ["--no-validate"], "a probability, calibrated", "Not estimated, as asked"),
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
    monkeypatch.setattr("manifoldknn.reporting.dots._MOST_DECISIONS", 600 * 9 - 1)
    page = tmp_path / "r.html"
    code = main(["classify", str(FLOWERS), "--label", "species", "--quiet", "--vote", vote,
                 "--out", str(tmp_path / "o.csv"), "--report", str(page)])  # fmt: skip
    assert code == 0
    text = page.read_text(encoding="utf-8")
    known = vote == "neighbors"
    assert ("and who voted for it" in text) == known
    data = script_data(text)
    assert data["n_voters"] == (5 if known else 0)


POINT = """
const box = document.getElementById("map").getBoundingClientRect();
const d = JSON.parse(document.getElementById("rows").textContent);
const xy = new Uint16Array(Uint8Array.from(atob(d.places), c => c.charCodeAt(0)).buffer);
const axes = [0, 1].map(a => Array.from(xy).filter((_, i) => i % 2 === a).map(v => v / 65535));
const span = axes.map(v => Math.max(...v) - Math.min(...v));
const side = Math.min((box.width - 52) / span[0], (box.height - 52) / span[1]);
const point = (i) => ({clientX: box.left + box.width / 2 + (axes[0][i] - 0.5) * side,
  clientY: box.top + box.height / 2 + (axes[1][i] - 0.5) * side, pointerType: "mouse"});
const map = document.getElementById("map"), said = [];
const chosen = () => document.querySelector("#chosen h3").textContent;
"""


@needs_browser
def test_hover_tells_the_row_its_cells_and_its_voters(page):
    dom = in_browser(
        page, script=POINT + "map.dispatchEvent(new PointerEvent('pointermove', point(0)))"
    )
    tip = re.search(r'<div id="tip"([^>]*)>(.*?)</div>', dom, re.S)
    assert "hidden" not in tip[1]
    assert re.match(r"<h3>\d{4}</h3><dl><dt>label</dt>", tip[2])
    for word in ("predicted", "voted by", "petal_length", "spotted"):
        assert f"<dt>{word}</dt>" in tip[2]
    assert 'data-ready="600"' in dom


@needs_browser
def test_keys_search_and_links_choose_rows(page):
    script = (
        POINT
        + """
    const key = (name) => map.dispatchEvent(new KeyboardEvent("keydown", {key: name}));
    const query = document.getElementById("query"), found = document.getElementById("found");
    said.push(chosen());
    key("ArrowLeft"); said.push(chosen());
    document.querySelector("#next tr:nth-child(3) a").click(); said.push(chosen());
    said.push(document.activeElement === map);
    query.value = "0100"; query.dispatchEvent(new Event("input")); said.push(found.textContent);
    document.getElementById("find").requestSubmit(); said.push(chosen());
    document.querySelector("[data-show=odd]").click(); said.push(found.textContent);
    key("Escape"); said.push(document.getElementById("chosen").textContent);
    document.title = JSON.stringify(said);
    """
    )
    dom = in_browser(page, script=script)
    said = json.loads(unescape(re.search(r"<title>(.*?)</title>", dom)[1]))
    text = page.read_text(encoding="utf-8")
    listed = re.findall(r'data-dot="\d+">(\d+)</a></td>', text)
    assert said[0] == listed[0]
    assert said[1] not in (said[0], "")
    assert said[2:4] == [listed[2], True]
    assert said[4:6] == ["1 of 600 dots; Enter goes through them", "0100"]
    assert re.fullmatch(r"\d+ of 600 dots", said[6])
    assert said[7] == ""


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A page of a table whose every name is hostile, with wrong labels that are listed too."""
    folder, rng = tmp_path_factory.mktemp("evil"), np.random.default_rng(0)
    with (folder / "evil.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", f"x{EVIL}", "y", "words", f"label{EVIL}"])
        for i in range(60):
            label = ["b", EVIL][(i + (i == 19)) % 2] if i < 20 else ""
            place = rng.normal(size=2) + 9 * (i % 2)
            writer.writerow([f"{i}{EVIL}", *place, f"{EVIL[:60]}{i}", label])
    code = main(["classify", str(folder / "evil.csv"), "--label", f"label{EVIL}", "--id", "id",
                 "--quiet", "--report", str(folder / "r.html")])  # fmt: skip
    assert code == 0
    return folder / "r.html"


def test_what_stands_in_the_table_is_only_text(evil):
    """Every hostile name is read back as it was, from text or from the data of the script."""
    text = evil.read_text(encoding="utf-8")
    checker = _Checker()
    checker.feed(text)
    assert (checker.open, checker.fetched, checker.pictures) == ([], [], 1)
    assert checker.scripts == 2
    shown = unescape(text)
    assert f"evil.csv: label{EVIL}" in shown
    assert f"label label{EVIL}" in shown
    assert EVIL[:23] in re.search(r"Labels to look at again(.*?)Health", shown, re.S)[1]
    assert "49" not in shown[: shown.index("</h1>")]
    data = script_data(text)
    assert data["classes"] == [EVIL[:79] + "…", "b"]
    assert data["ids"][7] == f"7{EVIL}"[:79] + "…"
    assert data["columns"] == [f"x{EVIL}", "y", "words"]
    assert data["cells"][2][7] == f"{EVIL[:60]}7"
    assert f"<td>{EVIL[:60]}" in shown


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
    assert 'data-ready="30000"' in dom
    assert (tmp_path / "r.html").stat().st_size < 4e6
    assert time.perf_counter() - start < 15


def test_without_validation_no_label_is_checked(tmp_path, monkeypatch):
    def fail(*_arguments, **_options):
        raise AssertionError("labels were checked")

    monkeypatch.setattr("manifoldknn.reporting.page.find_label_errors", fail)
    out, page = str(tmp_path / "o.csv"), str(tmp_path / "r.html")
    code = main(["classify", str(FLOWERS), "--label", "species", "--quiet", "--no-validate",
                 "--out", out, "--report", page])  # fmt: skip
    assert code == 0
    assert "Not looked for, as asked" in (tmp_path / "r.html").read_text(encoding="utf-8")
