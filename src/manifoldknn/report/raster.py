"""Clouds of points as PNG pictures, without a plotting library."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

# From dark blue over green to yellow: lightness grows all the way, for any kind of eyes.
_SHADES = np.array(
    [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=np.float64
)


def to_pixels(
    points: NDArray[np.float64], width: int, height: int, margin: int
) -> NDArray[np.intp]:
    """Return column and row of points in a picture, the second coordinate upwards.

    >>> to_pixels(np.array([[0.0, 0.0], [1.0, 5.0]]), 101, 51, 5).tolist()
    [[5, 45], [95, 5]]
    """
    low, high = points.min(axis=0), points.max(axis=0)
    share = (points - low) / np.where(high > low, high - low, 1.0)
    share[:, high == low] = 0.5
    x = margin + share[:, 0] * (width - 1 - 2 * margin)
    y = margin + (1 - share[:, 1]) * (height - 1 - 2 * margin)
    return np.column_stack([np.round(x), np.round(y)]).astype(np.intp)


def draw_points(
    picture: NDArray[np.uint8], pixels: NDArray[np.intp], colors: NDArray[np.uint8], radius: float
) -> None:
    """Draw discs into a picture of red, green and blue, later ones over earlier ones."""
    height, width = picture.shape[:2]
    reach = int(radius)
    steps = np.arange(-reach, reach + 1)
    dx, dy = np.meshgrid(steps, steps)
    inside = dx**2 + dy**2 <= radius**2
    # From the rim inwards, so that overlapping discs keep their centres.
    for right, down in sorted(zip(dx[inside], dy[inside]), key=lambda s: -(s[0] ** 2 + s[1] ** 2)):
        x, y = pixels[:, 0] + right, pixels[:, 1] + down
        ok = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        picture[y[ok], x[ok]] = colors[ok]


def shades(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return a colour for each value between 0, dark blue, and 1, yellow."""
    place = np.linspace(0.0, 1.0, len(_SHADES))
    channels = [np.interp(values, place, _SHADES[:, c]) for c in range(3)]
    return np.column_stack(channels).round().astype(np.uint8)


def png(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture of red, green and blue as a PNG file."""
    height, width = picture.shape[:2]
    lines = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each begins with "no filter"
    lines[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b"")]
    out = b"\x89PNG\r\n\x1a\n"
    for name, content in parts:
        check = zlib.crc32(name + content)
        out += struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
    return out
