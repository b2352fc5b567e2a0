"""A partner in the vote, from its parameter to the answers."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import oracles
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.vote.hidden import hidden_groups
from manifoldknn.vote.partner import LOUDEST, Partner
from strategies import problems

EVERYTHING = pytest.mark.filterwarnings(
    "ignore::manifoldknn.exceptions.EverythingLabeledWarning",
    "ignore::manifoldknn.exceptions.UnreachedWarning",
    "ignore::manifoldknn.exceptions.OneClassWarning",
)


def few_labels(n_per_class=8, seed=0):
    X, truth = load_iris(return_X_y=True)
    rng, y = np.random.default_rng(seed), np.full(len(X), -1)
    for c in range(3):
        y[rng.choice(np.flatnonzero(truth == c), n_per_class, replace=False)] = c
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def wide(X):
    """Sparse rows with places in 64 bits, which trees refuse."""
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@EVERYTHING
@settings(max_examples=12, deadline=None)
@given(
    problems(max_samples=20, ties=False),
    st.sampled_from(["equal", "labeled"]),
    st.sampled_from([KNeighborsClassifier(1), RandomForestClassifier(5, random_state=0)]),
)
def test_equals_the_loops_of_the_design(problem, prior, partner):
    X, y = problem.X, problem.y
    k = min(5, len(X) - 1)
    several = y.max() > 0

    def weights(codes, _=()):
        return oracles.constrained_graph(
            X, codes, graph="pruned", k=k, sigma=0.7, depth=2, theta=0.1
        )

    def says(codes, rows):
        return clone(partner).fit(X[codes >= 0], codes[codes >= 0]).predict_proba(X[rows])

    groups = hidden_groups(y) if several else []
    asked = says if several else None
    true = oracles.densities_vote(weights, y, groups, class_prior=prior, partner=asked)
    clf = ManifoldKNNClassifier(
        graph_neighbors=k, sigma=0.7, class_prior=prior, tol=1e-9, partner=partner
    ).fit(X, y)
    powers = clf.sharpness_, clf.partner_weight_
    usual = oracles.usual_density(true.hidden_f, y[true.hidden_rows])
    b = clf.fitted_.belonging.values.values
    if len(true.hidden_rows):
        hidden = true.hidden_f, true.hidden_s, y[true.hidden_rows], true.prior, true.usual
        mine, theirs = (
            oracles.joint_posterior(*hidden, np.log(sharpness), weight)
            for sharpness, weight in (powers, (true.sharpness, true.weight))
        )
        assert mine >= theirs - 1e-5
        shares = oracles.probabilities(
            true.hidden_f, true.prior, powers[0], true.hidden_s, powers[1]
        )
        shares = oracles.doubted(shares, true.hidden_f, usual, b[true.hidden_rows])
        np.testing.assert_allclose(clf.hidden_labels_.shares, shares, rtol=1e-5)
    else:
        assert powers == (pytest.approx(true.usual, rel=1e-5), 0.0)
    reached = ~clf.unreached_
    p = oracles.probabilities(true.f, true.prior, powers[0], true.s, powers[1])
    p = oracles.doubted(p, true.f, usual, b)
    np.testing.assert_allclose(clf.label_distributions_[reached], p[reached], rtol=1e-5)


def test_without_a_partner_nothing_changes():
    X, y = few_labels()
    plain = ManifoldKNNClassifier().fit(X, y)
    assert plain.partner_ is None
    assert plain.partner_weight_ == 0.0
    assert plain.fitted_.partner is None


def test_a_partner_who_only_guesses_has_no_say():
    class Guesser(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    X, y = few_labels()
    plain, clf = ManifoldKNNClassifier().fit(X, y), ManifoldKNNClassifier(partner=Guesser())
    clf.fit(X, y)
    assert clf.partner_weight_ == 0.0
    assert isinstance(clf.partner_, Guesser)
    assert clf.fitted_.partner is None  # and is not asked
    np.testing.assert_array_equal(clf.transduction_, plain.transduction_)


@pytest.mark.parametrize("partner", ["forest", GaussianNB(), LogisticRegression()], ids=str)
def test_the_partner_speaks_where_distances_say_nothing(partner):
    """Nine columns of noise beside one that tells the class."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 10))
    truth = (X[:, 0] > 0.5).astype(int)
    y = np.where(np.arange(300) < 40, truth, -1)
    plain = ManifoldKNNClassifier().fit(X, y)
    clf = ManifoldKNNClassifier(partner=partner).fit(X, y)
    assert clf.partner_weight_ > 0.3
    wrong = [np.mean(model.transduction_[40:] != truth[40:]) for model in (plain, clf)]
    assert wrong[1] < 0.6 * wrong[0]
    assert clf.calibrated_
    assert clf.hidden_labels_.accuracy > plain.hidden_labels_.accuracy
    np.testing.assert_array_equal(clf.labeled_indices_, plain.labeled_indices_)
    for mine, theirs in zip(clf.kneighbors(X[:5] + 0.01), plain.kneighbors(X[:5] + 0.01)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-2)


def test_one_label_per_class_hides_nothing():
    X, y = few_labels(1)
    clf = ManifoldKNNClassifier(partner="forest").fit(X, y)
    assert clf.partner_weight_ == 0.0
    assert not clf.calibrated_
    np.testing.assert_array_equal(
        clf.label_distributions_, ManifoldKNNClassifier().fit(X, y).label_distributions_
    )


@EVERYTHING
def test_one_class_needs_no_partner():
    X, y = few_labels()
    clf = ManifoldKNNClassifier(partner=LogisticRegression()).fit(X, np.where(y == 0, 0, -1))
    assert clf.partner_ is None


def test_a_sharpness_that_is_given_stays_and_the_weight_is_learned():
    X, y = few_labels()
    clf = ManifoldKNNClassifier(partner="forest", sharpness=0.01).fit(X, y)
    assert clf.sharpness_ == 0.01
    assert clf.partner_weight_ > 0.1
    assert not clf.calibrated_
    assert clf.hidden_labels_ is not None


def test_the_forest_is_that_of_the_design():
    X, y = few_labels()
    for seed, expected in ((None, 0), (7, 7)):
        clf = ManifoldKNNClassifier(partner="forest", random_state=seed).fit(X, y)
        labeled = y >= 0
        forest = RandomForestClassifier(200, class_weight="balanced", random_state=expected)
        forest.fit(X[labeled], y[labeled])
        np.testing.assert_allclose(
            clf.partner_.predict_proba(X), forest.predict_proba(X), rtol=1e-12
        )
    ManifoldKNNClassifier(partner="forest", random_state=np.random.RandomState(0)).fit(X, y)


@pytest.mark.parametrize("change", ["n_jobs", "float32", "strings", "sparse", "frame"])
def test_the_same_answers_whatever_the_form(change):
    pd = pytest.importorskip("pandas")
    X, y = few_labels()
    X = X.astype(np.float32)  # so that float32 loses nothing
    names = np.array(["b", "c", "d", ""])
    made = {
        "n_jobs": (X, y, {"n_jobs": 2}),
        "float32": (X.astype(np.float64), y, {}),
        "strings": (X, names[y], {}),
        "sparse": (wide(sparse.csr_array(X)), y, {}),
        "frame": (pd.DataFrame(X, columns=list("abcd")), y, {}),
    }[change]
    one = ManifoldKNNClassifier(partner="forest", n_jobs=1).fit(X, y)
    two = ManifoldKNNClassifier(partner="forest", **made[2]).fit(*made[:2])
    assert one.partner_weight_ > 0
    same = {"rtol": 0, "atol": 0} if change in ("n_jobs", "strings") else {"atol": 1e-3}
    np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, **same)
    new = made[0][:20] if change != "frame" else made[0].iloc[:20]
    np.testing.assert_allclose(one.predict_proba(X[:20]), two.predict_proba(new), **same)
    if change == "strings":
        np.testing.assert_array_equal(names[one.transduction_], two.transduction_)


def test_unlabelled_rows_are_predicted_as_they_were_transduced():
    X, y = few_labels()
    clf = ManifoldKNNClassifier(partner="forest").fit(X, y)
    assert clf.partner_weight_ > 0
    rows = np.flatnonzero(y < 0)
    rows = rows[np.unique(X[rows], axis=0, return_index=True)[1]]
    alone = [i for i in rows if (X[i] == X).all(axis=1).sum() == 1]
    np.testing.assert_allclose(
        clf.predict_proba(X[alone]), clf.label_distributions_[alone], rtol=1e-5
    )
    np.testing.assert_array_equal(clf.predict(X[alone]), clf.transduction_[alone])


def test_a_stream_trains_the_partner_again():
    X, y = few_labels()
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    clf = ManifoldKNNClassifier(partner="forest").partial_fit(X[:100], y[:100])
    before = clf.partner_
    clf.partial_fit(X[100:110], refresh=False)
    assert clf.partner_ is before
    np.testing.assert_array_equal(clf.label_distributions_[100:], clf.predict_proba(X[100:110]))
    clf.partial_fit(X[110:], y[110:])
    assert clf.partner_ is not before
    missed = np.flatnonzero(y[100:110] >= 0) + 100
    clf.set_labels(missed, y[missed])
    fresh = ManifoldKNNClassifier(partner="forest").fit(X, y)
    clf.refresh()
    assert clf.partner_weight_ == fresh.partner_weight_
    np.testing.assert_array_equal(clf.label_distributions_, fresh.label_distributions_)


def test_scikit_learn_contract():
    X, y = few_labels()
    given = RandomForestClassifier(20, random_state=0)
    clf = ManifoldKNNClassifier(partner=given)
    twin = clone(clf)
    assert twin.partner is not given
    assert clf.get_params()["partner__n_estimators"] == 20
    clf.fit(X, y)
    assert not hasattr(given, "estimators_")  # a clone was fitted
    assert clf.partner is given
    assert len(clf.partner_.estimators_) == 20
    clf.set_params(partner__n_estimators=5).fit(X, y)
    assert len(clf.partner_.estimators_) == 5
    assert clone(ManifoldKNNClassifier(partner="forest")).partner == "forest"


@pytest.mark.parametrize(
    ("partner", "message"),
    [
        ("tree", "partner='tree' must be None, 'forest' or a scikit-learn classifier"),
        (3, "partner=3 must be None"),
        (GaussianNB, "must be None, 'forest'"),
        (np.array([1.0]), "must be None, 'forest'"),
    ],
)
def test_bad_partners(partner, message):
    X, y = few_labels()
    with pytest.raises(ValueError, match=message):
        ManifoldKNNClassifier(partner=partner).fit(X, y)


def test_neighbours_vote_alone():
    X, y = few_labels()
    with pytest.raises(ValueError, match="use vote='classes', or partner=None"):
        ManifoldKNNClassifier(partner="forest", vote="neighbors").fit(X, y)


@pytest.mark.parametrize("said", [np.ones((1, 3)), np.full((5, 2), np.nan), -np.ones((5, 2))])
def test_a_partner_must_give_probabilities(said):
    class Odd:
        def predict_proba(self, X):
            return said

    with pytest.raises(ValueError, match="of type Odd gave no probabilities"):
        Partner(Odd(), 2, 1).said(np.zeros((5, 2)))


def test_what_is_said_is_never_quite_certain():
    class Sure:
        def predict_proba(self, X):
            return np.eye(2)[X[:, 0].astype(int)]

    rows = np.array([[0.0], [1.0]] * 20_000)
    said = Partner(Sure(), 2, 2).said(rows)
    np.testing.assert_allclose(np.exp(said), oracles.partner_shares(np.eye(2))[[0, 1] * 20_000])
    assert said[0, 0] - said[0, 1] == pytest.approx(LOUDEST)


@pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.UnreachedWarning")
def test_rows_that_no_label_reaches_keep_their_meaning():
    X, truth = make_moons(60, noise=0.05, random_state=0)
    X = np.vstack([X, X + 1000])
    y = np.full(120, -1)
    y[:40] = truth[:40]
    params = {"graph": "union", "graph_neighbors": 3, "sigma": 0.2}
    plain = ManifoldKNNClassifier(**params).fit(X, y)
    clf = ManifoldKNNClassifier(partner="forest", **params).fit(X, y)
    assert plain.unreached_[60:].all()
    np.testing.assert_array_equal(clf.unreached_, plain.unreached_)
    np.testing.assert_array_equal(
        clf.label_distributions_[clf.unreached_], plain.label_distributions_[clf.unreached_]
    )


def test_the_log_says_where(caplog):
    X, y = few_labels()
    with caplog.at_level(logging.INFO, "manifoldknn"):
        ManifoldKNNClassifier(partner="forest").fit(X, y)
    said = "partner: RandomForestClassifier, trained on 24 labelled rows, on the CPU"
    assert said in caplog.messages
