import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from manifoldknn.walk.elimination import MOST_NEIGHBORS, WEAK, Elimination


def random_log_s(n, density, spread, seed):
    rng = np.random.default_rng(seed)
    W = np.triu(np.where(rng.random((n, n)) < density, -spread * rng.random((n, n)), -np.inf), 1)
    W[np.tril_indices(n)] = -np.inf
    W = np.maximum(W, W.T)
    degrees = np.exp(W).sum(axis=1)
    half = 0.5 * np.log(np.where(degrees > 0, degrees, 1.0))
    log_s = W - half[:, None] - half[None, :]
    i, j = np.nonzero(np.isfinite(log_s))
    return sparse.csr_array((log_s[i, j], (i, j)), shape=(n, n)), rng


def dense_a(log_s, alpha):
    S = np.zeros(log_s.shape)
    coo = log_s.tocoo()
    S[coo.row, coo.col] = np.exp(coo.data)
    return np.eye(len(S)) - alpha * S


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(2, 40),
    density=st.sampled_from([0.05, 0.2, 0.6]),
    seed=st.integers(0, 2**32 - 1),
    rounds=st.integers(0, 6),
)
def test_what_is_left_is_the_schur_complement(n, density, seed, rounds):
    alpha = 0.9
    log_s, rng = random_log_s(n, density, 3.0, seed)
    stays = rng.random(n) < 0.2
    elimination = Elimination(log_s, stays, alpha)
    for _ in range(rounds):
        elimination.eliminate()
    A, rows = dense_a(log_s, alpha), elimination.rows
    gone = np.setdiff1d(np.arange(n), rows)
    assert np.isin(np.flatnonzero(stays), rows).all()
    expected = A[np.ix_(rows, rows)] - A[np.ix_(rows, gone)] @ np.linalg.solve(
        A[np.ix_(gone, gone)], A[np.ix_(gone, rows)]
    )
    found = np.diag(elimination.diagonal) - elimination.weights.toarray()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    # and the rows that went out come back: x_F = terms x_C, last round first
    x = np.zeros(n)
    b = np.zeros(n)
    b[rows] = rng.random(len(rows))
    x[rows] = np.linalg.solve(found, b[rows])
    for step in reversed(elimination.rounds):
        terms = step.log_terms.copy()
        terms.data = np.exp(terms.data)
        x[step.rows] = terms @ x
    np.testing.assert_allclose(A @ x, b, atol=1e-12)


def test_rows_of_a_round_are_no_neighbours_and_have_few():
    log_s, _ = random_log_s(200, 0.03, 3.0, 0)
    elimination = Elimination(log_s, np.zeros(200, dtype=bool), 0.99)
    counts = np.diff(log_s.indptr)
    assert elimination.eliminate()
    out = elimination.rounds[0].rows
    assert log_s[out][:, out].nnz == 0
    assert counts[out].max() <= np.median(counts)
    assert len(out) >= 30


def test_rows_with_weak_edges_stay():
    """Products of weak edges underflow; they are kept apart, as logarithms."""
    chain = np.array([0.0, WEAK - 1, 0.0, 0.0])
    full = sparse.csr_array(
        (np.repeat(chain, 2), (np.c_[:4, 1:5].ravel(), np.c_[1:5, :4].ravel())), shape=(5, 5)
    )
    elimination = Elimination(full, np.zeros(5, dtype=bool), 0.5)
    while elimination.eliminate():
        pass
    assert {1, 2} <= set(elimination.rows.tolist())
    assert elimination.weak.nnz == 2
    np.testing.assert_allclose(elimination.weak.data, WEAK - 1 + np.log(0.5))


def test_nothing_to_eliminate():
    log_s, _ = random_log_s(10, 0.3, 3.0, 1)
    assert not Elimination(log_s, np.ones(10, dtype=bool), 0.99).eliminate()


def test_rows_with_many_neighbours_stay():
    """Each pair of a row's neighbours would become neighbours."""
    log_s, _ = random_log_s(200, 0.4, 3.0, 0)
    assert np.diff(log_s.indptr).min() > MOST_NEIGHBORS
    assert not Elimination(log_s, np.zeros(200, dtype=bool), 0.99).eliminate()
