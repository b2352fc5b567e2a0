"""Parameters of the classifier: what is allowed, said before any heavy work."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from manifoldknn.base.tensors import check_device

VOTES = ("classes", "neighbors")
# Those that the command line offers too.
PARAMETERS = (
    "n_neighbors", "vote", "graph", "graph_neighbors", "sigma", "alpha", "sharpness", "partner",
    "tree_depth", "theta", "metric", "neighbors", "on_unreached", "class_prior", "abstain_below",
    "tol", "max_iter", "n_jobs", "device", "random_state",
)  # fmt: skip
MOST_ALPHA = 1 - 1e-7  # beyond, rounding is no longer small beside 1 - α
_MOST_JOBS = 1024
GRAPHS = ("pruned", "union", "full")
ON_UNREACHED = ("nearest", "abstain", "raise")


def check_parameters(params: dict[str, Any]) -> None:
    """Raise ValueError for the first parameter of `ManifoldKNNClassifier` that makes no sense."""
    for name in ("n_neighbors", "max_iter"):
        check_integer(name, params[name], minimum=1)
    check_graph_parameters(
        *(params[name] for name in ("graph", "graph_neighbors", "sigma", "tree_depth", "theta"))
    )
    check_choice("vote", params["vote"], VOTES)
    check_choice("on_unreached", params["on_unreached"], ON_UNREACHED)
    if not _is_auto(params["alpha"]):
        _check_share("alpha", params["alpha"], "0.99", or_else="'auto'")
        check_alpha(params["alpha"])
    if not _is_auto(params["sharpness"]):
        check_positive("sharpness", params["sharpness"], or_else="'auto'")
    _check_partner(params["partner"], params["vote"])
    if params["abstain_below"] is not None:
        _check_share("abstain_below", params["abstain_below"], "0.8", or_else="None")
    _check_share("tol", params["tol"], "1e-3")
    check_device(params["device"])
    verbose = params["verbose"]
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(f"verbose={verbose!r} must be a whole number, at least 0.")
    n_jobs = params["n_jobs"]
    if n_jobs is not None and (not _is_whole(n_jobs) or n_jobs == 0 or n_jobs > _MOST_JOBS):
        raise ValueError(
            f"n_jobs={n_jobs!r} must be None (all cores) or a whole number other than 0, such as "
            f"2, and at most {_MOST_JOBS}."
        )
    seed = params["random_state"]
    generator = isinstance(seed, np.random.RandomState)
    if not (seed is None or generator or (_is_whole(seed) and 0 <= seed < 2**32)):
        raise ValueError(
            f"random_state={seed!r} must be None, a whole number from 0 to 2**32 - 1 or a "
            "numpy.random.RandomState."
        )


def check_graph_parameters(
    graph: Any, graph_neighbors: Any, sigma: Any, tree_depth: Any, theta: Any
) -> None:
    """Raise ValueError for the first parameter of the graph that makes no sense."""
    check_choice("graph", graph, GRAPHS)
    check_integer("graph_neighbors", graph_neighbors, minimum=1)
    check_integer("tree_depth", tree_depth, minimum=0)
    if not _is_real(theta) or not 0 <= theta < 1:
        raise ValueError(f"theta={theta!r} must be at least 0 and below 1, such as 0.1.")
    if not _is_auto(sigma):
        check_positive("sigma", sigma, or_else="'auto'")


def _check_partner(partner: Any, vote: str) -> None:
    named = partner is None or (isinstance(partner, str) and partner == "forest")
    able = all(callable(getattr(partner, name, None)) for name in ("fit", "predict_proba"))
    if not named and (not able or isinstance(partner, type)):
        raise ValueError(
            f"partner={partner!r} must be None, 'forest' or a scikit-learn classifier with "
            "predict_proba."
        )
    if partner is not None and vote == "neighbors":
        raise ValueError(
            "partner has a say beside class densities only: use vote='classes', or partner=None."
        )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _check_share(name: str, value: Any, usual: str, *, or_else: str = "") -> None:
    if not _is_real(value) or not 0 < value < 1:
        also = f", or {or_else}" if or_else else ""
        raise ValueError(
            f"{name}={value!r} must be a number strictly between 0 and 1, such as {usual}{also}."
        )


def check_alpha(alpha: Any) -> None:
    """Raise ValueError for an α at which walks cannot be computed accurately."""
    if alpha > MOST_ALPHA:
        raise ValueError(
            f"alpha={alpha!r} is too near to 1: walkers must lose at least 1e-7 of their strength "
            "per step. Use 1 - 1e-7 or less, such as 0.9997."
        )


def check_integer(name: str, value: Any, *, minimum: int) -> None:
    """Raise ValueError unless a parameter is a whole number of at least `minimum`."""
    if not _is_whole(value) or value < minimum:
        raise ValueError(f"{name}={value!r} must be a whole number, at least {minimum}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless a parameter is one of some words."""
    if not isinstance(value, str) or value not in choices:
        offered = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r} must be one of {offered}.")


def check_positive(name: str, value: Any, *, or_else: str = "") -> None:
    """Raise ValueError unless a parameter is a positive, finite number.

    The message names the parameter, and what else it may be.
    """
    if not (_is_real(value) and 0 < value < np.inf):
        also = f" or {or_else}" if or_else else ""
        raise ValueError(f"{name}={value!r} must be a positive, finite number{also}.")
