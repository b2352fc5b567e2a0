"""The page in a real browser: wide and narrow, light and dark, for all readers, and on paper."""

import shutil
from pathlib import Path

import pytest

from manifoldknn.cli.main import main

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
FLOWERS = Path(__file__).parents[2] / "examples" / "flowers.csv"
TABLES = "[...document.querySelectorAll('.scroll')]"
CUT = f"{TABLES}.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel)"
SHOWN = "(which) => getComputedStyle(document.querySelector(which)).display !== 'none'"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with warnings, notes, suggestions and a doubtful label."""
    folder = tmp_path_factory.mktemp("looks")
    header, *lines = FLOWERS.read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines]
    for row in rows[::9]:
        row[header.split(",").index("height")] = "tall"
    labelled = [row for row in rows if row[-1]]
    labelled[0][-1] = labelled[-1][-1] = "unknown"
    table = folder / "f.csv"
    table.write_text("\n".join([header, *map(",".join, rows)]) + "\n", encoding="utf-8")
    line = ["classify", str(table), "--label", "species", "--id", "id", "--quiet"]
    assert main([*line, "--report", str(folder / "r.html")]) == 0
    return (folder / "r.html").as_uri()


def test_all_can_read_it_on_any_screen_and_on_paper(report):
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width, scheme in [(w, s) for w in (1280, 390) for s in ("light", "dark")]:
            size = {"width": width, "height": 844}
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(report)
            page.wait_for_selector("[data-ready='600']")
            page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
            assert violations(page) == [], (width, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") == width
            long = {"Rows to label next", "Labels to look at again", "Classes"}
            assert {*page.evaluate(CUT)} <= (long if width < 500 else set())
        assert "counts as a class" in page.inner_text(".alarm")
        assert "counts as a class" not in page.inner_text("#columns")  # once is enough
        page.emulate_media(media="print", color_scheme="light")
        assert [page.evaluate(SHOWN, which) for which in ("nav", ".zoom", "#find")] == [False] * 3
        assert page.evaluate(SHOWN, ".card")
        assert page.pdf().startswith(b"%PDF")
        page.set_viewport_size({"width": 794, "height": 1123})  # A4
        assert page.evaluate("document.documentElement.scrollWidth") == 794
        page.evaluate("document.querySelector('main').append(document.createElement('input'))")
        assert violations(page) != []  # it does look
        browser.close()


def violations(page):
    found = axe.Axe().run(page).response["violations"]
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], node["html"]) for one in bad for node in one["nodes"]]
