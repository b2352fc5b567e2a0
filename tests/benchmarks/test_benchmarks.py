import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# Scripts that import one another, not a package.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import cases
import measure
import plot
import report
from methods import METHODS
from samples import hide_labels, load, save_made, save_subset
from stages import timed_stages
from targets import Target, exponent, ratio

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.device.steps import Steps
from manifoldknn.graph import constrained as graph
from manifoldknn.graph import kernels

ROOT = Path(__file__).parents[2]
WHERE = {
    "processor": "P",
    "cores": "2",
    "memory": "8 GB",
    "system": "S",
    "versions": {"python": "3.11"},
}


class FakeBench(measure.Bench):
    """A bench whose measurements are given: (method, flags) → what one.py would say."""

    def __init__(self, scratch, answer, **kwargs):
        super().__init__(data=Path(), scratch=scratch, **kwargs)
        self.answer = answer

    def file(self, name):
        return Path(name)

    def rows(self, _):
        return 70_000

    def subset(self, name, n_rows):
        return Path(f"{n_rows}-{name}")

    def made(self, n_rows):
        return Path(f"{n_rows}-made")

    def measure(self, method, _="", **flags):
        return {"method": METHODS[method].title, "status": "ok", **self.answer(method, flags)}


def verdicts(result):
    return {target.what: target.verdict for target in result.targets}


# targets


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_exponent_of_a_power_law(power):
    sizes = [5_000, 10_000, 70_000]
    assert exponent(sizes, [3 * n**power for n in sizes]) == pytest.approx(power)


def test_exponent_is_least_squares_on_logarithms():
    rng = np.random.default_rng(0)
    sizes, values = rng.uniform(10, 1e5, 20), rng.uniform(1, 100, 20)
    wanted = np.polyfit(np.log(sizes), np.log(values), 1)[0]
    assert exponent(sizes, values) == pytest.approx(wanted)


@pytest.mark.parametrize("values", [[1.0, None], [1.0, -1.0], [0.0, 1.0], [None, None]])
def test_no_exponent_without_two_positive_values(values):
    assert exponent([10, 20], values) is None


def test_no_exponent_from_one_size():
    assert exponent([10, 10], [1.0, 2.0]) is None


def test_ratio_needs_both():
    assert ratio(1.0, 4.0) == 0.25
    assert ratio(None, 4.0) is None
    assert ratio(1.0, None) is None
    assert ratio(1.0, 0.0) is None


@pytest.mark.parametrize(
    ("value", "limit", "strict", "verdict"),
    [
        (4.6, 4.6, False, "met"),
        (4.7, 4.6, False, "MISSED"),
        (1.5, 1.5, True, "MISSED"),
        (None, 4.6, False, "not measured"),
        (float("nan"), 4.6, False, "not measured"),
        (4.7, None, False, "no target"),
    ],
)
def test_verdict(value, limit, strict, verdict):
    assert Target("error", value, limit, "%", strict).verdict == verdict


def test_numbers_of_a_target_are_readable():
    target = Target("memory", 999.7, 1500, "MB")
    assert (target.measured, target.wanted) == ("1,000 MB", "≤ 1,500 MB")
    assert Target("ratio", 0.2512, 1 / 3).measured == "0.251"


# samples


def test_loaded_features_are_float32_in_0_1(tmp_path):
    X = np.array([[0, 5, 7], [255, 10, 7]], dtype=np.uint8)
    np.savez(tmp_path / "a.npz", X=X, y=[0, 1])
    divided, _ = load(tmp_path / "a.npz", divide_by=255)
    scaled, _ = load(tmp_path / "a.npz")
    assert divided.dtype == scaled.dtype == np.float32
    np.testing.assert_allclose(divided, X / 255, rtol=1e-6)
    np.testing.assert_array_equal(scaled, [[0, 0, 0], [1, 1, 0]])


def test_labels_are_drawn_per_class_in_order():
    y = np.tile([1, 0, 2], 20)
    hidden = hide_labels(y, per_class=3)
    rng = np.random.default_rng(0)
    rows = [rng.choice(np.flatnonzero(y == c), 3, replace=False) for c in range(3)]
    assert set(np.flatnonzero(hidden >= 0)) == set(np.concatenate(rows))
    assert (hidden[hidden >= 0] == y[hidden >= 0]).all()


def test_share_of_labels():
    assert (hide_labels(np.zeros(80, int), share=0.125) >= 0).sum() == 10


def test_subset_keeps_rows_and_labels_together(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(50)[:, None], y=np.arange(50))
    with np.load(save_subset(tmp_path / "a.npz", 20, tmp_path / "b.npz")) as file:
        assert len(set(file["y"])) == 20
        np.testing.assert_array_equal(file["X"][:, 0], file["y"])


# measure


def run_python(code, timeout=20):
    return measure.run_process([sys.executable, "-c", code], timeout)


def test_a_process_reports_in_its_last_line():
    row = run_python("""print('chatter'); print('{"status": "ok", "peak_mb": 5}')""")
    assert row["peak_mb"] == 5
    assert row["seconds"] > 0


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise ValueError('no luck')", "failed: ValueError: no luck"),
        ("pass", "failed: no output"),
        ("import os; os.kill(os.getpid(), 9)", "failed: killed by signal 9"),
        ("""print('{"status": "not installed: x", "peak_mb": 5}')""", "not installed: x"),
    ],
)
def test_a_process_that_fails_is_a_status_and_no_numbers(code, status):
    assert run_python(code) == {"status": status}


def test_a_process_that_takes_too_long():
    assert run_python("import time; time.sleep(60)", 0.2) == {"status": "timed out after 0.2 s"}


def test_a_peer_that_is_not_installed_says_so(tmp_path):
    # A module of that name that cannot be found stands in for one that is not there.
    (tmp_path / "graphlearning.py").write_text("raise ModuleNotFoundError(name=__name__)\n")
    done = subprocess.run(
        [sys.executable, str(measure.ONE), "gl-poisson"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["status"] == "not installed: graphlearning"


def test_missing_data_are_named(tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(measure.DataMissing, match=r"covtype\.npz .*MANIFOLDKNN_DATA"):
            measure.Bench(folder, tmp_path).file("covtype.npz")


# cases


def numbers(seconds, **more):
    return {"seconds": seconds, "peak_mb": 900.0, "error_pct": 4.0, "compilers": [], **more}


def test_mnist_compares_with_the_faster_graphlearning(tmp_path):
    seconds = {
        "ours": 10.0,
        "sklearn": 79.0,
        "sklearn-long": 90.0,
        "gl-poisson": 40.0,
        "gl-laplace": 29.0,
    }
    result = cases.mnist(FakeBench(tmp_path, lambda method, _: numbers(seconds[method])))
    assert [row["ratio"] for row in result.rows] == [1.0, 7.9, 9.0, 4.0, 2.9]
    assert list(verdicts(result).values()) == ["MISSED", "MISSED", "met", "met", "met"]


def test_mnist_without_peers_is_still_a_table(tmp_path):
    def answer(method, _):
        return numbers(10.0) if method == "ours" else {"status": "not installed: x"}

    result = cases.mnist(FakeBench(tmp_path, answer))
    assert list(verdicts(result).values())[:3] == ["not measured", "not measured", "met"]
    table = report.rows_table(result.rows)
    assert table.count("not installed: x") == 4
    assert "x" in report.csv_text(result.rows)


def test_a_compiler_is_noticed(tmp_path):
    answer = numbers(1.0, import_s=1.6, compilers=["numba"])
    result = cases.importing(FakeBench(tmp_path, lambda *_: answer))
    assert list(verdicts(result).values()) == ["MISSED", "MISSED"]


def test_growth_is_fitted_raw_and_net_of_the_import(tmp_path):
    def answer(_, flags):
        n = int(flags["data"].name.split("-")[0]) if flags else 0
        return numbers(1.0 + n / 1000, peak_mb=100.0 + n / 50)

    result = cases.growth(FakeBench(tmp_path, answer))
    time, memory, net_time, net_memory = (target.value for target in result.targets)
    assert net_time == pytest.approx(1.0)
    assert net_memory == pytest.approx(1.0)
    assert 0.5 < memory < time < 1
    assert max(row["n"] for row in result.rows if "Graph" in row["method"]) == 20_000


def test_labels_are_compared_by_their_fits(tmp_path):
    def answer(method, flags):
        return {"fit_s": 4 * flags["share"] if method == "ours" else 0.1}

    result = cases.labels(FakeBench(tmp_path, answer))
    assert [target.value for target in result.targets] == pytest.approx([2.0, 20.0, 2.0, 2.0])
    assert list(verdicts(result).values()) == ["met", "MISSED", "met", "met"]


def test_each_share_of_many_labels_has_its_time(tmp_path):
    def answer(_, flags):
        return numbers(1000 * flags["share"] if "share" in flags else 50.0)

    result = cases.many(FakeBench(tmp_path, answer))
    assert [target.value for target in result.targets] == pytest.approx([2, 10, 100, 500])
    assert [row.get("share_pct") for row in result.rows] == [None, 10, 1, 10, 50]
    assert list(verdicts(result).values()) == ["MISSED", "no target", "no target", "MISSED"]


@pytest.mark.parametrize(("other", "verdict"), [("a", "met"), ("b", "MISSED")])
def test_seeds_compare_answers(tmp_path, other, verdict):
    def answer(_, flags):
        return numbers(1.0, digest="a" if flags["options"]["n_jobs"] != 2 else other)

    assert [*verdicts(cases.seeds(FakeBench(tmp_path, answer))).values()] == [verdict]


def test_accuracy_compares_labels_with_the_exact_solution(tmp_path):
    def answer(_, flags):
        found = np.zeros(1000, int)
        found[: 0 if "tol" in flags["options"] else 2] = 1
        np.save(flags["labels_to"], found)
        return numbers(1.0, error_pct=4.2 if flags["options"] else 4.0)

    result = cases.accuracy(FakeBench(tmp_path, answer))
    assert [target.value for target in result.targets] == pytest.approx([0.2, 0.2])
    assert list(verdicts(result).values()) == ["MISSED", "met"]


def test_the_reference_of_accuracy_is_double_in_all_respects(tmp_path):
    asked = []

    def answer(_, flags):
        asked.append((flags["double"], flags["options"]))
        np.save(flags["labels_to"], np.zeros(5, int))
        return numbers(1.0, error_pct=4.0)

    cases.accuracy(FakeBench(tmp_path, answer))
    assert asked[0] == (None, {})
    assert asked[1] == (None, {"neighbors": "exact"})
    assert asked[5] == (True, {"neighbors": "exact", "tol": 1e-9})
    assert asked[-1] == (None, {"tol": 1e-9})  # of all rows


def test_candidates_are_compared_with_thirty(tmp_path):
    def answer(_, flags):
        return numbers(1.0, error_pct=4.0 + 0.1 * (30 - flags["candidates"]))

    result = cases.candidates(FakeBench(tmp_path, answer))
    assert [row["candidates"] for row in result.rows] == 2 * [10, 15, 20, 30]
    assert [target.value for target in result.targets] == pytest.approx(2 * [2.0, 1.5, 1.0])


@pytest.mark.parametrize(("spanning", "verdict"), [(3.0, "met"), (9.0, "MISSED")])
def test_share_of_the_spanning_tree(tmp_path, spanning, verdict):
    def answer(*_):
        return numbers(110.0, fit_s=100.0, spanning_s=spanning, joining_s=2.0)

    result = cases.million(FakeBench(tmp_path, answer))
    assert result.targets[0].value == pytest.approx(spanning + 2.0)
    assert result.targets[0].verdict == verdict


def test_a_failed_measurement_leaves_its_targets_unmeasured(tmp_path):
    bench = FakeBench(tmp_path, lambda *_: {"status": "failed: no luck"})
    for name, case in cases.CASES.items():
        result = case(bench)
        assert set(verdicts(result).values()) <= {"not measured", "no target"}, name
        assert "failed: no luck" in report.rows_table(result.rows)


# stages


def test_stages_are_timed_and_everything_is_as_before_afterwards():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 100.0])
    y = np.where(np.arange(120) % 10 == 0, np.arange(120) // 60, -1)
    before = graph.CANDIDATES, kernels.in_spanning_forest, Steps.walk
    with timed_stages(12) as seconds:
        ManifoldKNNClassifier().fit(X, y)
        assert graph.candidate_count("pruned", 10, 120) == 12
    assert set(seconds) == {
        "neighbours_s",
        "graph_s",
        "spanning_s",
        "joining_s",
        "walk_s",
        "hidden_s",
    }
    assert all(value > 0 for value in seconds.values())
    assert seconds["spanning_s"] + seconds["joining_s"] < seconds["graph_s"]
    assert (graph.CANDIDATES, kernels.in_spanning_forest, Steps.walk) == before


def test_made_rows_have_ten_classes_in_thirty_pieces(tmp_path):
    with np.load(save_made(3000, tmp_path / "made.npz")) as file:
        X, y = file["X"], file["y"]
    assert X.shape == (3000, 32)
    assert X.dtype == np.float32
    assert sorted(set(y.tolist())) == list(range(10))
    assert np.bincount(y).min() > 200


# report


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "table.csv"
    report.write_text(path, "old")

    def fail_halfway():
        with report.atomic(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_tables_have_only_columns_with_something_in_them():
    rows = [{"method": "a|b", "seconds": 1.234, "ratio": None, "digest": "x", "status": "ok"}]
    assert report.rows_table(rows).splitlines() == [
        "| method | seconds, all | status |",
        "| --- | --- | --- |",
        r"| a\|b | 1.23 | ok |",
    ]


def test_measuring_one_case_again_keeps_the_others(tmp_path):
    def kept(case, when, value):
        result = cases.Result([{"method": "m", "seconds": value}], [Target("time", value, 3, "s")])
        return report.record(case, result, WHERE, when)

    report.write(tmp_path, {"covtype": kept("covtype", "2026-01-01", 2.0)})
    records = report.read(tmp_path)
    records["mnist"] = kept("mnist", "2026-02-01", 4.0)
    report.write(tmp_path, records)

    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| mnist | time | 4 s | ≤ 3 s / MISSED |" in page
    assert "| covtype | time | 2 s | ≤ 3 s / met |" in page
    assert (
        page.count("Measured on 2026-01-01: commit unknown; P, 2 cores, 8 GB, S; python 3.11.") == 1
    )
    assert page.count("Measured on 2026-02-01") == 1
    with open(tmp_path / "covtype.csv", encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [{"method": "m", "seconds": "2"}]
    assert "MISSED" in report.summary(records)


def test_plot_of_growth(tmp_path):
    rows = [
        {"method": m, "n": n, "seconds": 0.1 + n / 1e3, "peak_mb": 9.0 + n}
        for m in ("ours", "peer")
        for n in (0, 100, 200)
    ]
    rows.append({"method": "peer", "n": 400, "status": "failed"})
    plot.draw_growth(rows, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


# all of it


def test_a_small_run_from_end_to_end(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 100)
    X = np.clip(rng.normal(60 * y[:, None], 6, (400, 12)), 0, 255).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", X=X, y=y)
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "MANIFOLDKNN_DATA": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "mnist", "growth", "covtype"]
    done = subprocess.run(
        [*command, "--quick", "--ours-only", "--out", str(tmp_path / "out")],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr  # for covtype.npz, which is not there
    assert "Skipped for want of data: covtype" in done.stderr
    assert "peak memory" in done.stdout
    out = tmp_path / "out" / "quick"
    with open(out / "growth.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["n"] for row in rows] == ["0", "100", "200", "400"]
    assert {row["status"] for row in rows} == {"ok"}
    assert float(rows[-1]["error_pct"]) < 5
    assert (out / "growth.png").exists()
    assert "| mnist | peak memory |" in (out / "README.md").read_text(encoding="utf-8")
    assert not list(out.glob(".*"))
