"""All of a change, or nothing of it."""

import pytest

from manifoldknn.model.fitted import all_or_nothing


class Model:
    pass


def change_and_fail(model):
    with all_or_nothing(model):
        model.changed, model.new = [3], 4
        del model.kept
        raise KeyboardInterrupt


def test_everything_is_put_back():
    model = Model()
    model.kept, model.changed = 1, [2]
    changed = model.changed
    with pytest.raises(KeyboardInterrupt):
        change_and_fail(model)
    assert model.__dict__ == {"kept": 1, "changed": [2]}
    assert model.changed is changed


def test_what_succeeds_stays():
    model = Model()
    with all_or_nothing(model):
        model.new = 4
    assert model.new == 4
