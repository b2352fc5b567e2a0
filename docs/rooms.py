"""Draw the rooms of the package and who imports whom, from the imports there really are.

    python docs/rooms.py          writes docs/rooms.svg

Rooms stand in the order of the layer contract in ``pyproject.toml``. An arc leads from a room to
one below it that it imports from; the more imports, the thicker.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "manifoldknn"
LEFT_OUT = {"__main__", "exceptions"}
WIDTH, HEIGHT, STEP, LEFT = 760, 26, 38, 30


def rooms() -> list[str]:
    """Return the rooms and modules of the house, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    names = [name.strip() for layer in layers for name in layer.split("|")]
    return [name for name in names if name not in LEFT_OUT]


def files_of(room: str) -> list[Path]:
    """Return the modules of a room."""
    if (PACKAGE / room).is_dir():
        return sorted((PACKAGE / room).rglob("*.py"))
    return [PACKAGE / f"{room}.py"]


def imports(room: str) -> Counter[str]:
    """Return how often a room imports from each other one, imports for types left out."""
    found: Counter[str] = Counter()
    for path in files_of(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typed = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or id(node) in typed or not node.module:
                continue
            parts = node.module.split(".")
            if parts[0] == "manifoldknn" and len(parts) > 1 and parts[1] != room:
                found[parts[1]] += 1
    return found


def first_sentence(room: str) -> str:
    """Return what a room says of itself."""
    path = PACKAGE / room / "__init__.py"
    path = path if path.exists() else PACKAGE / f"{room}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    line = text.split("\n")[0].replace("`", "").replace("&", "&amp;").replace("<", "&lt;")
    return line if len(line) <= 96 else line[:93] + "..."


def drawn() -> str:
    """Return the picture as SVG."""
    names = rooms()
    place = {name: 20 + number * STEP for number, name in enumerate(names)}
    height = 20 + len(names) * STEP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 230}" height="{height}" '
        'font-family="sans-serif" font-size="13" role="img" '
        'aria-label="Rooms of manifoldknn and who imports whom">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for name in names:
        count = len([path for path in files_of(name) if path.name != "__init__.py"])
        top = place[name]
        lines += [
            f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="5" '
            'fill="#eef3f8" stroke="#8aa4be"/>',
            f'<text x="{LEFT + 10}" y="{top + 18}" font-weight="bold">{name}</text>',
            f'<text x="{LEFT + 125}" y="{top + 18}" fill="#555">{count}</text>',
            f'<text x="{LEFT + 160}" y="{top + 18}">{first_sentence(name)}</text>',
        ]
    for name in names:
        for other, count in sorted(imports(name).items()):
            if other not in place:
                continue
            start, end = place[name] + HEIGHT / 2, place[other] + HEIGHT / 2
            bend = LEFT + WIDTH + 12 + 0.24 * abs(end - start)
            edge = LEFT + WIDTH
            lines.append(
                f'<path d="M{edge} {start} C{bend:.0f} {start} {bend:.0f} {end} {edge} {end}" '
                f'fill="none" stroke="#2a6f97" stroke-opacity="0.45" '
                f'stroke-width="{min(6.0, 0.7 + 0.25 * count):.2f}"/>'
            )
    return "\n".join([*lines, "</svg>\n"])


if __name__ == "__main__":
    (ROOT / "docs" / "rooms.svg").write_text(drawn(), encoding="utf-8")
