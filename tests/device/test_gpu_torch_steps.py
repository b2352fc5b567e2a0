"""A fit by PyTorch is the fit of the CPU, step by step and in all that follows."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import accuracy_score
from sklearn.neighbors import NearestNeighbors

from manifoldknn import ManifoldKNNClassifier, find_label_errors, inspect, persist, suggest
from manifoldknn.base import tensors
from manifoldknn.exceptions import DeviceWarning
from manifoldknn.search.neighbors import ExactIndex

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device import torch_steps as module  # noqa: E402
from manifoldknn.device.search.index import TorchIndex  # noqa: E402

DEVICES = [
    "torch:cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
        ],
    ),
]
any_problem = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


def classifier(device="torch:cpu", **params):
    return ManifoldKNNClassifier(device=device, **params)


def labeled(truth, per_class=3, seed=0):
    rng, y = np.random.default_rng(seed), np.full(len(truth), -1)
    for c in np.unique(truth):
        y[rng.choice(np.flatnonzero(truth == c), per_class, replace=False)] = c
    return y


@pytest.fixture(scope="module")
def digits():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:900] / 16, truth[:900]
    return X, truth, labeled(truth)


def assert_alike(ours, cpu, atol=1e-4):
    """The same graph, answers within the accuracy of the walk."""
    # Where two neighbours are equally far but for rounding, either may come first.
    assert (ours.fitted_.lists.indices == cpu.fitted_.lists.indices).mean() > 0.999
    assert ours.fitted_.lists.indices.dtype == cpu.fitted_.lists.indices.dtype
    np.testing.assert_allclose(
        ours.fitted_.lists.distances, cpu.fitted_.lists.distances, rtol=1e-12
    )
    for one, two in zip(ours.fitted_.edges, cpu.fitted_.edges):
        assert one.dtype == two.dtype
        np.testing.assert_allclose(one, two, rtol=1e-12)
    assert ours.sigma_ == pytest.approx(cpu.sigma_, rel=1e-12)
    W, V = ours.fitted_.graph.log_weights, cpu.fitted_.graph.log_weights
    assert (W.indices == V.indices).all()
    np.testing.assert_allclose(W.data, V.data, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours.label_distributions_, cpu.label_distributions_, atol=atol)
    assert (ours.transduction_ == cpu.transduction_).mean() > 0.998
    assert (ours.unreached_ == cpu.unreached_).all()
    assert ours.alpha_ == cpu.alpha_
    if cpu.sharpness_ is not None:
        assert ours.sharpness_ == pytest.approx(cpu.sharpness_, rel=0.01)
    assert (ours.hidden_labels_ is None) == (cpu.hidden_labels_ is None)
    if cpu.hidden_labels_ is not None:
        assert (ours.hidden_labels_.rows == cpu.hidden_labels_.rows).all()
        assert (ours.hidden_labels_.found == cpu.hidden_labels_.found).all()
        assert ours.hidden_labels_.accuracy == pytest.approx(cpu.hidden_labels_.accuracy, abs=0.01)
    for name in ("transduction_", "label_distributions_", "labeled_indices_", "classes_"):
        assert type(getattr(ours, name)) is np.ndarray
        assert getattr(ours, name).dtype == getattr(cpu, name).dtype


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"graph": "union", "graph_neighbors": 7},
        {"metric": "cosine"},
        {"sigma": 0.4, "alpha": 0.9, "tree_depth": 0},
        {"class_prior": "labeled", "sharpness": 2.0},
        {"vote": "neighbors"},
        {"vote": "neighbors", "n_neighbors": 100},
        {"vote": "neighbors", "class_prior": "labeled", "n_neighbors": 3},
    ],
    ids=str,
)
def test_fit_and_predict_as_the_cpu(digits, device, params):
    X, _, y = digits
    params["tol"] = 1e-6  # the fifth and the sixth voter may be as near as the usual tol
    cpu = ManifoldKNNClassifier(device="cpu", **params).fit(X, y)
    ours = classifier(device, **params).fit(X, y)
    assert_alike(ours, cpu)
    new = X + 0.02 * np.random.default_rng(0).normal(size=X.shape)
    np.testing.assert_allclose(ours.predict_proba(new), cpu.predict_proba(new), atol=1e-3)
    assert (ours.predict(new) == cpu.predict(new)).mean() > 0.998
    assert (ours.predict(X) == ours.transduction_)[y < 0].all()
    weights, voters = ours.kneighbors(new[:50])
    np.testing.assert_allclose(weights[:, 0], cpu.kneighbors(new[:50])[0][:, 0], rtol=1e-2)
    assert (voters[:, 0] == cpu.kneighbors(new[:50])[1][:, 0]).mean() > 0.9


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_links_by_hand(digits, device, vote):
    X, truth, y = digits
    free = np.flatnonzero(y < 0)[:400]
    pairs = free.reshape(-1, 2)
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    links = {"must_link": pairs[same], "cannot_link": pairs[~same]}
    cpu, ours = (classifier(d, vote=vote, tol=1e-6).fit(X, y, **links) for d in ("cpu", device))
    assert_alike(ours, cpu)
    one, other = pairs[same].T
    assert (ours.fitted_.graph.log_weights[one, other] == 0.0).all()  # log 1
    rows = np.flatnonzero(y < 0)[400:402]
    for clf in (ours, cpu):
        clf.set_labels(rows, truth[rows])
    assert_alike(ours, cpu)


@pytest.mark.parametrize("device", DEVICES)
def test_one_label_per_class(digits, device):
    X, truth, _ = digits
    cpu, ours = (classifier(d, tol=1e-6).fit(X, labeled(truth, 1)) for d in ("cpu", device))
    assert_alike(ours, cpu)
    assert not ours.calibrated_
    assert ours.hidden_labels_ is None


@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_without_room_on_the_device_the_cpu_walks(digits, monkeypatch, caplog, vote):
    X, _, y = digits
    expected = classifier("cpu", vote=vote).fit(X, y)
    for name in ("walk_by_class_on_device", "walk_by_label_on_device", "hidden_on_device"):
        monkeypatch.setattr(module, name, no_room)
    with caplog.at_level("INFO", logger="manifoldknn"):
        clf = classifier(vote=vote).fit(X, y)
    assert "going on with the CPU" in caplog.text
    np.testing.assert_allclose(clf.label_distributions_, expected.label_distributions_, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "reason"), [({"alpha": 0.9}, "walks are short"), ({"alpha": 0.9999}, "rows are few")]
)
def test_the_way_of_the_walk_and_its_reason_are_told(digits, caplog, params, reason):
    X, _, y = digits
    with caplog.at_level("INFO", logger="manifoldknn"):
        clf = classifier(**params).fit(X, y)
        clf.predict(X[:5])
    told = f"way of the walk: iterate on cpu (a device always iterates; {reason})"
    assert told in caplog.text
    assert "the CPU" not in caplog.text


def test_what_the_cpu_does_instead_is_told(digits, caplog):
    X, _, y = digits
    found = ExactIndex(X).among_samples(30)
    with caplog.at_level("INFO", logger="manifoldknn"):
        clf = classifier(neighbors=(found.indices, found.distances)).fit(X, y)
        assert "neighbours are taken from the CPU" in caplog.text
        clf.partial_fit(X[:3] + 0.01, refresh=False)
        clf.predict(X[:5])
    why = "the device does not have all samples"
    assert f"new rows are answered on the CPU ({why})" in caplog.text


@any_problem
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(4, 40),
    d=st.integers(1, 4),
    grid=st.booleans(),
    graph=st.sampled_from(["pruned", "union"]),
    neighbors=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_small_problem(n, d, grid, graph, neighbors, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d)).astype(float) if grid else rng.normal(size=(n, d))
    X[0] = X.max() + 1
    y = np.where(rng.random(n) < 0.4, rng.integers(0, 3, n), -1)
    y[:2] = 0, 1
    params = {"graph": graph, "graph_neighbors": neighbors, "tol": 1e-6}
    cpu = ManifoldKNNClassifier(device="cpu", **params).fit(X, y)
    ours = classifier(**params).fit(X, y)
    np.testing.assert_allclose(ours.label_distributions_, cpu.label_distributions_, atol=1e-4)
    assert (ours.unreached_ == cpu.unreached_).all()
    Q = rng.normal(size=(10, d))
    nearest = ExactIndex(X).query(Q, min(neighbors + 1, n)).distances
    clear = np.ones(10, bool) if nearest.shape[1] <= neighbors else nearest[:, -1] > nearest[:, -2]
    np.testing.assert_allclose(ours.predict_proba(Q)[clear], cpu.predict_proba(Q)[clear], atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_two_fits_are_identical(digits, device):
    X, _, y = digits
    one, two = (classifier(device).fit(X, y) for _ in range(2))
    assert (one.label_distributions_ == two.label_distributions_).all()
    assert (one.predict_proba(X + 0.01) == two.predict_proba(X + 0.01)).all()


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
def test_tensors_in_arrays_out(digits, device):
    X, truth, y = digits
    expected = classifier(device).fit(X, y)
    clf = classifier(device).fit(torch.from_numpy(X).requires_grad_(), torch.from_numpy(y))
    assert (clf.transduction_ == expected.transduction_).all()
    assert type(clf.transduction_) is np.ndarray
    answers = clf.predict(torch.from_numpy(X[:9]))
    assert type(answers) is np.ndarray
    assert (answers == expected.predict(X[:9])).all()
    clf.partial_fit(torch.from_numpy(X[:5]), torch.from_numpy(truth[:5]))
    assert (clf.transduction_[-5:] == truth[:5]).all()
    assert clf.score_samples(torch.from_numpy(X[:3])).shape == (3,)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_auto_follows_a_tensor_on_the_gpu(digits, dtype):
    X, _, y = digits
    there = torch.from_numpy(X).to("cuda", dtype)
    clf = ManifoldKNNClassifier().fit(there, torch.from_numpy(y).cuda())
    assert clf.fitted_.steps.device.type == "cuda"
    cpu = ManifoldKNNClassifier().fit(
        there.float().cpu().numpy().astype(clf.fitted_.index.X.dtype), y
    )
    assert (clf.transduction_ == cpu.transduction_).mean() > 0.998
    assert (clf.predict(there) == cpu.predict(clf.fitted_.index.X)).mean() > 0.998
    with pytest.raises(ValueError, match="contains NaN"):
        clf.predict(torch.full_like(there[:2], torch.nan))


@pytest.mark.parametrize("device", DEVICES)
def test_everything_that_follows_a_fit(digits, device, tmp_path):
    X, truth, y = digits
    new = X[:60] + 0.02
    models = []
    for name in (device, "cpu"):
        clf = classifier(name).fit(X, y)
        clf.partial_fit(new[:40])
        clf.set_labels([3, 4], truth[[3, 4]])
        clf.partial_fit(new[40:], refresh=False)
        assert clf.predict(new).shape == (60,)
        clf.refresh()
        models.append(clf)
    ours, cpu = models
    np.testing.assert_allclose(ours.label_distributions_, cpu.label_distributions_, atol=1e-4)
    np.testing.assert_allclose(ours.score_samples(new), cpu.score_samples(new), rtol=1e-6)
    assert (ours.is_off_manifold() == cpu.is_off_manifold()).all()
    assert suggest(ours, 5).rows.tolist() == suggest(cpu, 5).rows.tolist()
    assert find_label_errors(ours).rows.tolist() == find_label_errors(cpu).rows.tolist()
    assert inspect(ours).n_edges == inspect(cpu).n_edges
    whole = classifier(device).fit(ours.fitted_.index.X, ours.fitted_.labels.codes)
    np.testing.assert_allclose(
        ours.label_distributions_, whole.label_distributions_, rtol=0, atol=1e-6
    )
    persist.save(ours, tmp_path / "model.mknn")
    others = persist.load(tmp_path / "model.mknn"), pickle.loads(pickle.dumps(ours))
    for other in (*others, copy.deepcopy(ours)):
        assert (other.predict_proba(new) == ours.predict_proba(new)).all()
        assert other.device == device


def test_the_device_of_a_model_can_be_changed(digits):
    X, _, y = digits
    clf = classifier().fit(X, y)
    clf.set_params(device="cpu").refresh()
    assert isinstance(clf.fitted_.index.first, ExactIndex)
    assert_alike(clf, ManifoldKNNClassifier(device="cpu").fit(X, y))


@pytest.mark.parametrize("neighbors", ["exact", "inverted", "lists", "searcher"])
def test_neighbors_of_choice(digits, neighbors):
    X, _, y = digits
    brought = neighbors
    if neighbors == "lists":
        found = ExactIndex(X).among_samples(30)
        brought = found.indices, found.distances
    elif neighbors == "searcher":
        brought = NearestNeighbors()
    clf = classifier(neighbors=brought).fit(X, y)
    cpu = ManifoldKNNClassifier(device="cpu", neighbors="exact").fit(X, y)
    assert (clf.transduction_ == cpu.transduction_).mean() > 0.98
    assert (clf.predict(X + 0.01) == cpu.predict(X + 0.01)).mean() > 0.98


def test_unreached_rows_are_answered_as_on_the_cpu():
    X, truth = make_moons(80, noise=0.03, random_state=0)
    X[40:] += 50
    y = np.full(80, -1)
    y[:40] = np.where(np.arange(40) < 4, truth[:40], -1)
    params = {"graph": "union", "graph_neighbors": 4}
    answers = []
    for device in ("cpu", "torch:cpu"):
        with pytest.warns(UserWarning, match="connected to no labelled sample"):
            clf = classifier(device, **params).fit(X, y)
        with pytest.warns(UserWarning, match="connected to no labelled sample"):
            answers.append((clf.unreached_, clf.transduction_, clf.predict(X + 0.01)))
    for one, two in zip(*answers):
        assert (one == two).all()


@pytest.mark.parametrize(
    ("params", "X", "message"),
    [
        (
            {"metric": "manhattan"},
            None,
            "metric='manhattan' is not available on device='torch:cpu'",
        ),
        ({"graph": "full"}, None, "graph='full' is not available on device='torch:cpu'"),
        ({}, "sparse", "X is sparse, which device='torch:cpu' cannot use: use device='cpu'"),
        ({"neighbors": "other"}, None, "neighbors='other' must be one of"),
    ],
)
def test_what_only_the_cpu_does(digits, params, X, message):
    from scipy import sparse

    rows, _, y = digits
    clf = classifier(**params)
    with pytest.raises(ValueError, match=message):
        clf.fit(sparse.csr_array(rows) if X else rows, y)
    assert not hasattr(clf, "classes_")


def test_too_little_memory_is_said_before_the_work(digits, monkeypatch):
    X, _, y = digits
    monkeypatch.setattr(module, "available_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"Fitting 900 rows needs about .* GB on the host"):
        classifier().fit(X, y)


@pytest.mark.parametrize(
    ("params", "dtype", "per_value", "advice"),
    [
        ({}, np.float32, 8, "predict the others.$"),
        ({}, np.float64, 12, "predict the others, or pass X as float32.$"),
        ({"neighbors": "inverted"}, np.float32, 12, "predict the others.$"),
        ({"neighbors": "inverted"}, np.float64, 16, "or pass X as float32.$"),
        ({"metric": "cosine"}, np.float64, 16, "or pass X as float32.$"),
        ({"metric": "cosine"}, np.float32, 12, "predict the others.$"),
        ({"metric": "cosine", "neighbors": "inverted"}, np.float64, 16, "predict the others.$"),
        ({"metric": "cosine", "neighbors": "inverted"}, np.float32, 16, "predict the others.$"),
    ],
    ids=str,
)
def test_memory_of_the_device_is_counted_by_true_sizes(
    digits, monkeypatch, params, dtype, per_value, advice
):
    X, _, y = digits
    needed = module._BASE + X.size * per_value + len(X) * 30 * module._PER_CANDIDATE
    monkeypatch.setattr(module.TorchSteps, "_free_bytes", lambda _: needed - 1)
    clf = classifier(**params)
    with pytest.raises(MemoryError, match=rf"about 0.5 GB on torch:cpu and .*{advice}"):
        clf.fit(X.astype(dtype), y)
    assert not hasattr(clf, "classes_")
    monkeypatch.setattr(module.TorchSteps, "_free_bytes", lambda _: needed)
    clf.fit(X.astype(dtype), y)


def test_free_memory_is_asked_of_a_gpu(monkeypatch):
    monkeypatch.setattr(module, "free_bytes", lambda device: 7 if device.index == 1 else 0)
    assert module.TorchSteps(torch.device("cuda", 1))._free_bytes() == 7
    assert module.TorchSteps(torch.device("cpu"))._free_bytes() is None


@pytest.mark.parametrize("how", ["stream", "lists", "no room"])
@pytest.mark.parametrize("value", [1e150, np.nan, np.inf])
def test_rows_that_the_device_does_not_see_are_looked_through(digits, monkeypatch, how, value):
    X, _, y = digits
    found = ExactIndex(X).among_samples(30)
    lists = {"neighbors": (found.indices, found.distances)} if how == "lists" else {}
    clf = classifier(**lists).fit(X, y)
    if how == "stream":
        clf.partial_fit(X[:5] + 0.01, refresh=False)
    elif how == "no room":
        monkeypatch.setattr(module, "KnownSimilarities", no_room)
    new = X[:4].copy()
    new[2, 3] = value
    with pytest.raises(ValueError, match="too large" if value == 1e150 else "Input X contains"):
        clf.predict(new)


def no_room(*_, **__):
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED")


def test_weights_without_room_on_the_device_are_combined_on_the_cpu(digits, monkeypatch):
    X, _, y = digits
    clf = classifier().fit(X, y)
    new = X + 0.01
    expected = clf.predict_proba(new)
    again = classifier().fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(module, "KnownSimilarities", no_room)
        np.testing.assert_allclose(again.predict_proba(new), expected, atol=1e-6)
        assert again.fitted_.steps._known is None
        patch.setattr(module, "KnownSimilarities", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            again.predict(new)
    assert (again.predict_proba(new) == expected).all()


def test_samples_are_sent_once(digits, monkeypatch):
    X, truth, y = digits
    clf = classifier().fit(X, y)
    sent, move = [], module.moved
    monkeypatch.setattr(module, "moved", lambda part, *to: sent.append(part) or move(part, *to))
    clf.set_labels([7], [truth[7]])
    assert any(part is clf.fitted_.index.first.device_rows.exact for part in sent)
    assert not any(part is clf.fitted_.index.X for part in sent)
    again = classifier().fit(X, clf.fitted_.labels.codes)
    np.testing.assert_allclose(clf.label_distributions_, again.label_distributions_, atol=1e-6)


@pytest.mark.parametrize("file", ["persist", "pickle"])
@pytest.mark.parametrize("changed", [False, True])
def test_everything_goes_on_where_pytorch_is_gone(digits, monkeypatch, tmp_path, file, changed):
    X, truth, y = digits
    later = {"graph_neighbors": 9} if changed else {}
    ours = classifier(tol=1e-6).fit(X, y).set_params(**later)
    cpu = classifier("cpu", tol=1e-6).fit(X, y).set_params(**later)
    persist.save(ours, tmp_path / "model.mknn")
    written = pickle.dumps(ours)
    monkeypatch.setattr(tensors.importlib.util, "find_spec", lambda _: None)
    with pytest.warns(DeviceWarning, match="fitted on torch:cpu, which this machine"):
        clf = pickle.loads(written) if file == "pickle" else persist.load(tmp_path / "model.mknn")
    new = X[:250] + 0.02  # from here on, a warning would be an error
    for model in (clf, cpu):
        model.predict(new[:9])
        model.partial_fit(new[:20], refresh=False)
        model.partial_fit(new[20:])  # more than a fifth: it refreshes by itself
        model.set_labels([3, 4], truth[[3, 4]])
        model.refresh()
    np.testing.assert_allclose(clf.label_distributions_, cpu.label_distributions_, atol=1e-4)
    np.testing.assert_allclose(clf.predict_proba(new), cpu.predict_proba(new), atol=1e-4)
    clf.set_params(device="cuda")
    with pytest.raises(ImportError, match="device='cuda' needs PyTorch"):
        clf.refresh()
    clf.set_params(device="cpu").refresh()
    np.testing.assert_allclose(clf.label_distributions_, cpu.label_distributions_, atol=1e-4)


def test_a_device_that_was_set_is_chosen_with_the_next_walk(digits):
    X, _, y = digits
    clf = classifier().fit(X, y)
    clf.set_params(device="auto").refresh()  # rows are kept as arrays, so that is the CPU
    assert isinstance(clf.fitted_.index.first, ExactIndex)
    clf.set_params(device="torch:cpu").set_labels([0], [y.max()])
    assert isinstance(clf.fitted_.index.first, TorchIndex)
    clf.set_params(n_neighbors=3).refresh()
    assert isinstance(clf.fitted_.index.first, TorchIndex)


def test_a_device_of_torch_as_parameter(digits, tmp_path):
    X, _, y = digits
    clf = clone(ManifoldKNNClassifier(device=torch.device("cpu"))).fit(X, y)
    assert isinstance(clf.fitted_.index.first, ExactIndex)
    persist.save(clf, tmp_path / "model.mknn")
    assert persist.load(tmp_path / "model.mknn").device == "cpu"
    clf.set_params(device="cpu").refresh()
    assert clf.transduction_.shape == (900,)


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bfloat16, torch.float32])
def test_tensors_to_score_with(digits, device, dtype):
    X, truth, y = digits
    clf = classifier(device).fit(X, y)
    expected = accuracy_score(truth[:50], clf.predict(X[:50]))
    tensor = torch.from_numpy(truth[:50]).to(dtype)
    if dtype.is_floating_point:
        tensor.requires_grad_()
    assert clf.score(torch.from_numpy(X[:50]), tensor) == expected
    weights = torch.arange(50.0, requires_grad=True)
    assert clf.score(X[:50], tensor, sample_weight=weights) == pytest.approx(
        accuracy_score(truth[:50], clf.predict(X[:50]), sample_weight=np.arange(50.0))
    )


def test_labels_and_rows_as_tensors(digits):
    X, truth, y = digits
    rows = np.flatnonzero(y < 0)[:4]
    expected = ManifoldKNNClassifier().fit(X, y).set_labels(rows, truth[rows])
    clf = ManifoldKNNClassifier().fit(X, y)
    clf.set_labels(torch.from_numpy(rows), torch.from_numpy(truth[rows]))
    assert (clf.fitted_.labels.codes == expected.fitted_.labels.codes).all()
    mask = torch.zeros(len(X), dtype=torch.bool)
    mask[torch.from_numpy(rows)] = True
    clf.set_labels(mask, torch.tensor(7))
    assert (clf.transduction_[rows] == 7).all()
    clf.set_labels(torch.tensor(int(rows[0])), torch.tensor(3.0, requires_grad=True).to(torch.int8))
    assert clf.transduction_[rows[0]] == 3
    clf.set_labels(torch.from_numpy(rows), torch.tensor(-1))
    assert (
        clf.fitted_.labels.codes == ManifoldKNNClassifier().fit(X, y).fitted_.labels.codes
    ).all()


def test_no_neighbour_library_of_the_cpu_is_imported():
    code = (
        "import sys, numpy as np; from manifoldknn import ManifoldKNNClassifier\n"
        "X = np.random.default_rng(0).normal(size=(300, 5))\n"
        "y = np.full(300, -1); y[:4] = 0, 1, 0, 1\n"
        "for engine in ('auto', 'inverted'):\n"
        "    clf = ManifoldKNNClassifier(device='torch:cpu', neighbors=engine).fit(X, y)\n"
        "    clf.predict(X)\n"
        "found = {'faiss', 'hnswlib', 'pynndescent', 'annoy'} & set(sys.modules)\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize("device", DEVICES)
def test_a_partner_works_on_the_cpu(device):
    X = np.random.default_rng(0).random((200, 8))
    y = np.where(np.arange(200) < 40, X[:, 0] > 0.5, -1)
    cpu = ManifoldKNNClassifier(partner="forest").fit(X, y)
    there = torch.as_tensor(X, device=device.removeprefix("torch:"))
    for rows in (X, there):
        ours = classifier(device, partner="forest").fit(rows, y)
        assert ours.partner_weight_ == pytest.approx(cpu.partner_weight_, rel=0.01)
        assert ours.partner_weight_ > 0
        assert_alike(ours, cpu, atol=1e-2)
        np.testing.assert_allclose(
            ours.predict_proba(rows[:9] + 0.01), cpu.predict_proba(X[:9] + 0.01), atol=1e-2
        )
