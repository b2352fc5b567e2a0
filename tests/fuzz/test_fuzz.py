"""Short runs of the scripts in ``fuzz``, and what they have found before."""

import fits
import memory
import numpy as np
import oracle
import pytest
import run
import soak
import streams

import oracles
from manifoldknn import ManifoldKNNClassifier
from strategies import forced


def test_fits(capsys):
    assert run.main(fits.attempt, "fits", count=0, argv=["--count", "60"]) == 0
    assert "ok: 60 fits from seed 0" in capsys.readouterr().out


@pytest.mark.slow
def test_more_fits():
    assert run.main(fits.attempt, "fits", count=0, argv=["--count", "500", "--seed", "60"]) == 0


def test_streams():
    assert run.main(streams.attempt, "lives", count=0, argv=["--count", "4"]) == 0


def test_soak():
    assert soak.main(["--count", "1000"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", memory.LIMITS)
def test_limits_on_addresses(megabytes):
    assert memory.limit(megabytes, 0).startswith("limits")


def test_a_finding_is_told_and_fails(capsys):
    assert run.main(lambda seed: ["BAD thing"] if seed == 3 else ["good"], "things", count=5,
                    argv=[]) == 1  # fmt: skip
    out = capsys.readouterr().out
    assert "seed 3: BAD thing" in out
    assert "FOUND: 5 things from seed 0" in out
    assert "1 findings, 4 good" in out


def test_the_oracle_equals_a_plain_inverse():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 2)), np.full(25, -1)
    y[:5] = 0, 1, 2, 0, 1
    for graph in ("pruned", "union", "full"):
        how = {"graph": graph, "k": 4, "sigma": 0.7, "depth": 2, "theta": 0.1}
        links = {"must": [(6, 7)], "cannot": [(8, 9)]}
        D = oracle.distances(X, "euclidean")
        L = oracle.log_weights(D, y, **how, **links)
        W = oracles.constrained_graph(X, y, **how, **links)
        np.testing.assert_allclose(np.exp(L), W, atol=1e-12)
        walk = oracle.Walk(L, 0.99)
        f = oracles.class_densities(oracles.walk_matrix(W, 0.99), y, 3)
        np.testing.assert_allclose(np.exp(walk.by_class(y, 3)), f, rtol=1e-6)
        weights = oracles.walk_weights(W, 0.99)[:, :5]
        np.testing.assert_allclose(np.exp(walk.by_label(np.arange(5))), weights, rtol=1e-6)


@pytest.mark.parametrize("way", ["factorise", "iterate", "levels"])
@pytest.mark.parametrize("lost", [1e-4, 1e-5, 1e-6, 1e-7])
@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_every_row_is_accurate_for_walks_of_any_length(way, lost, vote):
    """In single precision, and where it was enough that numbers settle, rows were 20 tol wrong."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 2)) + 3 * rng.integers(0, 2, (40, 1))
        y = np.full(40, -1)
        y[rng.choice(40, 6, replace=False)] = 0, 1, 0, 1, 0, 1
        model = ManifoldKNNClassifier(alpha=1 - lost, vote=vote, graph_neighbors=5)
        with forced(way):
            model.fit(X, y)
        _, true, _ = fits.expected(X, y, (), (), model)
        reach = model.fitted_.walk.reach if vote == "classes" else 0.0
        found = model.fitted_.walk.similarities.logarithms()
        assert (fits.excess(found, true, reach) <= model.tol).all()


def test_a_class_whose_density_underflows_is_not_forgotten():
    """A factorised walk lost densities of e^-700 and less, and said that all were accurate."""
    X = np.concatenate([place + np.arange(20.0) for place in (0, 40, 80)])[:, None]
    y = np.full(60, -1)
    y[[0, 3, 55, 59]] = 0, 0, 1, 1
    model = ManifoldKNNClassifier(sigma=0.7, graph_neighbors=3, alpha=0.99)
    with forced("factorise"):
        model.fit(X, y)
    _, true, _ = fits.expected(X, y, (), (), model)
    assert true.min() < -800
    assert model.sharpness_ < 0.1
    found = model.fitted_.walk.similarities.logarithms()
    assert (fits.excess(found, true, model.fitted_.walk.reach) <= model.tol).all()
