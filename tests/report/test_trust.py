"""Groups of answers, counted by loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.report.trust import trust_groups
from manifoldknn.vote.hidden import HiddenLabels

CLASSES = np.array(["a", "b", "c"])


def hidden_labels(rng, n):
    weights = rng.dirichlet(np.ones(3))
    shares = rng.dirichlet(np.full(3, 0.4), size=n)
    shares[::9] = 0.0  # nobody reaches them
    return HiddenLabels(np.arange(n), rng.integers(0, 3, n), shares, weights, 5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([0.5, 0.8, 0.95]))
def test_groups_are_those_of_loops(seed, n_hidden, limit):
    rng = np.random.default_rng(seed)
    answers, confidence = rng.integers(-1, 3, 50), rng.random(50)
    hidden = hidden_labels(rng, n_hidden)
    groups = trust_groups(CLASSES, answers, confidence, hidden, limit)
    assert sum(group["rows"] for group in groups) == 50
    assert sum(group["labels_judged"] for group in groups) == n_hidden
    of_class = [sum(hidden.given == c) for c in range(3)]
    for group, wanted in zip(groups, (True, False)):
        rows = [a for a, p in zip(answers, confidence) if bool(a >= 0 and p >= limit) is wanted]
        assert group["rows"] == len(rows)
        inside = [
            i
            for i, row in enumerate(hidden.shares)
            if bool(row.any() and max(row) >= limit) is wanted
        ]
        right = [i for i in inside if hidden.shares[i].any()
                 and hidden.shares[i].argmax() == hidden.given[i]]  # fmt: skip
        assert (group["labels_judged"], group["labels_found"]) == (len(inside), len(right))
        weight = [hidden.class_weights[c] / of_class[c] for c in hidden.given]
        if inside:
            expected = sum(weight[i] for i in right) / sum(weight[i] for i in inside)
            assert group["accuracy"] == pytest.approx(expected, abs=1e-5)
        else:
            assert group["accuracy"] is None
        for c, told in enumerate(group["per_class"]):
            assert told["class"] == CLASSES[c]
            assert told["rows"] == rows.count(c)
            called = [i for i in inside if hidden.found[i] == c]
            assert told["labels_judged"] == len(called)
            assert told["labels_found"] == len([i for i in called if i in right])


def test_nothing_is_made_up_where_nothing_was_hidden():
    for group in trust_groups(CLASSES, np.array([0, 1]), np.array([0.9, 0.1]), None):
        assert group["accuracy"] is None
        assert group["labels_judged"] == 0


def test_all_together_they_are_as_accurate_as_everything():
    hidden = hidden_labels(np.random.default_rng(0), 200)
    everything, nothing = trust_groups(CLASSES, np.zeros(3, dtype=int), np.ones(3), hidden, 0.0)
    unreached = ~hidden.shares.any(axis=1)
    assert nothing["labels_judged"] == unreached.sum()
    whole = trust_groups(CLASSES, np.zeros(3, dtype=int), np.ones(3), hidden, 1.1)[1]
    assert whole["accuracy"] == pytest.approx(hidden.accuracy, abs=1e-5)
    assert everything["rows"] == 3
