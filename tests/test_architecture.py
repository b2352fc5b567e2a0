"""The picture of the house shows the house."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_picture_is_up_to_date():
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
    rooms = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rooms)
    drawn = (ROOT / "docs" / "rooms.svg").read_text(encoding="utf-8")
    assert drawn == rooms.drawn(), "run: python docs/rooms.py"


def test_files_that_are_named_are_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    assert len(named) > 20
    for name in named:
        assert any((base / name).exists() for base in (ROOT, ROOT / "src" / "manifoldknn")), name


def test_no_room_is_crowded():
    for folder in (ROOT / "src" / "manifoldknn").rglob("*"):
        if folder.is_dir():
            files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            assert len(files) <= 12, folder
