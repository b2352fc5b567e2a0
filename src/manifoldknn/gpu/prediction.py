"""New rows on a device: neighbours, reconstruction, walk weights and vote in one go.

Equations 7 to 9 and the vote of the CPU path, on chunks of rows that follow the free
memory. Sums are taken neighbour by neighbour, voter by voter: the same on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.gpu.index import TorchIndex
from manifoldknn.gpu.rows import DeviceRows
from manifoldknn.gpu.samples import check_finite, check_size
from manifoldknn.gpu.simplex import torch_simplex_weights
from manifoldknn.gpu.tensors import is_out_of_memory, is_tensor, moved, release, tile_rows, to_host
from manifoldknn.nearest import NearestLabeled

__all__ = ["KnownWeights", "device_votes"]

_CHUNK_BYTES = 1 << 32
_MOST_ROWS = 1 << 17


class KnownWeights:
    """Walk weights of the samples, on a device.

    Parameters
    ----------
    nearest : NearestLabeled
        As the walk found them.
    n_voters : int
        How many voters there are.
    rows : DeviceRows
        The samples, on the device where the weights go.

    Attributes
    ----------
    source : NearestLabeled
        What this is a copy of.
    """

    def __init__(self, nearest: NearestLabeled, n_voters: int, rows: DeviceRows) -> None:
        import torch

        self.source, self.n_voters = nearest, n_voters
        self.log_scale = moved(nearest.log_scale, rows.wide)
        self._weights = moved(nearest.weights, rows.wide)
        voters = moved(nearest.voters, rows.wide)
        self._voters = voters
        if nearest.weights.shape[1] == n_voters:  # all are kept: no need to name them
            table = torch.empty_like(self._weights)
            self._weights = table.scatter_(1, voters.long(), self._weights)
            self._voters = None

    def combined(self, z: Any, near: Any) -> tuple[Any, Any]:
        """Return Σ z_i w̄(x_i,·) of every voter, on a scale of each row's own, and the scales.

        Parameters
        ----------
        z, near : torch.Tensor of shape (n_queries, n_neighbors)
            Convex weights and the samples they belong to.

        Returns
        -------
        sums : torch.Tensor of shape (n_queries, n_voters)
            Sums divided by ``exp(log_scale)``.
        log_scale : torch.Tensor of shape (n_queries,)
            -inf where no neighbour that counts was reached.
        """
        import torch

        # Neighbours may differ by hundreds of orders of magnitude: the largest sets the scale.
        scales = torch.where(z > 0, self.log_scale[near], -torch.inf)
        log_scale = scales.amax(dim=1)
        shift = torch.where(torch.isneginf(log_scale), 0.0, log_scale)
        share = z * torch.exp(scales - shift[:, None])
        sums = torch.zeros((len(z), self.n_voters), dtype=z.dtype, device=z.device)
        for i in range(z.shape[1]):
            terms = share[:, i : i + 1] * self._weights[near[:, i]]
            if self._voters is None:
                sums += terms
            else:  # no voter is named twice in a row, so the order of adding is settled
                sums.scatter_add_(1, self._voters[near[:, i]].long(), terms)
        return sums, log_scale


def device_votes(
    X: Any,
    index: TorchIndex,
    known: KnownWeights,
    *,
    n_neighbors: int,
    n_voting: int,
    voter_classes: NDArray[np.intp],
    class_factors: NDArray[np.float64],
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.bool_]]]:
    """Yield chunks of new rows: the shares of their votes, and which nobody votes for.

    Parameters
    ----------
    X : ndarray or torch.Tensor of shape (n_queries, n_features)
        New rows.
    index : TorchIndex
        Search over the samples.
    known : KnownWeights
        Walk weights of the samples.
    n_neighbors : int
        Neighbours that a new row is reconstructed from.
    n_voting : int
        How many of the heaviest voters vote.
    voter_classes : ndarray of int
        Class number of each voter.
    class_factors : ndarray of shape (n_classes,)
        What shares are multiplied by.

    Yields
    ------
    part : slice
        Rows.
    shares : ndarray of shape (len(part), n_classes)
        Rows sum to 1; all 0 where nobody votes.
    unreached : ndarray of bool
        Those rows.
    """
    rows = index.device_rows
    assert rows is not None
    classes, factors = (moved(part, rows.wide) for part in (voter_classes, class_factors))
    per_row = 4 * len(rows) + 8 * (6 * known.n_voters + 3 * n_neighbors * rows.n_features)
    step = min(_MOST_ROWS, tile_rows(rows.device, per_row, _CHUNK_BYTES * 8))
    start = 0
    while start < X.shape[0]:
        part = slice(start, min(start + step, X.shape[0]))
        try:
            new = rows.new(X[part])
            if not is_tensor(X):
                check_finite(new)
                check_size(new)
            near, _ = index.device_query(new, n_neighbors)
            z = torch_simplex_weights(new, rows.exact, near)
            sums, log_scale = known.combined(z, near)
            shares = _shares(sums, classes, n_voting, factors)
            answer = to_host(shares), to_host(log_scale == -np.inf)
        except RuntimeError as error:
            if not is_out_of_memory(error) or step == 1:
                raise
            step = max(1, step // 2)
        else:
            yield part, *answer
            start = part.stop
            continue
        release(rows.device)


def _shares(sums: Any, classes: Any, n_voting: int, factors: Any) -> Any:
    """Return each class's share of the vote of the heaviest voters."""
    import torch

    weights, voters = torch.sort(sums, dim=1, descending=True, stable=True)
    weights, voters = weights[:, :n_voting], voters[:, :n_voting]
    largest = weights[:, :1]
    weights = torch.where(largest > 0, weights / largest, 0.0)
    scores = torch.zeros((len(sums), len(factors)), dtype=sums.dtype, device=sums.device)
    for j in range(n_voting):
        scores.scatter_add_(1, classes[voters[:, j : j + 1]], weights[:, j : j + 1])
    return _normalized(_normalized(scores) * factors)


def _normalized(scores: Any) -> Any:
    import torch

    total = scores.sum(dim=1, keepdim=True)
    return torch.where(total > 0, scores / total, 0.0)
