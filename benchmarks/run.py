"""Measure manifoldknn and its peers, and write the tables.

    python benchmarks/run.py                 every case
    python benchmarks/run.py mnist labels    some of them
    python benchmarks/run.py --quick         small sizes, in under three minutes

Missed targets are reported, not an error: the exit status says only whether everything ran.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import report
from cases import CASES, QUICK
from machine import commit, machine, versions
from measure import Bench, DataMissing
from methods import METHODS

RESULTS = Path(__file__).with_name("results")


def main(arguments=None):
    options = parse(arguments)
    folder = options.out / "quick" if options.quick else options.out
    data = os.environ.get("MANIFOLDKNN_DATA")
    skipped = []
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(
            data=Path(data) if data else None,
            scratch=Path(scratch),
            quick=options.quick,
            peers=not options.ours_only,
            timeout=options.timeout,
        )
        records = report.read(folder)
        warm_up(bench)
        done = {}
        for case in options.cases or (QUICK if options.quick else CASES):
            bench.say(f"== {case} ==")
            try:
                result = CASES[case](bench)
            except DataMissing as missing:
                bench.say(f"{case} is skipped: {missing}")
                skipped.append(case)
                continue
            where = {**machine(), "commit": commit(), "versions": versions()}
            when = datetime.now(UTC).strftime("%Y-%m-%d")
            done[case] = report.record(case, result, where, when)
            # After every case, so that an interrupted run keeps what it has.
            records.update(done)
            report.write(folder, records, options.quick)
            if case == "growth":
                draw(bench, result.rows, folder / "growth.png")
    if done:
        print(f"\n{report.summary(done)}\n\nTables: {folder / 'README.md'}")
    if skipped:
        print(f"\nSkipped for want of data: {', '.join(skipped)}", file=sys.stderr)
    return 1 if skipped else 0


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes; writes to OUT/quick")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the tables")
    parser.add_argument("--ours-only", action="store_true", help="leave out the peers")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds per measurement")
    options = parser.parse_args(arguments)
    unknown = [case for case in options.cases if case not in CASES]
    if unknown:
        parser.error(f"no case named {', '.join(unknown)}: there are {', '.join(CASES)}")
    return options


def warm_up(bench):
    """Import everything once, unmeasured: whoever came first would pay for the disk."""
    bench.say("== warm-up, not measured ==")
    by_modules = {METHODS[method].modules: method for method in bench.wanted(*METHODS)}
    for method in by_modules.values():
        bench.measure(method, "import only")


def draw(bench, rows, path):
    try:
        from plot import draw_growth

        draw_growth(rows, path)
    except ModuleNotFoundError as missing:
        bench.say(f"no plot: {missing.name} is not installed")


if __name__ == "__main__":
    sys.exit(main())
