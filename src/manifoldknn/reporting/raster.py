"""Clouds of points as PNG pictures, without a plotting library."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray


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
