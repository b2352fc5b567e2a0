"""What is public, and that nothing else is by accident."""

import importlib
import pkgutil

import manifoldknn

NAMES = {
    "ManifoldKNNClassifier",
    "TableEncoder",
    "as_published",
    "constrained_graph",
    "estimate_memory",
    "find_label_errors",
    "inspect",
    "intrinsic_dimension",
    "label",
    "report",
    "simplex_weights",
    "suggest",
    "tired_random_walk",
    "walk_weights",
}
MODULES = {
    "baselines": {
        "Baseline",
        "GeodesicKNNClassifier",
        "KernelNaiveBayes",
        "SUPERVISED",
        "WeightedKNNClassifier",
        "supervised",
    },
    "datasets": {
        "PAPER_SETS",
        "PaperData",
        "load_paper",
        "make_arch_and_s",
        "make_circle_and_strip",
        "make_knot",
        "make_two_circles",
    },
    "distributed": {"DistributedManifoldKNN"},
    "exceptions": {
        "ClusterLostError",
        "ColumnWarning",
        "DeviceWarning",
        "EverythingLabeledWarning",
        "GraphSizeWarning",
        "ManifoldKNNWarning",
        "MetricWarning",
        "OneClassWarning",
        "TooFewLabelsError",
        "UnlabeledScoreWarning",
        "UnreachedError",
        "UnreachedWarning",
        "warn_caller",
    },
    "model_selection": {"SemiSupervisedSplit", "TransductiveClassifier", "Tuned", "tuned"},
    "persist": {"ModelFileError", "load", "load_with_extra", "save"},
    "plots": {
        "ConfidenceDisplay",
        "DecisionDisplay",
        "GraphDisplay",
        "plot_classes",
        "plot_confidence",
        "plot_decision",
        "plot_graph",
    },
}
ROOMS = {
    "base", "cli", "device", "extend", "files", "graph", "insight", "labelling", "model",
    "reporting", "reproduction", "search", "tables", "vote", "walk",
}  # fmt: skip


def test_public_names():
    assert set(manifoldknn.__all__) == NAMES
    for name in NAMES:
        assert getattr(manifoldknn, name) is not None


def test_public_modules_keep_their_names():
    for module, names in MODULES.items():
        found = importlib.import_module(f"manifoldknn.{module}")
        assert set(found.__all__) == names, module


def test_everything_else_lives_in_a_room():
    found = {module.name for module in pkgutil.iter_modules(manifoldknn.__path__)}
    assert found == {*MODULES, *ROOMS, "classifier", "__main__"}
