"""The numbers that the paper prints; ``published.toml`` says where each stands."""

from typing import NamedTuple

from manifoldknn.reproduction.experiment import read_toml


class Error(NamedTuple):
    """A mean error and its standard deviation, in percent."""

    mean: float
    deviation: float


_PRINTED = read_toml("published.toml")
_ERRORS, _SECONDS = _PRINTED["errors"], _PRINTED["seconds"]
DATA_SETS = tuple(_ERRORS["sets"])
RATIOS = tuple(_SECONDS["ratios"])  # percentages of training samples
RECONSTRUCTION: dict[str, list[float]] = _PRINTED["reconstruction"]
USPS_SVM_AT_ONE_LABEL: float = _PRINTED["deviations"]["usps_svm_at_one_label"]
ERRORS = {
    data: {method: Error(*both) for method, both in zip(_ERRORS["methods"], row, strict=True)}
    for data, row in _ERRORS["sets"].items()
}
SECONDS: dict[tuple[str, int], dict[str, float]] = {
    (data, ratio): dict(zip(_SECONDS["methods"], row, strict=True))
    for data, rows in _SECONDS["sets"].items()
    for ratio, row in zip(RATIOS, rows, strict=True)
}
ONLINE_SECONDS: dict[tuple[str, int], dict[str, float]] = {
    (data, int(count)): times
    for data, counts in _PRINTED["online_seconds"].items()
    for count, times in counts.items()
}
