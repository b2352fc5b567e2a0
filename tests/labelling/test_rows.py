"""Pictures stay in their folder; cells are handed out as they are."""

import base64

import numpy as np
import pytest

from manifoldknn.labelling.rows import ForbiddenError, Rows, as_pixels

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


def test_pixels_are_one_scale():
    X = np.random.default_rng(0).random((5, 784)) * 3 + 2
    found = as_pixels(X)
    assert (found.min(), found.max(), found.dtype) == (0, 255, np.uint8)
    assert as_pixels(X[:, :49]) is None
