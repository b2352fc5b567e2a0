import sys
from pathlib import Path

import pytest

# Scripts, not a package.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import table


def made(folder):
    folder.mkdir()
    return folder


def test_the_size_in_memory_is_what_pandas_reports(tmp_path):
    pandas = pytest.importorskip("pandas")
    size = table.make_table(tmp_path / "t.csv", 300)
    frame = pandas.read_csv(tmp_path / "t.csv", dtype={"label": object})
    assert size == pytest.approx(frame.memory_usage(index=False, deep=True).sum(), rel=0.02)


def test_every_reading_of_the_peak_is_told():
    found = {"rows": 9, "file": 40e6, "in_memory": 10e6, "baseline": 60e6, "seconds": 1.0}
    text = table.text_of(found | {"peak": 100e6})
    for words in (
        "by the table in memory | 10.0 |",
        "by the file | 2.50 |",
        "table in memory | 4.00",
    ):
        assert words in text
    assert "That is met once the interpreter" in text
    assert "It is not met with them" in text
    text = table.text_of(found | {"peak": 130e6})
    assert "It is not met once the interpreter" in text


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are compared as Linux counts them")
def test_memory_grows_with_the_table(tmp_path):
    """Between two sizes, so that what any table needs, such as imports, does not count.

    The benchmark holds the bound itself, at 100,000 rows; at these sizes freed memory that the
    system has not taken back yet makes some difference, more so on a busy machine.
    """
    small, large = (
        table.measure(made(tmp_path / str(n_rows)), n_rows) for n_rows in (20_000, 60_000)
    )
    grown = large["peak"] - small["peak"]
    assert 0 < grown <= 1.5 * table.MOST * (large["in_memory"] - small["in_memory"])
    assert "60,000" in table.text_of(large)
