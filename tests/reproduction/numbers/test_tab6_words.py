"""What the rows of tab6 say, held against rows made up."""

import numpy as np
import pytest

from experiment_kit import check_tables
from manifoldknn.reproduction.methods import DEFAULT, GUIDED_SVM, PUBLISHED
from manifoldknn.reproduction.numbers.tab6 import (
    EXPERIMENT,
    UNSCALED,
    findings,
    headline,
    tables,
    verdict,
)
from manifoldknn.reproduction.published import ERRORS


def rows_of(errors, data="usps"):
    return [
        {"data": data, "method": method, "run": run, "error": error}
        for method, values in errors.items()
        for run, error in enumerate(values)
    ]


ROWS = rows_of(
    {
        "SVM": [10.0, 20.0],
        "kNN": [40.0, 50.0],
        DEFAULT: [9.0, 22.0],
        PUBLISHED: [5.0, 7.0],
        UNSCALED: [19.0],
    }
)


def test_tables_subtract_the_published_numbers():
    beside, everyone, rivals, scaling = tables(ROWS)
    check_tables([beside, everyone, rivals, scaling])
    lines = {(line[0], line[1]): line for line in beside.rows}
    assert len(lines) == 6 * 6
    svm = lines["usps", "SVM"]
    assert svm[2:] == ["15.00 ± 7.07", "77.35 ± 4.6", round(15 - 77.35, 2), 2]
    assert lines["usps", DEFAULT][4] == round(15.5 - ERRORS["usps"]["mkNN"].mean, 2)
    assert lines["satlog", "SVM"][2:] == ["–", "57.26 ± 17.1", None, 0]
    assert [line[0] for line in everyone.rows] == ["SVM", "kNN", PUBLISHED, DEFAULT]
    spread = np.std([-1.0, 2.0], ddof=1)
    assert rivals.rows == [["usps", 15.5, "SVM", 15.0, f"+0.50 ± {spread:.2f}", "1 of 2", "–"]]
    assert scaling.rows[0][3] == round(6 - 19.37, 2)
    assert scaling.rows[0][5] == round(19 - 19.37, 2)


def test_the_other_grid_is_a_rival_too():
    rows = ROWS + rows_of({GUIDED_SVM: [1.0, 2.0]})
    assert tables(rows)[2].rows[0][2:4] == [GUIDED_SVM, 1.5]
    single = rows_of({"SVM": [10.0], DEFAULT: [9.0]})
    assert tables(single)[2].rows[0][4:] == ["-1.00", "1 of 1", "–"]


@pytest.mark.parametrize(
    ("mean", "spread", "said"),
    [(-1.0, 0.5, "ahead"), (1.0, 0.5, "behind"), (-1.0, 4.0, "level"), (0.0, 0.0, "level")],
)
def test_verdicts(mean, spread, said):
    shape = np.array([-1.0, 1.0, -1.0, 1.0, 0.0])
    assert verdict(mean + spread * shape) == said
    assert verdict((mean + spread * shape)[:4]) == "–"


def test_headline_has_a_line_per_set():
    table = headline(ROWS)
    check_tables([table])
    assert table.rows[0] == ["usps", "19.4", "6.0 ± 1.4", "15.5 ± 9.2", "15.0 SVM", "2"]
    assert table.rows[1] == ["segmentation", "24.2", "–", "–", None, ""]


def test_findings_follow_the_rows():
    said = findings(ROWS)
    assert said[0] == "Our default is at or below the published mkNN on 1 of 1 sets."
    assert "with scaled features on 0 of 1 sets measured (not on usps (-13.4))" in said[1]
    assert "with features as they are on 1 of 1 sets measured." in said[1]
    assert "on 0 of 1 sets; not on usps (SVM ahead by 0.50, too few runs to tell)." in said[2]
    assert said[3] == "Of 1 published errors of SVM, ANN, NB and DT, 1 are higher than ours."
    worse = rows_of({DEFAULT: [30.0] * 5, "SVM": [20.0, 21.0, 22.0, 23.0, 24.0], "NB": [40.0] * 5})
    said = findings(worse)
    assert said[0].endswith("on 0 of 1 sets; not on usps (10.63 points above).")
    assert "usps (SVM ahead by 8.00, standard error 0.71: behind)" in said[1]
    assert said[2].endswith("1 are higher than ours; not NB on usps (+5.3).")
    assert findings([]) == []


def test_how_settings_were_found_is_told():
    text = " ".join((*EXPERIMENT.notes, *EXPERIMENT.differences))
    for words in ("chosen while looking", "MNIST", "54 to 63 labels", "whether it scaled"):
        assert words in text
