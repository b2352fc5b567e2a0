"""Edges between parts of the candidate graph that nothing joins, on the device.

Few rows outside the largest part: exactly the shortest edges, in tiles of all
distances. Many: short edges between parts with near centres, as in
`manifoldknn.graph.bridges`. The limit between the two is that of `manifoldknn.graph.joining`,
so that a graph does not depend on where it was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manifoldknn.base.distances import EUCLIDEAN
from manifoldknn.device.graph.bridges import pair_lengths, short_bridges
from manifoldknn.graph import joining
from manifoldknn.graph.spanning import Edges, joining_edges

_TILE = 1 << 25  # distances at a time
_COLUMNS = 1 << 24  # values of X that are widened at a time


def joined_parts(X: torch.Tensor, parts: torch.Tensor, metric: Any) -> Edges:
    """Return edges that join `parts`, numbered from 0, into one; one less than there are.

    Sorted, ``low < high``, with their lengths; other than Euclidean ones are measured on the
    processor. Cost O(s·n·d) for the s rows outside the largest part, up to some 1e9 pairs; beyond,
    O(n·d) per part that a part looks at.
    """
    if not (isinstance(metric, str) and metric in EUCLIDEAN):
        return joining.joined_parts(X.cpu().numpy(), parts.cpu().numpy(), metric=metric)
    outside = len(parts) - int(torch.bincount(parts).max())
    if joining.is_affordable(outside, X.shape[0], X.shape[1], metric):
        return joining_edges(X, parts.cpu().numpy(), metric=metric, search=_nearest_strangers)
    return short_bridges(X, parts)


def _nearest_strangers(
    X: torch.Tensor,
    rows: NDArray[np.intp],
    parts: NDArray[np.intp],
    stranger: NDArray[np.intp],
    distance: NDArray[np.float64],
) -> None:
    """Find the nearest sample of another part for `rows`, in place."""
    n, n_features = X.shape
    part = torch.as_tensor(parts, device=X.device)
    centre = X.mean(0, dtype=torch.float64)
    for start in range(0, len(rows), max(1, _TILE // n)):
        some = rows[start : start + max(1, _TILE // n)]
        ours = torch.as_tensor(some, device=X.device)
        query = X[ours].double() - centre
        step = max(1, _COLUMNS // n_features)
        away = torch.cat(
            [
                torch.cdist(
                    query,
                    X[at : at + step].double() - centre,
                    compute_mode="use_mm_for_euclid_dist",
                )
                for at in range(0, n, step)
            ],
            dim=1,
        )
        # Products carry rounding; what lies within it is measured again from differences.
        slack = 1e-7 * away.max()
        away.masked_fill_(part[ours][:, None] == part[None, :], torch.inf)
        limit = away.amin(1, keepdim=True) + slack
        r, c = (found.cpu().numpy() for found in torch.nonzero(away <= limit, as_tuple=True))
        d = pair_lengths(X, some[r], c)
        # The nearest, by distance and then by numbers.
        order = np.lexsort((np.maximum(some[r], c), np.minimum(some[r], c), d, r))
        first = order[np.unique(r[order], return_index=True)[1]]
        stranger[some] = c[first]
        distance[some] = d[first]
