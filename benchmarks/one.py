"""One measurement in this process, reported as one line of JSON.

``run.py`` starts a fresh process of this for every number in the tables. By hand, for a look at
one method::

    python benchmarks/one.py ours --data mnist.npz --divide-by 255 --per-class 10

Without ``--data`` the method is only imported.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import resource
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from methods import METHODS, UNLABELED

COMPILERS = ("numba", "llvmlite", "jax", "torch", "pythran", "numexpr")


def main(arguments=None):
    options = parse(arguments)
    try:
        result = {"status": "ok", **measure(options)}
    except ModuleNotFoundError as error:
        result = {"status": f"not installed: {error.name}"}
    except Exception as error:  # a peer that fails is a row in the table, not the end of the run
        first_line = (str(error).splitlines() or [""])[0]
        result = {"status": f"failed: {type(error).__name__}: {first_line}"[:200]}
    print(json.dumps({**result, "peak_mb": peak_megabytes()}))


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--data", help="npz file with X and y")
    parser.add_argument("--divide-by", type=float, help="scale X by this, not column by column")
    parser.add_argument("--per-class", type=int, default=10, help="labels kept in each class")
    parser.add_argument("--share", type=float, help="share of labels kept, instead")
    parser.add_argument("--options", type=json.loads, default={}, help="of the method, as JSON")
    parser.add_argument("--double", action="store_true", help="X in double precision")
    parser.add_argument(
        "--candidates", type=int, help="of the spanning tree (ours only); times the stages too"
    )
    parser.add_argument("--repeats", type=int, default=1, help="fits; the fastest counts")
    parser.add_argument("--labels-to", help="npy file for the labels found in unlabelled rows")
    return parser.parse_args(arguments)


def measure(options):
    method = METHODS[options.method]
    clock = time.perf_counter
    start = clock()
    for name in method.modules:
        importlib.import_module(name)
    result = {"import_s": clock() - start}
    if options.data is None:
        return {**result, "compilers": compilers_loaded()}

    # Only now: numpy is part of what importing the package costs.
    import numpy as np
    from samples import hide_labels, load

    start = clock()
    X, truth = load(options.data, options.divide_by)
    if options.double:
        X = X.astype(np.float64)
    y = hide_labels(truth, options.per_class, options.share)
    result["load_s"] = clock() - start

    fits, stages = [], nullcontext({})
    if options.candidates is not None:
        from stages import timed_stages

        stages = timed_stages(options.candidates)
    with stages as seconds:
        for _ in range(options.repeats):
            start = clock()
            found = method.labels(X, y, options.options)
            fits.append(clock() - start)

    hidden = y == UNLABELED
    answer = np.ascontiguousarray(np.asarray(found)[hidden].astype(np.int64))
    if options.labels_to:
        np.save(options.labels_to, answer)
    return {
        **result,
        **seconds,
        "fit_s": min(fits),
        "n": len(y),
        "labelled": int((~hidden).sum()),
        "error_pct": 100 * float(np.mean(answer != truth[hidden])),
        "digest": hashlib.sha256(answer.tobytes()).hexdigest(),
        "compilers": compilers_loaded(),
    }


def compilers_loaded():
    """Name the loaded modules that compile at run time, and so cost every process anew."""
    return sorted(set(COMPILERS) & set(sys.modules))


def peak_megabytes():
    """Largest resident memory of this process or of one that it started, in 10⁶ bytes."""
    kilo = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * kilo
    status = Path("/proc/self/status")
    high_water = None
    if status.exists():
        # Linux hands the starting process's ru_maxrss down to the new one; this is our own.
        lines = status.read_text(encoding="utf-8").splitlines()
        high_water = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), None)
    if high_water is not None:
        own = int(high_water) * 1024
    else:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilo
    return max(own, children) / 1e6


if __name__ == "__main__":
    main()
