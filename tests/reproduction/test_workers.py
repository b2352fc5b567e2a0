"""Processes that measure: results, failures, deaths, threads, and who outlives whom."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import cheap_experiment as cheap
from manifoldknn.reproduction import workers
from manifoldknn.reproduction.experiment import Cell, Plan
from manifoldknn.reproduction.workers import Task

CELLS = cheap.cells(Plan())
TASKS = [Task(cheap.PLACE, cell, Plan()) for cell in CELLS]


def outcomes(tasks, n_workers=2, *, one_thread=True):
    return [o for o in workers.outcomes(tasks, n_workers, one_thread=one_thread) if o is not None]


def without_times(rows):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def test_every_task_is_answered_as_if_measured_here():
    found = {outcome.task.cell: outcome for outcome in outcomes(TASKS)}
    assert sorted(found, key=str) == sorted(CELLS, key=str)
    for cell, outcome in found.items():
        expected = without_times(cheap.measure(cell, Plan()))
        assert without_times(outcome.rows) == expected
        assert all(type(row["ok"]) is bool for row in outcome.rows)
        assert outcome.error == ""


def test_failures_and_deaths_are_told_and_the_others_go_on(monkeypatch):
    monkeypatch.setenv("CHEAP_FAIL", "shared3")
    monkeypatch.setenv("CHEAP_DIE", "shared5")
    found = {outcome.task.cell.key: outcome for outcome in outcomes(TASKS)}
    assert len(found) == len(TASKS)
    failed = {key for key, outcome in found.items() if outcome.rows is None}
    assert failed == {("shared", 3), ("shared", 5)}
    assert found["shared", 3].error == "RuntimeError: as wished"
    assert "cheap_experiment.py" in found["shared", 3].details
    assert found["shared", 5].error == "its process ended (exit code 7)"


def test_modules_that_cannot_be_imported_fail_by_name():
    (outcome,) = outcomes([Task("no_such_experiment:X", Cell("x", ()), Plan())], 1)
    assert outcome.rows is None
    assert "no_such_experiment" in outcome.error


def test_one_thread_each(monkeypatch, tmp_path):
    monkeypatch.setenv("CHEAP_LOG", str(tmp_path / "log"))
    before = dict(os.environ)
    outcomes(TASKS[:2])
    assert dict(os.environ) == before
    assert {line.split()[4] for line in (tmp_path / "log").read_text().splitlines()} == {"1"}


def test_a_worker_outlives_neither_the_block_nor_its_parent(monkeypatch, tmp_path):
    log = tmp_path / "log"
    monkeypatch.setenv("CHEAP_LOG", str(log))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    script = (
        "import cheap_experiment as cheap\n"
        "from manifoldknn.reproduction.experiment import Plan\n"
        "from manifoldknn.reproduction.workers import Task, outcomes\n"
        "tasks = [Task(cheap.PLACE, c, Plan()) for c in cheap.cells(Plan())] * 10000\n"
        "for _ in outcomes(tasks, 2, one_thread=True):\n"
        "    pass\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    assert wait_for(lambda: log.exists() and len(pids(log)) == 2)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_for(lambda: not any(alive(pid) for pid in pids(log)))
    log.unlink()
    with closing(workers.outcomes(TASKS, 2, one_thread=True)) as found:
        next(outcome for outcome in found if outcome is not None)
    assert wait_for(lambda: not any(alive(pid) for pid in pids(log)))


def pids(log):
    return {int(line.split()[3]) for line in log.read_text().splitlines() if line.count(" ") == 4}


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


if not Path("/proc/self/stat").exists():
    pytest.skip("needs /proc to look at processes", allow_module_level=True)
