import sys
from pathlib import Path

import pytest

# Scripts, not a package.
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import table


def test_the_size_in_memory_is_what_pandas_reports(tmp_path):
    pandas = pytest.importorskip("pandas")
    size = table.make_table(tmp_path / "t.csv", 300)
    frame = pandas.read_csv(tmp_path / "t.csv", dtype={"label": object})
    assert size == pytest.approx(frame.memory_usage(index=False, deep=True).sum(), rel=0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are compared as Linux counts them")
def test_a_large_table_takes_at_most_six_times_its_size(tmp_path):
    found = table.measure(tmp_path, 40_000)
    beyond = found["peak"] - found["baseline"]
    # What does not grow with the rows, buffers of libraries and threads, weighs more here.
    fixed = 40e6
    assert 0 < beyond - fixed <= table.MOST * found["in_memory"]
    assert "40,000" in table.text_of(found)
