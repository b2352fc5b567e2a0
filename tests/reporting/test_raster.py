"""Pictures are real PNG files with the right dots in the right places."""

import io

import numpy as np
from PIL import Image

from manifoldknn.reporting.raster import draw_points, png


def test_png_says_what_the_array_says():
    picture = np.random.default_rng(0).integers(0, 256, (37, 53, 3)).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png(picture)))), picture)


def test_discs():
    picture = np.full((21, 21, 3), 255, dtype=np.uint8)
    draw_points(picture, np.array([[10, 10], [0, 20]]), np.array([[1, 2, 3]] * 2, np.uint8), 4)
    rows, cols = np.mgrid[:21, :21]
    near = ((rows - 10) ** 2 + (cols - 10) ** 2 <= 16) | ((rows - 20) ** 2 + cols**2 <= 16)
    np.testing.assert_array_equal((picture == [1, 2, 3]).all(axis=2), near)
