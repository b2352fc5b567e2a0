"""Rows that may be suggested: how near they are is found out once, and they are ranked often."""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from manifoldknn.insight.coverage import Nearness, covering, drawn
from manifoldknn.insight.ground import Ground
from manifoldknn.search.repeated import equal_rows

_EVERY_ROW = 0.01  # weight of a row about which nothing is uncertain
_LATER = 50  # labels that came at once, since the draw, and are walked from before rows are ranked


class Candidates:
    """About `most` of the unlabelled rows, uncertain ones sooner; equal rows are one.

    Labels may come later: whoever has one is never ranked again. Of very many that come at once,
    some tell what is covered.
    """

    def __init__(self, ground: Ground, most: int, random_state: int) -> None:
        free = np.ones(len(ground.doubt), dtype=bool)
        free[ground.labeled] = False
        self._free, self._most = np.flatnonzero(free), most
        self._lot = np.random.default_rng([random_state, 1]).random(len(free))
        self._walked = np.zeros(len(free), dtype=bool)  # from which rows
        self._rows = self._some = np.empty(0, dtype=np.intp)
        if not free.any():
            return
        first, self._kind = equal_rows(ground.X[free])
        self._copies, self._rows = np.bincount(self._kind), self._free[first]
        self._some, self._chance = drawn(
            self._weights(ground), most, np.random.default_rng(random_state)
        )
        some, known = self._rows[self._some], self._counted(ground.labeled)
        self._nearness = Nearness(ground.graph, some, known, n_jobs=ground.n_jobs)
        self._walked[some] = self._walked[known] = True

    def _weights(self, ground: Ground) -> NDArray[np.float64]:
        weights = np.bincount(self._kind, ground.doubt[self._free] + _EVERY_ROW)
        return weights.astype(np.float64)

    def _counted(self, labeled: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return labelled rows whose coverage is computed: of very many, some."""
        if len(labeled) <= self._most:
            return labeled
        return labeled[np.argsort(self._lot[labeled])[: self._most]]

    def ranked(self, ground: Ground, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows that cover most, and about how many each speaks for.

        Who was not drawn comes last, heavy ones first.
        """
        rows, some = self._rows, self._some
        free = ~np.isin(rows, ground.labeled)
        if not free.any():
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        weights, here = self._weights(ground), free[some]
        known = self._counted(ground.labeled)
        new = known[~self._walked[known]]
        self._walked[new[np.argsort(self._lot[new])[:_LATER]]] = True
        known = known[self._walked[known]]
        covered = self._nearness.to(known)[here].max(axis=1, initial=0.0)
        some, chance = some[here], self._chance[here]
        steps = covering(self._nearness.to(rows[some])[here], weights[some] / chance, covered)
        copies = self._copies[some] / chance
        taken = [(some[at], added @ copies) for at, added in islice(steps, n)]
        chosen = np.array([row for row, _ in taken], dtype=np.intp)
        stands_for = np.array([max(1, round(float(number))) for _, number in taken], dtype=np.intp)
        left = np.setdiff1d(np.flatnonzero(free), self._some)
        left = left[np.argsort(-weights[left], kind="stable")][: n - len(chosen)]
        return rows[np.append(chosen, left)], np.append(stands_for, self._copies[left])
