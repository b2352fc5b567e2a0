"""The command as its users meet it: what it makes, refuses, and survives."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cheap_experiment as cheap
from manifoldknn.cli.main import main
from manifoldknn.datasets import PAPER_SETS
from manifoldknn.reproduction.experiment import PLACES
from manifoldknn.reproduction.store import only_run

ILLUSTRATIONS = ["fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PLACES, "cheap", cheap.PLACE)
    return tmp_path


def run(capsys, *arguments):
    code = main(["reproduce", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def tables(folder, drop=()):
    """Bytes of every CSV file, timing columns aside."""
    found = {}
    for path in sorted(Path(folder, "csv").iterdir()):
        rows = list(csv.reader(path.read_text().splitlines()))
        keep = [i for i, name in enumerate(rows[0]) if name not in drop]
        whole = "\n".join(",".join(row[i] for i in keep) for row in rows).encode()
        found[path.name] = whole if drop else path.read_bytes()
    return found


def started(*arguments, **environment):
    """Start the command in a process of its own, which knows the cheap experiment."""
    script = (
        "import signal, sys; from manifoldknn.reproduction import experiment\n"
        # A shell that runs the tests in the background has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"experiment.PLACES['cheap'] = {cheap.PLACE!r}\n"
        "from manifoldknn.cli.command import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "reproduce", *arguments]
    path = os.pathsep.join(sys.path)
    return subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": path} | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stored_cells(out):
    return sorted(Path(out).glob("cells/*/[!.]*.json"))


def n_stored(out):
    return len(stored_cells(out))


def killed_and_resumed(arguments, out, *, n_cells, kills, seed, **environment):
    """Kill a run again and again, at random moments after a few more cells; then let it end.

    Goes on until ``kills`` of them fell between the first and the last of ``n_cells`` cells,
    however fast the cells are; kills before and after do no harm. Returns how many cells were
    stored at each kill.
    """
    rng, stored = random.Random(seed), []
    while sum(0 < n < n_cells for n in stored) < kills:
        assert len(stored) < 10 * kills, f"too few kills between the cells: {stored}"
        if n_stored(out) >= n_cells - 1:  # little is left to do: take something away
            for cell in rng.sample(stored_cells(out), k=rng.randrange(2, n_cells)):
                cell.unlink()
        wanted = min(n_stored(out) + rng.randrange(4), n_cells - 1)
        process = started(*arguments, "--out", out, "--resume", **environment)
        while process.poll() is None and n_stored(out) < wanted:
            time.sleep(0.002)
        time.sleep(rng.choice([0.0, 0.01, 0.1, 1.0]) * rng.random())
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            stored.append(n_stored(out))
        else:
            assert process.returncode == 0, process.stderr.read()
        process.stderr.close()
    process = started(*arguments, "--out", out, "--resume", **environment)
    _, err = process.communicate()
    assert process.returncode == 0, err
    return stored


def test_cells_files_and_report_are_made(capsys):
    code, out, err = run(capsys, "cheap", "--jobs", 2)
    assert code == 0
    assert sorted(os.listdir("reproduction")) == [
        "cells",
        "csv",
        "figures",
        "report.html",
        "run.json",
    ]
    assert os.listdir("reproduction/csv") == ["cheap.csv"]
    assert sorted(os.listdir("reproduction/figures")) == ["cheap.pdf", "cheap.png"]
    assert "14 cells" in out
    assert "report.html" in out
    assert "100%  14 of 14 cells" in err


def test_the_report_does_not_tell_where_it_was_made(capsys, tmp_path):
    out = tmp_path / "deep" / "below"
    assert run(capsys, "cheap", "--quick", "--quiet", "--out", out)[0] == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "manifoldknn reproduce cheap --quick --out below" in page
    assert str(tmp_path) not in page
    assert "deep" not in page


def test_json_and_quiet(capsys):
    code, out, err = run(capsys, "cheap", "--quick", "--json", "--quiet", "--out", "o")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert data["report"] == "o/report.html"
    assert data["experiments"][0]["cells"] == 8


def test_tables_are_the_same_for_any_number_of_jobs(capsys):
    for jobs in (1, 3):
        assert run(capsys, "cheap", "--jobs", jobs, "--out", f"j{jobs}")[0] == 0
    assert tables("j1", ["seconds"]) == tables("j3", ["seconds"])
    run(capsys, "cheap", "--seed", 1, "--out", "s")
    assert tables("s", ["seconds"]) != tables("j1", ["seconds"])


def test_going_on_is_asked_for_and_keeps_what_was_begun(capsys):
    assert run(capsys, "fig2", "--out", "o")[0] == 0
    code, _, err = run(capsys, "fig2", "--out", "o")
    assert code == 2
    assert "o holds a run already: go on with it by --resume, or choose another" in err
    before = Path("o/csv/fig2.csv").read_bytes()
    code, out, _ = run(capsys, "fig4", "--out", "o", "--resume")
    assert code == 0
    assert "fig2" in out
    assert "fig4" in out
    assert Path("o/csv/fig2.csv").read_bytes() == before
    code, out, _ = run(capsys, "--out", "o", "--resume")  # as begun, not everything
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:2]] == ["fig2", "fig4"]
    code, _, err = run(capsys, "--out", "o", "--resume", "--quick")
    assert code == 2
    assert "was begun with quick False and not True" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig13"], "no experiment 'fig13' (is it 'fig"),
        (["tab1"], "choose from fig1, fig2"),
        (["fig1", "--out", "file"], "file is a file: choose a folder with --out"),
        (["fig1", "--out", "thesis"], "thesis holds other files and no run"),
    ],
)
def test_wrong_wishes_are_refused_before_anything_is_made(capsys, arguments, words):
    Path("file").write_text("x")
    Path("thesis").mkdir()
    Path("thesis/chapter").write_text("x")
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
    assert sorted(os.listdir()) == ["file", "thesis"]


@pytest.mark.parametrize("wrong", [["--jobs", "0"], ["--jobs", "x"], ["--seed", "-1"]])
def test_wrong_numbers_are_refused(capsys, wrong):
    with pytest.raises(SystemExit) as caught:
        run(capsys, "fig1", *wrong)
    assert caught.value.code == 2


def test_without_matplotlib_nothing_is_begun(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if "matplot" in name else 1)
    code, _, err = run(capsys, "fig1")
    assert code == 2
    assert "pip install 'manifoldknn[plots]'" in err
    assert os.listdir() == []


def spoilt(path, how):
    """Write a file that has the right name and is not the set."""
    spec = PAPER_SETS["banknote"]
    X = np.random.default_rng(0).uniform(size=spec.shape)
    y = np.repeat(np.arange(len(spec.counts)), spec.counts)
    if how == "too few rows":
        X, y = X[:-1], y[:-1]
    if how == "other classes":
        y[0] = 1
    np.savez(path, X=X, y=y)
    if how == "truncated":
        path.write_bytes(path.read_bytes()[:2000])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("truncated", "cannot be read"),
        ("too few rows", "found X of shape (1371, 4), expected X of shape (1372, 4)"),
        ("other classes", "found classes of [761, 611] rows, expected [762, 610]"),
        ("other values", "rows are mislabelled or values are changed"),
    ],
)
def test_a_wrong_data_file_is_refused_by_name(capsys, monkeypatch, folder, how, words):
    needy = replace(cheap.EXPERIMENT, datasets=["banknote"])
    monkeypatch.setattr(cheap, "EXPERIMENT", needy)
    monkeypatch.setenv("MANIFOLDKNN_DATA", str(folder))
    spoilt(folder / "banknote.npz", how)
    code, _, err = run(capsys, "cheap", "fig1", "--out", "o")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert f"{folder / 'banknote.npz'}" in err
    assert words in err
    assert not Path("o").exists()


def test_missing_data_is_told_once_with_what_to_do(capsys, monkeypatch, folder):
    def offline(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    monkeypatch.setenv("MANIFOLDKNN_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    code, _, err = run(capsys, "tab5", "--out", "o")
    assert code == 2
    assert err.startswith("manifoldknn: error: The data set 'usps' is neither in the folder")
    assert "numpy.savez" in err
    assert "The same goes for: segmentation, banknote, pendigits, multifeature, satlog." in err
    assert len(err.splitlines()) == 1
    assert not Path("o").exists()


def test_a_failing_cell_is_named_and_the_rest_is_made(capsys, monkeypatch):
    monkeypatch.setenv("CHEAP_FAIL", "shared3")
    code, out, err = run(capsys, "cheap", "fig2", "--out", "o")
    assert code == 1
    assert "cheap shared 3 failed: RuntimeError: as wished" in err
    assert "1 of 14 cells could not be measured" in out
    assert (
        "try what is missing again with: manifoldknn reproduce fig2 cheap --out o --resume" in out
    )
    assert os.listdir("o/csv") == ["fig2.csv"]
    page = Path("o/report.html").read_text()
    assert "Not complete" in page
    monkeypatch.delenv("CHEAP_FAIL")
    assert run(capsys, "--out", "o", "--resume")[0] == 0
    assert sorted(os.listdir("o/csv")) == ["cheap.csv", "fig2.csv"]


def test_two_runs_do_not_share_a_folder(capsys, folder):
    with only_run(folder / "o"):
        code, _, err = run(capsys, "fig2", "--out", "o")
        assert code == 2
        assert "another run is working in o" in err
        assert os.listdir("o") == []
    assert run(capsys, "fig2", "--out", "o")[0] == 0


def test_interrupted_it_says_how_to_go_on():
    process = started("cheap", "--out", "o", CHEAP_SLEEP="0.3")
    wanted = Path("o/cells/cheap")
    end = time.monotonic() + 60
    while time.monotonic() < end and not (wanted.is_dir() and any(wanted.glob("[!.]*"))):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to all of them
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    lines = err.splitlines()
    assert "cells are stored; go on with: manifoldknn reproduce cheap --out o --resume" in lines[-1]
    assert not any("Traceback" in line for line in lines)
    process = started("cheap", "--out", "o", "--resume")
    assert process.communicate(timeout=120)[1]
    assert process.returncode == 0


def test_killed_at_random_moments_it_ends_with_the_same_tables(capsys):
    assert run(capsys, "cheap", "--quick", "--out", "calm")[0] == 0
    arguments = ["cheap", "--quick", "--jobs", "2"]
    n_cells = n_stored("calm")
    killed_and_resumed(arguments, "wild", n_cells=n_cells, kills=3, seed=0, CHEAP_SLEEP="0.05")
    assert n_stored("wild") == n_cells
    assert tables("wild", ["seconds"]) == tables("calm", ["seconds"])
    assert not list(Path("wild").rglob(".*"))


@pytest.mark.slow
def test_killed_ten_times_on_real_experiments(capsys):
    assert run(capsys, *ILLUSTRATIONS, "--jobs", 1, "--out", "calm")[0] == 0
    n_cells = n_stored("calm")
    stored = killed_and_resumed(ILLUSTRATIONS, "wild", n_cells=n_cells, kills=10, seed=1)
    assert n_stored("wild") == n_cells
    print("cells stored at each kill:", stored)
    assert tables("wild") == tables("calm")
    for path in sorted(Path("calm/figures").iterdir()):
        assert path.read_bytes() == Path("wild/figures", path.name).read_bytes()
