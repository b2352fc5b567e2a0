"""The report: whole, valid, and complete in itself."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import cheap_experiment as cheap
from manifoldknn.reproduction.assemble import Assembled
from manifoldknn.reproduction.experiment import Plan, Table
from manifoldknn.reproduction.page import report_page, write_reproduction
from manifoldknn.reproduction.store import Store

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Checker(HTMLParser):
    """Sees to it that every element is closed, in order, and gathers what refers elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.sources, self.text = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        assert tag != "script"
        assert not [name for name in attrs if name.startswith("on")]
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []
        self.sources += [attrs["src"]] if "src" in attrs else []
        if tag == "img":
            assert attrs["alt"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert all(link[0] == "#" and link[1:] in checker.ids for link in checker.links)
    assert all(source.startswith("data:image/png;base64,") for source in checker.sources)
    assert not re.search(r"https?://|@import|url\(|\{\{|\{%|\}\}", page)
    return checker, " ".join("".join(checker.text).split())


def part(name="cheap", **changes):
    rows = [["a<b", 0.25, 0.5, -0.25, None, True, "1.0 ± 0.2", 3]]
    header = ["set", "ours", "published", "difference", "none", "flag", "text", "count"]
    made = Assembled(replace(cheap.EXPERIMENT, name=name), n_cells=3, seconds=1.5, png=b"\x89PNG")
    made.tables = [Table("Numbers & more", header, rows, ["Below <it>."])]
    made.differences = ["Differs from the paper in everything."]
    made.notes = ["The paper is named, which is no difference."]
    return replace(made, **changes)


@pytest.fixture
def store(tmp_path):
    made = Store.open(tmp_path / "r", Plan(quick=True, seed=7), ["cheap"], resume=False)
    made.begin()
    return made


def test_every_experiment_is_there_and_nothing_refers_elsewhere(store):
    parts = [part("fig1"), part("tab5", png=b""), part("fig10-11")]
    checker, text = checked(report_page(parts, store, jobs=2, command="manifoldknn reproduce"))
    for name in ("fig1", "tab5", "fig10-11"):
        assert name in checker.ids
        assert f"csv/{name}.csv" in text
    assert len(checker.sources) == 2
    assert "3 of 3 tables and figures" in text
    assert "Not complete" not in text
    for words in ("seed 7", "7; run r", "quick", "numpy", "scikit-learn", "cores", "4.5 s of work"):
        assert words in text


def test_tables_show_what_they_hold(store):
    page = report_page([part()], store, jobs=1, command="")
    _, text = checked(page)
    assert "Numbers & more" in text
    assert "a<b 0.25 0.50 −0.25 – yes 1.0 ± 0.2 3" in re.sub(r"\s+", " ", re.sub(
        r"<[^>]*>", " ", page[page.index("a&lt;b"):]).replace("&lt;", "<"))  # fmt: skip
    assert '<td class="n">1.0 ± 0.2</td>' in page
    assert "<td>a&lt;b</td>" in page
    assert "Below <it>." in text


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([38.44, 0.527, 50.0], ["38.44", "0.53", "50.00"]),
        ([0.1909, 0.02376, 14.94], ["0.191", "0.024", "14.940"]),
        ([2.5e-8, 0.05], ["2.5e−08", "0.05"]),  # no common number of decimals would do
        ([12345.6, 0.0], ["12346", "0"]),
        ([21.92, 16.7], ["21.92", "16.70"]),
        ([321.25, 100.0], ["321.2", "100.0"]),
        ([-0.25, None], ["−0.25", "–"]),
        ([float("nan"), 1.0], ["nan", "1.00"]),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(store, values, shown):
    made = part(tables=[Table("T", ["v"], [[v] for v in values])])
    page = report_page([made], store, jobs=1, command="")
    table = page[page.index('aria-label="T"') :]
    assert re.findall(r'<td class="n">([^<]*)</td>', table)[: len(values)] == shown


def test_differences_are_gathered_once(store):
    page = report_page([part("fig1"), part("fig2")], store, jobs=1, command="")
    gathered = page[page.index('id="differences"') : page.index('<section id="fig1">')]
    assert gathered.count("Differs from the paper in everything.") == 1
    assert 'href="#fig1"' in gathered
    assert 'href="#fig2"' in gathered
    assert "is no difference" not in gathered
    assert page.count("is no difference") == 2


def test_main_numbers_stand_at_the_top(store):
    _, text = checked(report_page([part()], store, jobs=1, command=""))
    assert "In short" not in text
    parts = [part("fig1"), part("tab6", headline=Table("Main", ["set"], [["iris & co"]]),
                                findings=["It <works>."])]  # fmt: skip
    page = report_page(parts, store, jobs=1, command="")
    _, text = checked(page)
    top = page[: page.index("<nav")]
    assert "iris &amp; co" in top
    assert "It &lt;works&gt;." in top
    assert 'href="#tab6"' in top


def test_settings_of_all_methods_stand_in_the_page(store):
    _, text = checked(report_page([part()], store, jobs=1, command=""))
    for words in ("Settings of the methods", "lbfgs", "triangular", "gradient_descent"):
        assert words in text


def test_what_is_missing_is_said_at_the_top(store):
    parts = [part("fig1"), part("fig2", problems=["2 of 3 <cells>"], n_missing=2, png=b"")]
    _, text = checked(report_page(parts, store, jobs=1, command=""))
    assert "1 of 2 tables and figures" in text
    assert "Not complete.fig2: 2 of 3 <cells>" in text


def test_nothing_of_a_run_becomes_markup(store):
    evil = "</style><script>1</script><img src=x onerror='1'>\"{{ 7 * 7 }}"
    table = Table(evil, [evil], [[evil]], [evil])
    texts = {name: [evil] for name in ("findings", "differences", "notes", "problems")}
    made = part(headline=table, tables=[table], **texts)
    made.experiment = replace(made.experiment, title=evil)
    page = report_page([made], store, jobs=1, command=evil)
    _, text = checked(page.replace("{{", "").replace("}}", ""))
    assert (
        text.count(evil.replace("{{", "").replace("}}", "")) == 17
    )  # each place once: two tables of four, and nine others
    assert "49" not in text


def test_it_is_written_beside_the_rest(store):
    path = write_reproduction([part()], store, jobs=1, command="x")
    assert path == store.folder / "report.html"
    checked(path.read_text(encoding="utf-8"))
