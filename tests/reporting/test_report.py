"""The page from Python is that of the command."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from manifoldknn import ManifoldKNNClassifier, TableEncoder, report, suggest
from manifoldknn.cli.main import main

FLOWERS = Path(__file__).parents[2] / "examples" / "flowers.csv"


def without_time(page):
    """Return a page less how long it took, and what the settings say of the file."""
    page = re.sub(r"time +reading.*", "", re.sub(r"time  +[a-z].*", "", page))
    return re.sub(r"label species, id [^<]*", "", page)


def test_the_page_is_that_of_the_command(tmp_path, capsys):
    frame = pd.read_csv(FLOWERS, dtype=str, keep_default_na=False)
    wanted = ["--label", "species", "--id", "id", "--quiet", "--report", str(tmp_path / "a.html")]
    assert main(["classify", str(FLOWERS), *wanted, "--out", str(tmp_path / "a.csv")]) == 0
    capsys.readouterr()
    frame = frame.set_index("id")
    X = frame.drop(columns="species")
    encoder = TableEncoder().set_output(transform="pandas")
    model = make_pipeline(encoder, ManifoldKNNClassifier()).fit(X, frame["species"])
    report(model, X, tmp_path / "b.html", name="flowers.csv", label="species")
    ours, theirs = (
        without_time((tmp_path / name).read_text(encoding="utf-8")).splitlines()
        for name in ("b.html", "a.html")
    )
    left = {"id", "species", "label"}  # columns of the file that X has not
    different = [line for line in theirs if line not in set(ours)]
    assert all(any(name in line for name in left) for line in different), different[:5]
    assert len(set(theirs) - set(ours)) <= 6
    with pytest.raises(FileExistsError):
        report(model, X, tmp_path / "b.html")
    report(model, X, tmp_path / "b.html", force=True, validate=False)
    page = (tmp_path / "b.html").read_text(encoding="utf-8")
    assert page.count(", as asked") == 4
    assert "--no-validate" not in page


@pytest.mark.parametrize("frame_of", [np.asarray, pd.DataFrame, pl.from_pandas])
def test_without_an_encoder(tmp_path, frame_of):
    frame, y = load_iris(return_X_y=True, as_frame=True)
    frame.columns = list("abcd")
    X, frame = frame.to_numpy(), frame.assign(note="<b>x</b>")
    clf = ManifoldKNNClassifier().fit(X, np.where(np.arange(150) % 10 > 0, -1, y))
    shown = frame if frame_of is not np.asarray else X
    report(clf, frame_of(shown), tmp_path / "a.html", n=3)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<b>x" not in page
    assert '<span class="badge">3</span>' in page
    assert '<span class="badge">4</span>' not in page


def test_what_is_refused(tmp_path):
    X, y = load_iris(return_X_y=True)
    y[np.arange(150) % 10 > 0] = -1
    clf = ManifoldKNNClassifier().fit(X, y)
    with pytest.raises(ValueError, match="frame has 149 rows, and the classifier knows 150"):
        report(clf, X[1:], tmp_path / "a.html")
    with pytest.raises(TypeError, match="ManifoldKNNClassifier"):
        report(make_pipeline(TableEncoder(), LogisticRegression()), X, tmp_path / "a.html")
    clf.partial_fit(X[:2], refresh=False)
    with pytest.raises(ValueError, match=r"call refresh\(\)"):
        report(clf, X, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_rows_are_called_as_everywhere_else(tmp_path):
    frame, y = load_iris(return_X_y=True, as_frame=True)
    frame.index = [f"r{i}" for i in range(150)]
    y = np.where(np.arange(150) % 10 > 0, -1, y)
    for encoder, named in (
        (TableEncoder(), False),
        (TableEncoder().set_output(transform="pandas"), True),
    ):
        model = make_pipeline(encoder, ManifoldKNNClassifier()).fit(frame, y)
        report(model, frame, tmp_path / "a.html", n=3, force=True)
        page = (tmp_path / "a.html").read_text(encoding="utf-8")
        listed = re.findall(r"</span> <a [^>]*>(?:row )?([^<]*)</a>", page)[:3]
        assert listed == [str(name) for name in suggest(model[-1], 3).ids]
        assert listed[0].startswith("r") == named
        if named:
            model[-1].set_labels(listed, 0)
        else:
            with pytest.raises(ValueError, match=r'set_output\(transform="pandas"\)'):
                model[-1].set_labels(["r7"], 0)
