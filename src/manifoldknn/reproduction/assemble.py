"""From stored cells to what is read: a CSV file, tables and a figure of each experiment.

The same cells give the same bytes, in whatever order, by however many processes and with however
many interruptions they were measured.
"""

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manifoldknn.base.atomic import replaced_file
from manifoldknn.reproduction.experiment import Experiment, Row, Table, Words
from manifoldknn.reproduction.runner import cells_of
from manifoldknn.reproduction.store import Store

_DPI = 110  # sharp on a page of ordinary width; the PDF is there for print
_STYLE = Path(__file__).parent / "figures" / "paper.mplstyle"
# Neither dates nor versions: the same picture is the same file.
_PNG_DATA: dict[str, Any] = {"Software": None}
_PDF_DATA: dict[str, Any] = {"Creator": None, "Producer": None, "CreationDate": None}


@dataclass
class Assembled:
    """An experiment as the report shows it: no rows if cells are missing, and why in `problems`."""

    experiment: Experiment
    n_cells: int = 0
    n_missing: int = 0
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    headline: Table | None = None
    findings: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    png: bytes = b""
    problems: list[str] = field(default_factory=list)


def csv_bytes(rows: list[Row], columns: list[str]) -> bytes:
    r"""Return rows as CSV in which every number can be read back exactly; None is empty.

    >>> csv_bytes([{"k": 1, "error": 0.1 + 0.2, "tuned": True, "note": None}],
    ...           ["k", "error", "tuned", "note"])
    b'k,error,tuned,note\n1,0.30000000000000004,true,\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:  # floats are written by their repr, None as nothing
        values = [row[name] for name in columns]
        writer.writerow([str(v).lower() if isinstance(v, bool) else v for v in values])
    return text.getvalue().encode()


def assemble(experiment: Experiment, store: Store) -> Assembled:
    """Write the CSV file and the figure of an experiment into ``csv`` and ``figures``.

    One that lacks cells has neither file, and says so; one whose tables or figure cannot be made
    has the CSV.
    """
    made = Assembled(experiment)
    cells = cells_of(experiment, store)
    found = [stored for cell in cells if (stored := store.load(experiment, cell)) is not None]
    made.n_cells, made.n_missing = len(cells), len(cells) - len(found)
    made.seconds = sum(stored.seconds for stored in found)
    if made.n_missing:
        made.problems.append(f"{made.n_missing} of {made.n_cells} cells could not be measured")
        made.differences, made.notes = _said(experiment.differences), _said(experiment.notes)
        return made
    made.rows = rows = [row for stored in found for row in stored.rows]
    _write(store.folder / "csv" / f"{experiment.name}.csv",
           csv_bytes(rows, list(experiment.columns)))  # fmt: skip
    with _told(made, "its tables could not be made"):
        made.tables = list(experiment.tables(rows))
        made.findings = _said(experiment.findings, rows)
        made.differences = _said(experiment.differences, rows)
        made.notes = _said(experiment.notes, rows)
        if experiment.headline is not None:
            made.headline = experiment.headline(rows)
    if experiment.draw is not None:
        with _told(made, "its figure could not be drawn"):
            made.png, pdf = _pictures(experiment.draw, rows)
            _write(store.folder / "figures" / f"{experiment.name}.png", made.png)
            _write(store.folder / "figures" / f"{experiment.name}.pdf", pdf)
    return made


@contextmanager
def _told(made: Assembled, problem: str) -> Iterator[None]:
    """Note what fails in the block, and go on."""
    try:
        yield
    except Exception as error:
        made.problems.append(f"{problem} ({type(error).__name__}: {error})")


def _said(words: Words, rows: list[Row] | None = None) -> list[str]:
    """Return sentences; those that are made of rows only where there are rows."""
    if not callable(words):
        return list(words)
    return [] if rows is None else list(words(rows))


def _pictures(draw: Callable[[list[Row]], Any], rows: list[Row]) -> tuple[bytes, bytes]:
    import matplotlib as mpl

    # From the defaults on, so that nobody's own settings show in the figures.
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rc_file(_STYLE, use_default_template=False)
        figure = draw(rows)
        png, pdf = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", dpi=_DPI, metadata=_PNG_DATA)
        figure.savefig(pdf, format="pdf", metadata=_PDF_DATA)
        figure.clear()
    return png.getvalue(), pdf.getvalue()


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as file:
        file.write(data)
