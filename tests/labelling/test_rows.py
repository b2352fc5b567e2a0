"""Pictures stay in their folder; cells are handed out as they are."""

import base64

import numpy as np
import pytest

from manifoldknn.labelling.rows import ForbiddenError, Rows, as_pixels, pixel_columns

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture
def rows(tmp_path):
    home = tmp_path / "data"
    (home / "deep").mkdir(parents=True)
    (home / "deep" / "a.png").write_bytes(PNG)
    (home / "page.svg").write_text("<svg onload='alert(1)'/>")
    (tmp_path / "secret.png").write_bytes(PNG)
    (tmp_path / "data-too").mkdir()
    (tmp_path / "data-too" / "b.png").write_bytes(PNG)
    (home / "link.png").symlink_to(tmp_path / "secret.png")
    image = ["deep/a.png", "../secret.png", str(tmp_path / "secret.png"), "link.png", "page.svg",
             "none.png", "a\0b", "x" * 5000, "../data-too/b.png", "", "deep"]  # fmt: skip
    ids = [str(k) for k in range(len(image))]
    X = np.zeros((len(image), 2))
    return Rows("a.csv", ids, {"file": image}, X, {}, image=image, folder=home)


def test_a_picture_comes_as_it_is(rows):
    found = rows.picture(0)
    assert found == {"type": "image/png", "data": base64.b64encode(PNG).decode()}


@pytest.mark.parametrize("row", [1, 2, 3, 8])
def test_nothing_outside_the_folder(rows, row):
    with pytest.raises(ForbiddenError, match="outside the folder"):
        rows.picture(row)


@pytest.mark.parametrize("row", [4, 5, 6, 7, 9, 10])
def test_what_is_no_picture_is_told(rows, row):
    with pytest.raises(ValueError, match=r"was not found|is no PNG|no name of a file"):
        rows.picture(row)


def test_search_looks_at_ids_and_cells(rows):
    assert rows.found("SECRET") == [1, 2]
    held = [i for i, path in enumerate(rows.cells["file"]) if "10" in path]  # a folder's name may
    assert rows.found("10") == sorted({10, *held})


GRAY = np.random.default_rng(0).integers(256, size=(6, 64)).astype(float)


def pixels(X):
    return as_pixels([f"p{k}" for k in range(64)], [list(X[:3].T), list(X[3:].T)])


def test_whole_numbers_and_255ths_are_pixels():
    for X, unit in ((GRAY, 1), (np.round(GRAY / 255, 4), 1 / 255)):
        found = pixels(X)
        np.testing.assert_array_equal(found.values, GRAY)
        assert (found.unit, found.about()["white"]) == (unit, 255)
    assert pixels(GRAY % 17).about()["white"] == 16


@pytest.mark.parametrize(
    "X", [GRAY + 1, -GRAY, GRAY / 3, GRAY / 300, GRAY * np.nan, GRAY + np.inf],
    ids=["256", "negative", "thirds", "shares", "missing", "infinite"],
)  # fmt: skip
def test_measurements_are_no_pixels(X):
    assert pixels(X) is None
    assert as_pixels(["p0"], [[["word"]]]) is None


def test_columns_of_pixels_are_numbered_and_make_a_square():
    numbered = [f"{a}x{b}" for a in range(28) for b in range(28)]
    assert pixel_columns(["label", *numbered, "note"]) == numbered
    assert pixel_columns(numbered[:-1]) == []
    assert pixel_columns([f"{name:c}{name}" for name in range(97, 161)]) == []
    assert pixel_columns([]) == []
