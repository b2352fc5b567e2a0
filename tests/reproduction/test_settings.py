"""The settings that the report shows are those in use."""

from manifoldknn.reproduction import methods
from manifoldknn.reproduction.methods import GEODESIC_LINKS, GUIDED_SVM, settings_table


def test_every_method_has_a_line_and_its_grid():
    lines = {line[0]: line for line in settings_table().rows}
    assert set(lines) == set(methods._ANSWERS)
    grid = methods.baseline("DT", k=1).grid["ccp_alpha"]
    assert lines["DT"][2] == "ccp_alpha: " + ", ".join(f"{price:g}" for price in grid)
    assert lines["ANN"][2] == "hidden_layer_sizes: 20, 5, 10, 40"
    assert lines["gkNN"][2].endswith(", ".join(map(str, GEODESIC_LINKS)))
    assert lines[GUIDED_SVM][2] == "C: 2^-5, 2^-3, …, 2^15; gamma: 2^3, 2^1, …, 2^-15"
    assert lines["kNN"][2] == "nothing"


def test_what_is_fixed_is_read_from_the_estimators():
    lines = {line[0]: line for line in settings_table().rows}
    network = methods.baseline("ANN", k=1).estimator
    assert network.solver in lines["ANN"][1]
    assert methods.baseline("wkNN", k=1).estimator.kernel in lines["wkNN"][1]
    said = [lines[name][1] for name in methods.SPREADING]
    assert said == [
        "kernel knn with 7 neighbours, α = 0.2, at most 30 steps",
        "kernel knn with 10 neighbours, α = 0.99, at most 10000 steps",
        "kernel knn with 7 neighbours, α = 0.2, 200 steps",
    ]
