"""The site: exactly the public names, no number typed by hand, short sentences, whole links."""

import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest

import manifoldknn

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tests")]

generated = importlib.import_module("generated")
measured = importlib.import_module("measured")

MADE = {"reference/api.rst", "reference/command.rst", "reference/json.rst", "changelog.rst"}
PAGES = [
    path
    for path in sorted((ROOT / "docs").rglob("*.rst"))
    if not {"generated", "gallery", "tutorials", "sg_execution_times.rst"} & set(path.parts)
    and path.relative_to(ROOT / "docs").as_posix() not in MADE
]
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))
TEXTS = [measured.README, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
# Numbers with a unit or a fraction that are no results: settings, definitions and examples.
SETTINGS = {
    "99 %": "the limit of off_manifold; what walkers keep per step in the paper",
    "97 %": "the recall that the search is widened to",
    "95 %": "the level of the interval",
    "80 %": "an example of a confidence",
    "0.8": "the same", "0.2": "an example of an overlap",
    "5 %": "an example of a cell, and a quantile",
    "0.5": "an example of a cell",
    "1,234.5": "an example of a cell", "3.2": "an example of a cell",
    "6.4": "a section of the paper",
    "0.98": "the formula of the shares", "0.02": "the formula of the shares",
    "0.99": "the paper's alpha", "0.01": "an erratum, and a summand of suggest",
    "1606.00985": "the paper's number",
    "3.11": "Python", "0.1.0": "the version",
    "100 MB": "what a batch of predict may take",
    "2s": "a formula",
}  # fmt: skip
UNIT = r"(?:%|s|seconds|ms|milliseconds|minutes|hours?|MB|GB|kB|points)(?![\w-])"
MEASURED = rf"(?<![\w.])\d[\d.,]*\s?{UNIT}"
NUMBER = rf"{MEASURED}|(?<![\w.])\d[\d,]*\.\d[.\d]*|(?:1 - )?\b\d+e-?\d+"


def prose(path):
    """Return the text of a page without code and tables; of an example, its comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        head = text.split('"""')[1]
        blocks = re.findall(r"^# %%\n((?:#.*\n)+)", text, re.M)
        text = "\n\n".join([head, *(re.sub(r"^# ?", "", block, flags=re.M) for block in blocks)])
    if path.suffix == ".md":
        text = re.sub(r"```.*?```", "", text, flags=re.S)
        text = re.sub(r"^\|.*$|^!\[.*$|^#.*$|<!--.*?-->", "\n", text, flags=re.M)
        return re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^\.\. code-block::.*\n(?:\n|[ ]+.*\n)*", "\n\n", text, flags=re.M)
    text = re.sub(r"^\.\. .*\n(?:[ ]+:.*\n)*", "\n\n", text, flags=re.M)
    return re.sub(r"^([=\-~])\1+$", "\n", text, flags=re.M)


def test_reference_has_exactly_the_public_names():
    names = generated.public_names()
    assert sorted(names["manifoldknn"]) == sorted(manifoldknn.__all__)
    modules = importlib.import_module("test_public").MODULES
    assert {f"manifoldknn.{module}" for module in modules} == set(names) - {"manifoldknn"}
    for module, public in modules.items():
        assert set(names[f"manifoldknn.{module}"]) == public
    listed = re.findall(r"^   (\w+)$", generated.api_page(), re.M)
    assert sorted(listed) == sorted(name for public in names.values() for name in public)


def test_command_reference_has_every_option():
    told = tomllib.loads((generated.PACKAGE / "cli" / "options.toml").read_text(encoding="utf-8"))
    page = generated.cli_page()
    for command in told["commands"]:
        assert f"manifoldknn {command}\n-----" in page
    for options in told["sections"].values():
        for option in options:
            if option.startswith("-"):
                assert re.search(rf"^\.\. option:: {option.replace('_', '-')}( |$)", page, re.M)


def test_every_quoted_number_is_in_a_file_and_none_is_left_over():
    quoted = {"values": set(), "tables": set()}
    for path in [*PAGES, *EXAMPLES]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"[A-Z]TEXT\b", text), f"{path} has a place that nothing was put in"
        quoted["values"] |= set(re.findall(r":measured:`(\w+)`", text))
        quoted["tables"] |= set(re.findall(r"\.\. measured:: (\w+)", text))
    readme = measured.README.read_text(encoding="utf-8")
    quoted["tables"] |= set(re.findall(r"<!-- measured (\w+) -->", readme))
    assert quoted["values"] == set(measured.told()["values"])
    assert quoted["tables"] == set(measured.told()["tables"])
    for name in quoted["values"]:
        assert float(measured.value(name)) >= 0
        assert measured.commit(measured.told()["values"][name]["file"]) != "unknown", name
    for name in quoted["tables"]:
        head, rows = measured.table(name)
        assert rows
        assert {len(row) for row in rows} == {len(head)}
        assert all(set(row[1:]) != {measured.MISSING} for row in rows), f"{name}: an empty line"
        assert "not recorded" not in measured.origin(name)


def typed(text, pattern=NUMBER):
    """Return the numbers of a text that look like results."""
    found = [" ".join(n.split()).rstrip(".,") for n in re.findall(pattern, text.replace("``", ""))]
    return [number for number in found if number not in SETTINGS]


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES, *TEXTS], ids=lambda p: p.stem)
def test_no_result_is_typed(path):
    text = re.sub(r":measured:`\w+`", "", prose(path))
    # What is told to be arithmetic is none.
    text = re.sub(r"(?:These are estimates|Not measured)(?s:.*?)(?=\n\w.*\n-+\n|\Z)", "", text)
    assert typed(text) == []


def documented():
    """Yield the public names and their documentation, without signatures and examples."""
    for module, names in generated.public_names().items():
        for name in names:
            thing = getattr(importlib.import_module(module), name)
            yield f"{module}.{name}", inspect.getdoc(thing)
            for key, part in vars(thing).items() if inspect.isclass(thing) else ():
                if key[0] != "_" and (callable(part) or isinstance(part, property)):
                    yield f"{module}.{name}.{key}", inspect.getdoc(part)


def test_no_result_is_typed_in_the_references():
    options = (generated.PACKAGE / "cli" / "options.toml").read_text(encoding="utf-8")
    helps = re.findall(r'help = "(.*?)" ', options)
    assert len(helps) > 50
    texts = {"options": "\n".join(helps), **dict(documented())}
    found = {}
    for name, text in texts.items():
        found[name] = typed(re.sub(r"^Examples\n-+(?s:.*)", "", text or "", flags=re.M), MEASURED)
    assert {name: numbers for name, numbers in found.items() if numbers} == {}


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES, *TEXTS], ids=lambda p: p.stem)
def test_sentences_are_short(path):
    text = re.sub(r"`([^`<]*?)\s*<[^>]*>`_*", r"\1", prose(path))
    for block in re.split(r"\n\s*\n|\n\s*[-*\d]+\.? ", text):
        for sentence in re.split(r"[.?!](?:\*\*)?(?:\s|$)", block):
            assert len(re.findall(r"[\w'’-]*[A-Za-z][\w'’-]*", sentence)) <= 25, sentence


def test_no_file_of_results_changed_unseen():
    assert measured.HASHES.read_text(encoding="utf-8") == measured.hashes(), (
        "run: python docs/measured.py"
    )


def test_files_that_hold_the_same_measurement_agree():
    methods = {"classes": "mkNN default", "neighbors": "mkNN, the paper's vote"}
    for data in ("usps", "segmentation", "banknote", "pendigits", "multifeature", "satlog"):
        for protocol in ("b3", "r3", "r10"):
            where = {"data": data, "protocol": protocol}
            for vote, method in methods.items():
                one = measured.mean("draws-errors.csv", where | {"vote": vote}, "error")
                other = measured.mean("draws.csv", where | {"method": method}, "error")
                assert one == pytest.approx(other, abs=0.05)
            ours = measured.mean("draws-errors.csv", where | {"vote": "classes"}, "error")
            if protocol != "b3":
                where["method"] = "manifoldknn"
                assert measured.mean("others.csv", where, "error") == pytest.approx(ours, abs=0.05)
    for data in ("segmentation", "satlog", "usps", "pendigits"):
        ours = {"data": data, "protocol": "r10", "vote": "classes"}
        one = measured.mean("draws-errors.csv", ours, "error")
        other = measured.mean("draws-partner.csv", {"data": data, "who": "densities"}, "error")
        assert one == pytest.approx(other, abs=0.05)
    of_mnist = {"setting": "mnist", "labelled": "100"}
    one = measured.mean("mnist.csv", {"method": "manifoldknn"}, "error_pct")
    assert one == pytest.approx(measured.mean("many.csv", of_mnist, "error_pct"), abs=0.005)


def test_readme_is_short_and_its_tables_are_those_of_the_files():
    text = measured.README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert text == measured.readme(), "run: python docs/measured.py"
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_pictures_lead_to_examples():
    picture = r"(?:gallery|tutorials)/(?:images/sphx_glr_)?(plot_\w+?)(?:_00\d\.png|\.html|`)"
    for path in PAGES:
        for name in re.findall(picture, path.read_text(encoding="utf-8")):
            assert list((ROOT / "examples").glob(f"*/{name}.py")), (path, name)


def test_a_gallery_of_at_least_ten():
    assert len([path for path in EXAMPLES if path.parent.name == "gallery"]) >= 10
    for path in EXAMPLES:
        assert "matplotlib" in path.read_text(encoding="utf-8")


def test_changelog_becomes_a_page():
    page = generated.changelog_page()
    assert page.startswith("Changelog\n=========\n")
    assert "``ManifoldKNNClassifier``" in page
    assert not re.search(r"^#", page, re.M)
