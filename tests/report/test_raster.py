"""Pictures are real PNG files with the right dots in the right places."""

import io

import numpy as np
from PIL import Image

from manifoldknn.report.raster import draw_points, png, shades, to_pixels


def test_png_says_what_the_array_says():
    picture = np.random.default_rng(0).integers(0, 256, (37, 53, 3)).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png(picture)))), picture)


def test_points_fill_the_picture():
    points = np.random.default_rng(0).normal(size=(50, 2))
    pixels = to_pixels(points, 200, 100, 10)
    assert pixels.min(axis=0).tolist() == [10, 10]
    assert pixels.max(axis=0).tolist() == [189, 89]
    assert pixels[points[:, 1].argmax(), 1] == 10  # up is up
    assert to_pixels(np.zeros((3, 2)), 21, 11, 2).tolist() == [[10, 5]] * 3


def test_discs():
    picture = np.full((21, 21, 3), 255, dtype=np.uint8)
    draw_points(picture, np.array([[10, 10], [0, 20]]), np.array([[1, 2, 3]] * 2, np.uint8), 4)
    rows, cols = np.mgrid[:21, :21]
    near = ((rows - 10) ** 2 + (cols - 10) ** 2 <= 16) | ((rows - 20) ** 2 + cols**2 <= 16)
    np.testing.assert_array_equal((picture == [1, 2, 3]).all(axis=2), near)


def test_shades_grow_lighter():
    light = shades(np.linspace(0, 1, 30)).astype(float) @ [0.2, 0.7, 0.1]
    assert (np.diff(light) > 0).all()
