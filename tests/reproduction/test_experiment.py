"""Every experiment keeps to the contract, has its words, and is found by what people type."""

import tomllib
from importlib import resources

import pytest

from manifoldknn.datasets import PAPER_SETS
from manifoldknn.reproduction.experiment import PLACES, Plan, load, select, told

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


def test_order_is_the_papers():
    assert list(PLACES)[:4] == ["fig1", "fig2", "fig3", "fig4"]
    assert list(PLACES).index("tab4") < list(PLACES).index("tab5") < list(PLACES).index("fig9")
    assert select([]) == select(["all"]) == list(PLACES)
    assert select(["fig4", "FIG2", "fig4"]) == ["fig2", "fig4"]


@pytest.mark.parametrize(
    ("typed", "meant"), [("fig13", "fig"), ("tab55", "tab5"), ("fgi7", "fig7")]
)
def test_unknown_names_are_refused_with_a_suggestion(typed, meant):
    with pytest.raises(ValueError, match=f"no experiment '{typed}'") as caught:
        select(["fig1", typed])
    assert f"is it '{meant}" in str(caught.value)
    assert "choose from fig1, fig2" in str(caught.value)


def test_a_name_unlike_any_gets_the_list_only():
    with pytest.raises(ValueError, match="no experiment 'everything': choose from fig1"):
        select(["everything"])


@pytest.mark.parametrize("name", PLACES)
def test_experiments_keep_to_the_contract(name):
    experiment = load(name)
    assert experiment.name == name
    assert experiment.title
    assert len(set(experiment.columns)) == len(experiment.columns)
    assert set(experiment.timings) <= set(experiment.columns)
    assert set(experiment.datasets) <= set(PAPER_SETS)
    for plan in (Plan(), Plan(quick=True), Plan(seed=5)):
        cells = experiment.cells(plan)
        assert cells
        assert len(set(cells)) == len(cells)
        assert {cell.experiment for cell in cells} == {name}
        assert all(cell.seconds > 0 for cell in cells)
    seconds = [sum(c.seconds for c in experiment.cells(Plan(quick=q))) for q in (False, True)]
    assert seconds[1] <= seconds[0]
