"""The numbers that the paper prints, each with where it stands.

Tables carry the numbers that the published article gives them. Its figures print no numbers: what
the text says about them is all that is known of their values.
"""

from typing import NamedTuple

DATA_SETS = ("usps", "segmentation", "banknote", "pendigits", "multifeature", "satlog")


class Error(NamedTuple):
    """A mean error and its standard deviation, in percent."""

    mean: float
    deviation: float


# Table "Reconstruction error of the synthetic data sets (%)": data sets 1, 2 and 3.
RECONSTRUCTION = {"samples": (0.0724, 0.2734, 0.1606), "weights": (0.5075, 1.0524, 1.9061)}

# Table "Experimental results on real-world data sets (error rate: %)": 3 labels per class, 10 runs.
_METHODS = ("SVM", "ANN", "NB", "DT", "mkNN")
_ERRORS = {
    "usps": ((77.35, 4.6), (40.96, 4.3), (34.73, 4.9), (73.96, 8.4), (19.37, 3.9)),
    "segmentation": ((66.54, 8.7), (42.54, 3.8), (50.83, 4.3), (49.55, 2.6), (24.18, 4.5)),
    "banknote": ((70.01, 14.7), (23.03, 6.2), (28.37, 7.8), (44.43, 0.4), (9.73, 6.9)),
    "pendigits": ((49.41, 12.3), (44.02, 27.4), (42.36, 6.2), (80.83, 11.3), (12.51, 2.3)),
    "multifeature": ((82.89, 6.4), (50.53, 24.2), (26.89, 2.9), (76.14, 2.9), (15.36, 2.3)),
    "satlog": ((57.26, 17.1), (30.15, 4.9), (28.81, 5.9), (72.55, 13.5), (21.07, 8.0)),
}
ERRORS = {
    data: {method: Error(*both) for method, both in zip(_METHODS, row, strict=True)}
    for data, row in _ERRORS.items()
}

# The text on the figure of deviations: with few labels "the error rates of SVM on data set usps
# concentrate closely around 95".
USPS_SVM_AT_ONE_LABEL = 95.0

# Table "Comparison of overall time for training and testing on three data sets (sec)", at these
# percentages of training samples.
RATIOS = (10, 25, 50)
_TIMED = ("SVM", "DT", "ANN", "NB", "kNN", "wkNN", "gkNN", "mkNN")
_SECONDS = {
    ("banknote", 10): (0.01, 0.14, 0.23, 0.09, 0.03, 0.02, 1.23, 0.19),
    ("banknote", 25): (0.01, 0.19, 0.24, 0.09, 0.04, 0.03, 1.23, 0.20),
    ("banknote", 50): (0.02, 0.29, 0.27, 0.08, 0.05, 0.05, 1.26, 0.20),
    ("satlog", 10): (0.47, 0.43, 0.59, 7.14, 0.13, 0.14, 31.99, 6.01),
    ("satlog", 25): (1.78, 1.16, 1.58, 7.56, 0.24, 0.29, 32.55, 6.08),
    ("satlog", 50): (5.12, 3.11, 4.01, 7.61, 0.31, 0.40, 32.82, 6.30),
    ("pendigits", 10): (0.44, 0.78, 0.70, 8.70, 0.22, 0.28, 149.14, 25.27),
    ("pendigits", 25): (0.86, 2.28, 2.65, 8.46, 0.41, 0.59, 146.89, 26.11),
    ("pendigits", 50): (1.55, 6.09, 5.06, 6.93, 0.54, 0.80, 145.71, 25.35),
}
SECONDS = {case: dict(zip(_TIMED, row, strict=True)) for case, row in _SECONDS.items()}

# The text on the figure of online samples: 1000 of satlog, one by one.
ONLINE_SECONDS = {("satlog", 1000): {"standard": 9100.0, "sequential": 14.0}}
