"""S = D^-½ W D^-½ with entries as logarithms, its connected parts and restrictions, on a device.

As in `manifoldknn.walk.normalized`.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from manifoldknn.device.graph.constrained import TorchGraph
from manifoldknn.device.graph.spanning import connected_parts
from manifoldknn.device.kernels import Runs, TorchKernels, ragged
from manifoldknn.device.walk.aggregates import Levels, Preconditioner, aggregates
from manifoldknn.device.walk.iteration import TorchRestriction
from manifoldknn.device.walk.products import WalkMatrix, WalkOperator
from manifoldknn.graph.together import ALONE
from manifoldknn.graph.weights import row_log_sums
from manifoldknn.walk.iteration import LOG_CUT, Parts

_TERMS = 1 << 26  # logarithms that are added up at a time


class NormalizedTorchGraph:
    """S = D^-½ W D^-½ with entries as logarithms, and its restrictions."""

    factorize = False
    together = ALONE

    def __init__(self, graph: TorchGraph) -> None:
        self.n_samples, self.device = graph.n_samples, graph.device
        self.kernels = TorchKernels(graph.device)
        self.log_degrees = graph.log_degrees()
        half = 0.5 * self.log_degrees
        self._offsets, self._columns = graph.offsets, graph.columns
        self._log_s = graph.log_weights - half[graph.columns]
        self._log_s -= torch.repeat_interleave(half, graph.offsets.diff())
        codes = graph.must_link
        sizes = np.bincount(codes[codes >= 0], minlength=1)
        linked = np.flatnonzero((codes >= 0) & (sizes[np.maximum(codes, 0)] > 1))
        linked = linked[np.argsort(codes[linked], kind="stable")]
        self._linked = torch.as_tensor(linked, device=self.device)
        self._group = torch.as_tensor(codes[linked].astype(np.int64), device=self.device)
        self._everything: Parts | None = None
        self._whole: dict[float, TorchRestriction] = {}
        self.levels: Levels = ()  # from `find_levels`: long walks are then much quicker
        self.copies = 1  # how many graphs one after the other these levels are for

    def find_levels(self) -> Levels:
        """Return which rows belong together; labels have no part in it."""
        row = torch.repeat_interleave(self._offsets.diff())
        seen = torch.nonzero(self._log_s > LOG_CUT).squeeze(1)
        return aggregates(row[seen], self._columns[seen].long(), self._log_s[seen], self.n_samples)

    def parts(self, rows: Tensor) -> Parts:
        """Return connected parts of some rows, given ascending; those of all rows are kept."""
        everything = len(rows) == self.n_samples
        if everything and self._everything is not None:
            return self._everything
        _, owner, columns, log_s = self._sub(rows)
        seen = log_s > LOG_CUT
        upper = torch.nonzero(seen & (owner < columns)).squeeze(1)
        linked, group = self._links(rows)
        chain = torch.nonzero(group[1:] == group[:-1]).squeeze(1)
        one = torch.cat([owner[upper], linked[chain]]).to(torch.int32)
        other = torch.cat([columns[upper], linked[chain + 1]]).to(torch.int32)
        number, order = torch.sort(connected_parts(one, other, len(rows)), stable=True)
        found = Parts(rows[order], number, int((~seen).sum()), self.kernels)
        if everything:
            self._everything = found
        return found

    def restrict(self, rows: Tensor, alpha: float) -> TorchRestriction:
        """Return A_UU for U = rows; the one for all rows, in the order of `parts`, is kept."""
        everything = self._everything is not None and rows is self._everything.rows
        if everything and alpha in self._whole:
            return self._whole[alpha]
        offsets, _, columns, log_s = self._sub(rows)
        linked, group = self._links(rows)
        half = 0.5 * self.log_degrees[rows]
        # Parts have scales of their own: nothing may pass between them on this one.
        s = torch.where(log_s > LOG_CUT, torch.exp(log_s), 0.0)
        scale = torch.exp(-half[linked])
        matrix = WalkMatrix(offsets, columns, s, linked, group, scale, alpha)
        found = TorchRestriction(WalkOperator(matrix), half, alpha)
        if everything:
            self._whole[alpha] = found
            if self.levels:
                found.precondition = Preconditioner(matrix, half, rows, self.levels, self.copies)
        return found

    def log_first_step(self) -> Tensor:
        """Return log (S D^-½ 1): where walkers from everywhere are after a step."""
        half = 0.5 * self.log_degrees
        out = row_log_sums(self._offsets, self._log_s - half[self._columns], self.kernels)
        if len(self._linked):  # whose degrees are 1 and more
            own = torch.exp(-self.log_degrees[self._linked])
            members = Runs.of_numbers(self._group)
            sums = torch.repeat_interleave(members.sum(own[:, None])[:, 0], members.offsets.diff())
            others = torch.log(sums - own) - half[self._linked]
            out[self._linked] = torch.logaddexp(out[self._linked], others)
        return out

    def boundary(self, rows: Tensor, final: Tensor, log_x: Tensor) -> Any:
        """Return log (S_UR x_R) for U = rows and R the final rows (a mask)."""
        out = self.kernels.full((len(rows), log_x.shape[1]), -torch.inf)
        counts = (self._offsets[1:] - self._offsets[:-1])[rows]
        step = max(1, _TERMS // max(1, int(counts.max()) * log_x.shape[1]))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            at, owner = ragged(self._offsets[rows[some]], counts[some])
            crossing = final[self._columns[at]]
            at, owner = at[crossing], owner[crossing]
            if len(at):
                terms = self._log_s[at, None] + log_x[self._columns[at]]
                runs = Runs.of_numbers(owner)
                out[start + owner[runs.offsets[:-1]]] = runs.log_sum(terms)
        self._clique_boundary(rows, final, log_x, out)
        return out

    def _clique_boundary(self, rows: Tensor, final: Tensor, log_x: Tensor, out: Tensor) -> None:
        half = 0.5 * self.log_degrees[:, None]
        known = torch.nonzero(final[self._linked]).squeeze(1)
        inside, group = self._links(rows)
        if not len(known) or not len(inside):
            return
        source, runs = self._linked[known], Runs.of_numbers(self._group[known])
        total = runs.log_sum(log_x[source] - half[source])
        named = self._group[known][runs.offsets[:-1]]
        at = torch.searchsorted(named, group).clamp_(max=len(named) - 1)
        met = named[at] == group
        inside, at = inside[met], at[met]
        terms = total[at] - half[rows[inside]]
        out[inside] = torch.logaddexp(out[inside], terms)

    def _links(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the places among `rows` of rows with must-links, and their classes, ascending."""
        place = self.kernels.inverse(rows, self.n_samples)[self._linked]
        here = place >= 0
        return place[here], self._group[here]

    def _sub(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return offsets, rows, columns and logarithms of S_UU."""
        starts = self._offsets[rows]
        at, owner = ragged(starts, self._offsets[rows + 1] - starts)
        columns = self.kernels.inverse(rows, self.n_samples)[self._columns[at]]
        if len(rows) < self.n_samples:
            inside = torch.nonzero(columns >= 0).squeeze(1)
            at, owner, columns = at[inside], owner[inside], columns[inside]
        offsets = torch.searchsorted(owner, torch.arange(len(rows) + 1, device=self.device))
        return offsets, owner, columns, self._log_s[at]
