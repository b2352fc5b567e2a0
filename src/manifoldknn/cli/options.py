"""The options of the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import manifoldknn
from manifoldknn.base.parameters import GRAPHS, ON_UNREACHED, VOTES
from manifoldknn.cli.json_text import fail

FORMATS = ("csv", "tsv", "xlsx", "parquet", "arrow", "npy", "npz")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and as JSON if that is wanted."""

    given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and remember what was given."""
        self.given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        fail(f"{message} (see {self.prog} --help)", 2, "--json" in self.given)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command ``manifoldknn``.

    >>> options = build_parser().parse_args(["classify", "a.csv", "--label", "y", "--alpha", "0.9"])
    >>> options.command, options.alpha, options.graph_neighbors
    ('classify', 0.9, None)
    """
    parser = _Parser(
        prog="manifoldknn",
        description="Label a whole table from a handful of labels.",
        epilog="Exit codes: 0 done, 1 something unforeseen, 2 input or options to correct, "
        "130 interrupted. Nothing is sent anywhere.",
    )
    parser.add_argument(
        "--version", action="version", version=f"manifoldknn {manifoldknn.__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _classify(commands)
    _predict(commands)
    suggest = _learning(commands, "suggest", "name the rows whose labels would help most")
    suggest.add_argument("-n", type=_positive, default=20, metavar="N", help="how many rows [20]")
    check = _learning(commands, "check", "list labels that their neighbourhood contradicts")
    check.add_argument("-n", type=_positive, default=None, metavar="N", help="at most so many")
    for listing in (suggest, check):
        _output(listing, "write the list to this CSV file instead of the screen")
    _learning(
        commands, "inspect", "look the graph over: islands, hubs, reach of the labels, advice"
    )
    _reproduce(commands)
    return parser


_NEW_COLUMNS = (
    "New columns: predicted; confidence, how probable it is (with --vote neighbors, its share of "
    "the vote); margin, confidence minus that of the next class, below 0 where a given label is "
    "contradicted; off_manifold, above 1 where a row is odder than 99 % of rows; unreached, where "
    "no label reaches a row: its confidence and margin are 0."
)


def _classify(commands: Any) -> None:
    parser = _learning(commands, "classify", "label every row of a file")
    parser.epilog = _NEW_COLUMNS
    _output(parser, "file to write [FILE with -labelled before its suffix]; - for standard output")
    parser.add_argument("--report", metavar="HTML", help="also write a page to look at")
    parser.add_argument("--save", metavar="MODEL", help="also save the model, for predict")
    parser.add_argument("--prefix", default="", help="put this before the names of new columns")
    parser.add_argument(
        "-n", type=_positive, default=20, metavar="N", help="rows to suggest in the report [20]"
    )
    parser.add_argument(
        "--no-validate", dest="validate", action="store_false",
        help="leave out the accuracy to expect and the check of labels",
    )  # fmt: skip


def _predict(commands: Any) -> None:
    text = "label the rows of a new file with a saved model"
    parser = commands.add_parser("predict", help=text, description=text, epilog=_NEW_COLUMNS)
    parser.add_argument("model", metavar="MODEL", help="file that classify --save wrote")
    _input(parser)
    _output(parser, "file to write [FILE with -labelled before its suffix]; - for standard output")
    parser.add_argument("--prefix", default="", help="put this before the names of new columns")
    _speech(parser)


def _reproduce(commands: Any) -> None:
    text = "make the tables and figures of the paper, beside the published numbers"
    parser = commands.add_parser("reproduce", help=text, description=text)
    parser.add_argument(
        "ids", nargs="*", metavar="ID",
        help="which: fig1 to fig9, tab4 to tab7, fig10-11, fig12 [all; with --resume: as begun]",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="fewer runs, smaller sizes: minutes")
    parser.add_argument(
        "--out", metavar="DIR", help="folder to write [reproduction, or reproduction-quick]"
    )
    parser.add_argument(
        "--jobs", type=_positive, metavar="N", help="processes side by side [all cores]"
    )
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="first seed [0]")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run that the folder holds"
    )
    _speech(parser)


def _learning(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Add a command that reads a file with labels and fits."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    _input(parser)
    parser.add_argument("--label", required=True, metavar="COLUMN", help="column of labels")
    parser.add_argument("--id", metavar="COLUMN", help="column that names the rows")
    columns = parser.add_argument_group("columns")
    columns.add_argument(
        "--features", nargs="+", metavar="COLUMN", help="use only these [all but label and id]"
    )
    columns.add_argument("--drop", nargs="+", metavar="COLUMN", help="leave these out")
    columns.add_argument(
        "--no-scale", dest="scale", action="store_false", help="take numbers as they are"
    )
    columns.add_argument(
        "--na", nargs="+", metavar="TEXT",
        help="further texts that mean 'missing', as an empty cell, NA, n.d. and #DIV/0! do",
    )  # fmt: skip
    columns.add_argument(
        "--unlabeled",
        metavar="TEXT",
        help="text that means 'no label', as an empty cell does; '': only empty cells do "
        "[-1 too, if all labels are whole numbers]",
    )
    links = parser.add_argument_group("links by hand")
    for kind, text in (("must", "one class"), ("cannot", "different classes")):
        links.add_argument(
            f"--{kind}-link", metavar="FILE",
            help=f"CSV with two columns: ids (without --id, numbers from 1) of rows of {text}",
        )  # fmt: skip
    _parameters(parser.add_argument_group("parameters of the method (see the documentation)"))
    _speech(parser)
    return parser


def _input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="CSV, TSV, Parquet, Arrow, NPY, NPZ; - stdin")
    parser.add_argument("--format", choices=FORMATS, help="format of FILE [by its suffix; csv]")
    parser.add_argument("--delimiter", metavar="CHAR", help="separator of a CSV file [found out]")
    parser.add_argument(
        "--encoding", metavar="NAME", help="of a CSV file, such as cp1252 [found out]"
    )


def _output(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--out", metavar="FILE", help=text)
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def _speech(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _parameters(group: Any) -> None:
    """Add an option for every parameter: None where it is not given, so that defaults hold."""

    def add(name: str, **settings: Any) -> None:
        spellings = [f"--{name.replace('_', '-')}"]
        if "_" in name:
            spellings.append(f"--{name}")
        group.add_argument(*spellings, dest=name, **settings)

    group.add_argument(
        "--as-published", action="store_true",
        help="the method as the paper has it: --vote neighbors --graph full --alpha 0.99, "
        "where these are not given",
    )  # fmt: skip
    add("vote", choices=VOTES, help="who votes: class densities, or labelled rows [classes]")
    add("n_neighbors", type=int, metavar="N", help="labelled rows that vote or are named [5]")
    add("graph", choices=GRAPHS, help="pairs that are linked [pruned]")
    add("graph_neighbors", type=int, metavar="N", help="neighbours in the graph [10]")
    add("sigma", type=_number, help="width of the kernel [auto]")
    add("alpha", type=_number, help="strength kept per step of the walk [auto]")
    add("sharpness", type=_number, help="power of the densities [auto: from hidden labels]")
    add("partner", choices=("forest", "none"), help="another classifier that has "
        "a say [forest from 5 labels: per class, on average]")  # fmt: skip
    add("class_prior", type=_prior, metavar="P",
        help="how common classes are: equal; labeled, for labels of rows drawn at random; or "
        "shares, such as cat=0.7,dog=0.3 or 0.7,0.3 in the order of classes [equal]")  # fmt: skip
    add("tree_depth", type=int, metavar="N", help="levels of the strengthened tree [2]")
    add("theta", type=float, help="strength of that tree [0.1]")
    add("metric", help="distance between rows [euclidean]")
    add("neighbors", choices=("auto", "exact", "inverted"), help="search [auto]")
    add("on_unreached", choices=ON_UNREACHED, help="unreached rows [nearest]")
    add("tol", type=float, help="accuracy of the walk [1e-3]")
    add("max_iter", type=int, metavar="N", help="most iterations [1000]")
    add("n_jobs", type=int, metavar="N", help="threads [all cores]")
    add("device", help="auto (the CPU), cpu, cuda, cuda:N or mps [auto]")
    add("random_state", type=int, metavar="SEED", help="seed of the search [fixed]")


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, at least 1")
    return number


def _seed(text: str) -> int:
    if not text.isdigit() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 0 to 2147483647")
    return int(text)


def _number(text: str) -> float | str:
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number or auto") from None


def _prior(text: str) -> Any:
    """Return a word, shares in the order of classes, or shares by the names of classes."""
    if text in ("equal", "labeled"):
        return text
    try:
        if "=" not in text:
            return [float(part) for part in text.split(",")]
        pairs = [part.rsplit("=", 1) for part in text.split(",")]
        shares = {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        shares = {}
    if len(shares) != text.count(",") + 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be equal, labeled, or shares such as cat=0.7,dog=0.3 or 0.7,0.3"
        )
    return shares
