"""The command ``manifoldknn reproduce``: check, measure, assemble, report."""

import argparse
import importlib.util
import json
import os
import shlex
import sys
from pathlib import Path

from joblib import cpu_count

from manifoldknn.datasets import load_paper
from manifoldknn.reproduction.assemble import Assembled, assemble
from manifoldknn.reproduction.experiment import PLACES, Experiment, Plan, load, select
from manifoldknn.reproduction.page import write_reproduction
from manifoldknn.reproduction.runner import cells_of, duration, measure_cells
from manifoldknn.reproduction.store import Store, only_run


def reproduce(options: argparse.Namespace) -> int:
    """Make the tables and figures of the paper; 0 done, 1 some cell failed, 130 interrupted.

    Raises ValueError if an experiment, the folder or a data set is not as it should be, ImportError
    if matplotlib is missing; nothing was measured then.
    """
    os.environ.setdefault("MPLBACKEND", "agg")  # no window is ever opened
    plan = Plan(quick=options.quick, seed=options.seed)
    folder = Path(options.out or f"reproduction{'-quick' * plan.quick}")
    jobs = options.jobs or cpu_count()  # in a container not all there are
    wanted = list(options.ids)
    if options.resume and not wanted:
        wanted = Store.begun(folder)
    names = select(wanted)
    store = Store.open(folder, plan, names, resume=options.resume)
    experiments = {PLACES[name]: load(name) for name in select(store.names)}
    _check_needs(list(experiments.values()), store)
    with only_run(folder):
        store.begin()
        return _run(experiments, store, jobs, options)


def _run(
    experiments: dict[str, Experiment], store: Store, jobs: int, options: argparse.Namespace
) -> int:
    """Measure, assemble and report; say how to go on where that did not come to its end."""
    names = [experiment.name for experiment in experiments.values()]
    again = _command(options, names, store.folder, resume=True)
    try:
        measure_cells(experiments, store, jobs=jobs, quiet=options.quiet)
    except KeyboardInterrupt:
        stored = [store.load(e, c) for e in experiments.values() for c in cells_of(e, store)]
        print(
            f"manifoldknn: interrupted: {len(stored) - stored.count(None)} of {len(stored)} cells "
            f"are stored; go on with: {again}",
            file=sys.stderr,
        )
        return 130
    parts = [assemble(experiment, store) for experiment in experiments.values()]
    # The last part of the folder only: where it lies on this machine is nobody's business.
    command = _command(options, list(options.ids), Path(store.folder.name), resume=False)
    page = write_reproduction(parts, store, jobs=jobs, command=command)
    _tell(parts, page, options, again)
    return 1 if any(part.problems for part in parts) else 0


def _command(options: argparse.Namespace, names: list[str], folder: Path, *, resume: bool) -> str:
    words = ["manifoldknn", "reproduce", *names]
    words += ["--quick"] * options.quick
    words += ["--seed", str(options.seed)] if options.seed else []
    words += ["--out", str(folder)] if options.out else []
    words += ["--jobs", str(options.jobs)] if options.jobs else []
    words += ["--resume"] * resume
    return shlex.join(words)


def _check_needs(experiments: list[Experiment], store: Store) -> None:
    """Make sure that everything is there before anything is measured."""
    if any(e.draw is not None for e in experiments) and not importlib.util.find_spec("matplotlib"):
        raise ImportError("Figures need matplotlib: pip install 'manifoldknn[plots]'")
    needed = dict.fromkeys(
        name
        for e in experiments
        if e.datasets and any(store.load(e, cell) is None for cell in cells_of(e, store))
        for name in e.datasets
    )
    missing: dict[str, str] = {}
    for name in needed:
        try:
            load_paper(name)
        except FileNotFoundError as error:
            missing[name] = str(error)
    if missing:
        first, *others = missing
        also = f" The same goes for: {', '.join(others)}." if others else ""
        raise ValueError(missing[first] + also)


def _tell(parts: list[Assembled], page: Path, options: argparse.Namespace, again: str) -> None:
    if options.json:
        data = {
            "experiments": [
                {"name": part.experiment.name, "cells": part.n_cells, "missing": part.n_missing,
                 "seconds": round(part.seconds, 2), "problems": part.problems}
                for part in parts
            ],
            "report": str(page),
        }  # fmt: skip
        print(json.dumps(data, ensure_ascii=False))
        return
    for part in parts:
        cells = f"{part.n_cells} cell{'s' * (part.n_cells != 1)}"
        state = "; ".join(part.problems) or f"{cells}, {duration(part.seconds)}"
        print(f"{part.experiment.name:<10} {part.experiment.title}: {state}")
    if any(part.n_missing for part in parts):
        print(f"\ntry what is missing again with: {again}")
    print(f"\nwritten     {page}, and csv and figures beside it")
