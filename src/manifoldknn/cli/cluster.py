"""``classify`` on a Dask cluster: Parquet files in, a folder of Parquet files with answers out."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from manifoldknn.base.parameters import PARAMETERS

_BESIDE = ("id", "features", "drop", "must_link", "cannot_link", "report", "as_published")


def classify_on_cluster(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Return what is known of the answers, and the same in words."""
    try:
        from manifoldknn.distributed import DistributedManifoldKNN
        from manifoldknn.distributed.cluster import connected
    except ImportError as error:
        raise ImportError(
            f"--scheduler needs Dask: pip install 'manifoldknn[dask]' ({error})"
        ) from error
    if not options.checkpoint:
        raise ValueError("--scheduler needs --checkpoint DIR: a folder that all workers see.")
    target = Path(options.out or f"{options.checkpoint.rstrip(os.sep)}-labelled")
    if target.exists():
        raise FileExistsError(f"{target} exists already")
    parameters = _parameters(options, DistributedManifoldKNN())
    client = connected(options.scheduler)
    try:
        if not options.quiet:
            print(f"[manifoldknn] dashboard: {client.dashboard_link}", file=sys.stderr)
        model = DistributedManifoldKNN(
            client, options.checkpoint, resume=options.resume,
            verbose=0 if options.quiet else 1, **parameters,
        ).fit(options.file, options.label)  # fmt: skip
        model.write_answers(target, prefix=options.prefix)
        if options.save:
            model.save(options.save)
    finally:
        client.close()
    data = {
        "rows": sum(model.chunk_rows_), "classes": model.classes_.tolist(),
        "sigma": model.sigma_, "alpha": model.alpha_, "sharpness": model.sharpness_,
        "recall": model.recall_, "iterations": model.n_iter_, "halo_bytes": model.halo_bytes_,
        "seconds": {name: round(s, 2) for name, s in model.stage_seconds_.items()},
        "out": str(target), "model": options.save,
    }  # fmt: skip
    text = (
        f"rows        {data['rows']:,}\nclasses     {', '.join(map(str, data['classes']))}\n"
        f"recall      {model.recall_:.3f} of the true neighbours\nwritten     {target}"
    )
    return data, text + (f", {options.save}" if options.save else "")


def _parameters(options: argparse.Namespace, offered: Any) -> dict[str, Any]:
    """Return the parameters that were given, or raise ValueError for one that is not offered."""
    known = offered.get_params(deep=False)
    given = {
        name: getattr(options, name) for name in PARAMETERS if getattr(options, name) is not None
    }
    beside = [name for name in _BESIDE if getattr(options, name, None)]
    for name in [*(name for name in given if name not in known), *beside]:
        raise ValueError(f"--{name.replace('_', '-')} is not available with --scheduler.")
    return given
