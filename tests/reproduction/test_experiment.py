"""What is said of every experiment, and in the file that says it."""

import tomllib
from importlib import resources

import pytest

from manifoldknn.reproduction.catalogue import PLACES, load
from manifoldknn.reproduction.experiment import told

WORDS = (resources.files("manifoldknn.reproduction") / "words.toml").read_text("utf-8")


@pytest.mark.parametrize("name", PLACES)
def test_every_experiment_has_its_words(name):
    made = load(name)
    assert made.title == told(name)["title"]
    assert "{" not in " ".join([*told(name)["differences"], *told(name)["notes"]])
    assert list(made.notes) == told(name)["notes"]


def test_nothing_is_said_of_others_or_shared_in_vain():
    words = tomllib.loads(WORDS)
    assert set(words) == {"shared", "settings", *PLACES}
    everything = " ".join(str(told(name)) for name in PLACES)
    for name, sentence in words["shared"].items():
        assert f"{{{name}}}" in WORDS
        assert sentence[:60] in everything
