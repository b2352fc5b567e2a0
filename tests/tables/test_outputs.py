"""What cannot be written is said before the work begins."""

import os
from argparse import Namespace

import numpy as np
import pytest

from manifoldknn.tables.outputs import answers, check_targets, table_target
from manifoldknn.tables.table import TableError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("a\n1\n")
    (tmp_path / "m.mknn").write_text("model")
    return tmp_path


def options(*, force=False, file="in.csv", out=None):
    return Namespace(file=file, force=force, out=out)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("option", ["--report", "--save"])
def test_two_outputs_of_one_name(option, force):
    with pytest.raises(TableError, match="is also what --out names"):
        check_targets(options(force=force), {"--out": "x", option: "./x"})
    check_targets(options(force=force), {"--out": "x", option: "y"})


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("force", [False, True])
def test_neither_input_nor_model_is_an_output(folder, force):
    os.link("in.csv", "same.csv")
    (folder / "link.mknn").symlink_to("m.mknn")
    for name, words in {
        "in.csv": "the input itself", "same.csv": "the input itself",
        "m.mknn": "the model itself", "link.mknn": "the model itself",
    }.items():  # fmt: skip
        with pytest.raises(TableError, match=words):
            check_targets(options(force=force), {"--out": name}, model="m.mknn")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_links_are_not_written_over(folder, kind):
    (folder / "links.csv").write_text("1,2\n")
    given = options(force=True)
    check_targets(given, {"--save": "links.csv"})
    setattr(given, kind, "links.csv")
    with pytest.raises(TableError, match=f"is what --{kind.replace('_', '-')} names"):
        check_targets(given, {"--save": "links.csv"})


@pytest.mark.usefixtures("folder")
def test_only_the_table_goes_to_standard_output():
    check_targets(options(), {"--out": "-"})
    for option in ("--report", "--save"):
        with pytest.raises(TableError, match=f"{option} -: only the table"):
            check_targets(options(), {"--out": "-", option: "-"})


@pytest.mark.usefixtures("folder")
@pytest.mark.skipif(os.name == "nt", reason="devices of POSIX")
def test_devices_and_pipes_are_refused():
    os.mkfifo("pipe")
    for name in ("/dev/null", "pipe"):
        with pytest.raises(ValueError, match="no ordinary file"):
            check_targets(options(force=True), {"--out": name})


@pytest.mark.usefixtures("folder")
def test_names_of_tables():
    assert table_target(options()) == "in-labelled.csv"
    assert table_target(options(file="a.npy")) == "a-labelled.npz"
    assert table_target(options(file="-")) == "-"
    for name in (".", "/", ".."):
        with pytest.raises(TableError, match="is a folder"):
            table_target(options(file=name))


def test_confidence_and_margin():
    """The last three rows: abstained, guessed, and a given label that loses the vote."""
    shares = np.array([[0.2, 0.5, 0.3], [1, 0, 0], [1, 0, 0], [0.2, 0.5, 0.3]])
    unreached = np.array([False, True, True, False])
    confidence, margin = answers(shares, np.array([1, -1, 0, 0]), unreached)
    np.testing.assert_allclose(confidence, [0.5, 0, 0, 0.2])
    np.testing.assert_allclose(margin, [0.2, 0, 0, -0.3])
    confidence, margin = answers(shares[:1], np.array([-1]), np.array([False]))
    np.testing.assert_allclose((confidence[0], margin[0]), (0.5, 0.2))  # of what it would have said


def test_one_class():
    confidence, margin = answers(np.ones((2, 1)), np.zeros(2, dtype=int), np.array([False, True]))
    assert confidence.tolist() == margin.tolist() == [1, 0]
