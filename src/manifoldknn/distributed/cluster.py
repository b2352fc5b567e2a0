"""The cluster of a fit: the user's, or one on this machine; and whether it can be used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from manifoldknn.base.threads import thread_count


@contextmanager
def opened_client(client: Any) -> Iterator[Any]:
    """Give a client, or one of a cluster of this machine's cores for the time being."""
    if client is not None:
        yield client
        return
    from distributed import Client, LocalCluster

    cores = thread_count(None)
    cluster = LocalCluster(n_workers=cores, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    with cluster, Client(cluster) as own:
        yield own


def connected(address: str, timeout: float = 20.0) -> Any:
    """Return a client of a scheduler, or raise ValueError if nobody answers."""
    from distributed import Client

    try:
        return Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(
            f"No scheduler answers at {address}: start one with `dask scheduler`, or look at the "
            f"address. ({error})"
        ) from error


def versions() -> dict[str, str]:
    """Return the versions that client and workers must have in common."""
    from manifoldknn import __version__

    python = ".".join(map(str, sys.version_info[:2]))
    return {"manifoldknn": __version__, "numpy": np.__version__, "python": python}


def check_cluster(client: Any) -> None:
    """Raise ValueError unless there are workers, and all have the versions of the client."""
    try:
        client.wait_for_workers(1, timeout=30)
        found = client.run(versions)
    except (OSError, TimeoutError, ModuleNotFoundError) as error:
        raise ValueError(
            f"The cluster has no worker that can be used: start workers with manifoldknn "
            f"installed. ({error})"
        ) from error
    here = versions()
    for worker, there in found.items():
        for name, version in here.items():
            if there[name] != version:
                raise ValueError(
                    f"Worker {worker} has {name} {there[name]}, but the client has {version}: "
                    "install the same version everywhere."
                )
