"""Every parameter that a user would touch is an option of the same name."""

import inspect as python_inspect

import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.options import as_options, build_parser
from manifoldknn.session import PARAMETERS

COMMANDS = ("classify", "suggest", "check", "inspect")


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_those_of_the_classifier(command):
    options = build_parser().parse_args([command, "a.csv", "--label", "y"])
    signature = python_inspect.signature(ManifoldKNNClassifier).parameters
    for name in PARAMETERS:
        assert getattr(options, name) == signature[name].default
    left = set(signature) - set(PARAMETERS)
    assert left == {"unlabeled", "verbose"}  # options of their own: --unlabeled, --quiet


@pytest.mark.parametrize("name", [name for name in PARAMETERS if "_" in name])
def test_both_spellings(name):
    value = {"on_unreached": "abstain", "class_prior": "labeled"}.get(name, "3")
    for option in (f"--{name}", f"--{name.replace('_', '-')}"):
        options = build_parser().parse_args(["classify", "a", "--label", "y", option, value])
        assert str(getattr(options, name)) == value


@pytest.mark.parametrize(
    "arguments",
    [[], ["classify"], ["classify", "a.csv"], ["suggest", "a", "--label", "y", "-n", "0"], ["fly"]],
)
def test_errors_are_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", [*COMMANDS, "predict"])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args([command, "--help"])
    assert caught.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_advice_in_words_of_the_command_line():
    say = "raise graph_neighbors, use graph='pruned' or sigma=0.25. A graph of n_jobs_x stays."
    assert as_options(say) == (
        "raise --graph-neighbors, use --graph pruned or --sigma 0.25. A graph of n_jobs_x stays."
    )


def test_every_parameter_is_known_to_the_translation():
    for name in set(PARAMETERS) - {"neighbors"}:  # an ordinary word, which no advice sets
        assert as_options(f"{name}='x'") == f"--{name.replace('_', '-')} x"


def test_rows_are_counted_from_one():
    assert as_options("2 of 9 rows (the first is row 4)") == "2 of 9 rows (the first is row 5)"
