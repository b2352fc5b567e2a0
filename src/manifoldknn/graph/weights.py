"""W as an operator: logarithms of weights, must-links never written out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import logsumexp

from manifoldknn.base import Bools, Floats, Ints
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.graph.together import ALONE, Alone

_ROWS_AT_ONCE = 128  # of a dense graph


@dataclass(frozen=True)
class ConstrainedGraph:
    """The constrained graph as an operator.

    `log_weights` are logarithms, symmetric, without diagonal. Sparse, they hold the third rule
    only, and all samples with the same number in `must_link`, -1 for none, are linked with weight 1
    without the l²/C edges being stored. Dense, they hold all rules, -inf for 0, and `must_link` is
    all -1. Machines that are `together` share the rows; those of the halo have no numbers there.
    """

    log_weights: Any
    must_link: Ints
    together: Alone = ALONE

    @property
    def n_samples(self) -> int:
        """Number of nodes."""
        return len(self.must_link)

    @property
    def is_sparse(self) -> bool:
        """Whether the third rule is stored as a sparse matrix."""
        return sparse.issparse(self.log_weights)

    def must_links_per_row(self) -> Ints:
        """Return the number of implicit must-link edges at each node."""
        return must_link_counts(self.must_link, self.together)

    def log_degrees(self) -> Floats:
        """Return log Σ_j W_ij; 0 for a node without edges, which nobody then divides by."""
        if self.is_sparse:
            matrix = self.log_weights
            own = log_degrees(matrix.indptr, matrix.data, self.must_link, together=self.together)
            return np.asarray(self.together.halo(own))
        degrees = dense_row_logsumexp(self.log_weights)
        return np.where(np.isneginf(degrees), 0.0, degrees)

    def reached(self, labeled: Ints) -> Bools:
        """Tell which nodes are connected to some of the given ones, however weakly."""
        links = self.log_weights if self.is_sparse else np.isfinite(self.log_weights)
        pattern = sparse.csr_array(links)
        pattern.data = np.ones(len(pattern.data))
        _, part = csgraph.connected_components(pattern, directed=False)
        # Nodes with must-links are labelled themselves.
        return np.isin(part, part[labeled]) | (self.must_link >= 0)

    def to_matrix(self) -> Any:
        """Return W itself, with all must-links written out."""
        if not self.is_sparse:
            return np.exp(self.log_weights)
        W = self.log_weights.copy()
        W.data = np.exp(W.data)
        labeled = np.flatnonzero(self.must_link >= 0)
        same = self.must_link[labeled][:, None] == self.must_link[labeled][None, :]
        np.fill_diagonal(same, False)
        i, j = np.nonzero(same)
        links = sparse.coo_array((np.ones(len(i)), (labeled[i], labeled[j])), shape=W.shape)
        return (W + links.tocsr()).tocsr()


def dense_row_logsumexp(log_matrix: Floats, log_factors: Floats | float = 0.0) -> Floats:
    """Return log Σ_j exp(m_ij + factor_j), some rows at a time: no copy of the whole matrix."""
    out = np.empty(len(log_matrix))
    with np.errstate(divide="ignore"):
        for start in range(0, len(out), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            out[part] = logsumexp(log_matrix[part] + log_factors, axis=1)
    return out


def row_logsumexp(log_matrix: Any) -> Floats:
    """Return log Σ_j exp(m_ij) over the stored entries of a CSR matrix, -inf for empty rows."""
    return row_log_sums(log_matrix.indptr, log_matrix.data)


def row_log_sums(offsets: Any, logs: Any, kernels: Kernels = NUMPY) -> Any:
    """Return log Σ exp over the entries of every row, which start at `offsets`; -inf if none."""
    out = kernels.full(len(offsets) - 1, -np.inf)
    filled = kernels.places(kernels.xp.diff(offsets) > 0)
    if len(filled):
        starts = kernels.xp.concatenate([offsets[filled], offsets[-1:]])
        out[filled] = kernels.runs(starts).log_sum(logs)
    return out


def must_link_counts(must_link: Ints, together: Alone = ALONE) -> Ints:
    """Return how many others have the number of each node, 0 for a number of -1."""
    linked = must_link >= 0
    most = int(together.max(must_link.max(initial=0)))
    sizes = together.sum(np.bincount(must_link[linked], minlength=most + 1))
    return np.where(linked, sizes[must_link] - 1, 0)


def log_degrees(
    offsets: Any,
    logs: Any,
    must_link: Ints,
    kernels: Kernels = NUMPY,
    together: Alone = ALONE,
) -> Any:
    """Return log Σ_j W_ij of a sparse graph, whose rows start at `offsets`; 0 without edges."""
    degrees = row_log_sums(offsets, logs, kernels)
    counts = must_link_counts(must_link, together)
    linked = np.flatnonzero(counts)
    at, links = kernels.array(linked), kernels.array(np.log(counts[linked]))
    degrees[at] = kernels.xp.logaddexp(degrees[at], links)
    return kernels.xp.where(kernels.xp.isneginf(degrees), 0.0, degrees)
