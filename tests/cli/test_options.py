"""Every parameter that a user would touch is an option of the same name."""

import inspect as python_inspect
import re

import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.parameters import GRAPHS, ON_UNREACHED, PARAMETERS, VOTES
from manifoldknn.cli.options import build_parser
from manifoldknn.tables.session import as_options
from manifoldknn.tables.table import FORMATS

COMMANDS = ("classify", "suggest", "label", "check", "inspect")


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_left_to_the_classifier(command):
    options = build_parser().parse_args([command, "a.csv", "--label", "y"])
    assert all(getattr(options, name) is None for name in PARAMETERS)
    assert options.as_published is False
    left = set(python_inspect.signature(ManifoldKNNClassifier).parameters) - set(PARAMETERS)
    assert left == {"unlabeled", "verbose"}  # options of their own: --unlabeled, --quiet


@pytest.mark.parametrize(
    ("option", "choices"),
    [("--vote", VOTES), ("--graph", GRAPHS), ("--on-unreached", ON_UNREACHED),
     ("--format", set(FORMATS.values()))],
)  # fmt: skip
def test_choices_are_those_of_the_library(option, choices, capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["classify", "a.csv", "--label", "y", option, "?"])
    told = re.search(r"choose from ([^)]*)\)", capsys.readouterr().err)[1]
    assert sorted(told.replace("'", "").split(", ")) == sorted(choices)


def test_the_help_names_the_defaults_of_the_classifier(capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["classify", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name, parameter in python_inspect.signature(ManifoldKNNClassifier).parameters.items():
        if name not in PARAMETERS:
            continue
        # Most have a group of their own, which comes after the others.
        shown = text if name == "abstain_below" else text.split("are not given")[1]
        told = re.search(
            rf" --{name.replace('_', '-')}[ ,][^\[]*\[([^\]:]*)", shown.split("options:")[-1]
        )
        others = {"n_jobs": "all cores", "random_state": "fixed", "partner": "forest from 5 labels",
                  "abstain_below": "answer all"}  # fmt: skip
        expected = others.get(name, parameter.default)
        assert told[1] in (str(expected), "1e-3" if name == "tol" else "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("equal", "equal"),
        ("labeled", "labeled"),
        ("0.7,0.3", [0.7, 0.3]),
        ("cat=0.7,a=b=0.3", {"cat": 0.7, "a=b": 0.3}),
    ],
)
def test_priors(text, expected):
    line = ["classify", "a", "--label", "y", "--class-prior", text]
    assert build_parser().parse_args(line).class_prior == expected


@pytest.mark.parametrize("text", ["none", "", "cat=0.7,0.3", "cat=much", "cat=0.7,cat=0.3"])
def test_bad_priors(text, capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["classify", "a", "--label", "y", "--class-prior", text])
    assert f"{text!r} must be equal, labeled, or shares" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sigma", "alpha", "sharpness"])
def test_numbers_or_auto(name, capsys):
    line = ["classify", "a", "--label", "y", f"--{name}"]
    assert getattr(build_parser().parse_args([*line, "auto"]), name) == "auto"
    assert getattr(build_parser().parse_args([*line, "0.5"]), name) == 0.5
    with pytest.raises(SystemExit):
        build_parser().parse_args([*line, "much"])
    assert "'much' must be a number or auto" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in PARAMETERS if "_" in name])
def test_both_spellings(name):
    value = {"on_unreached": "abstain", "class_prior": "labeled", "abstain_below": "0.5"}.get(
        name, "3"
    )
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
    out = capsys.readouterr().out
    assert all(word in out for word in ("--json", "--na", ".xlsx", ".gz", ".zst"))


def test_advice_in_words_of_the_command_line():
    say = "raise graph_neighbors, use graph='pruned' or sigma=0.25. A graph of n_jobs_x stays."
    assert as_options(say) == (
        "raise --graph-neighbors, use --graph pruned or --sigma 0.25. A graph of n_jobs_x stays."
    )


def test_every_parameter_is_known_to_the_translation():
    for name in set(PARAMETERS) - {"neighbors"}:  # an ordinary word, which no advice sets
        assert as_options(f"{name}='x'") == f"--{name.replace('_', '-')} x"


def test_links_are_options_too():
    assert as_options("must_link ties, cannot_link cuts") == "--must-link ties, --cannot-link cuts"


def test_rows_are_counted_from_one():
    assert as_options("2 of 9 rows (the first is row 4)") == "2 of 9 rows (the first is row 5)"
