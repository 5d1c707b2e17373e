from __future__ import annotations

import pytest

from tritonpy_load_generator.inputs.shapes import checked_shapes, fits, shape_of
from tritonpy_load_generator.options import BadUsage

from .metadata import INTS, VARIED, model


def test_a_shape_is_the_models_or_the_given_one():
    given = checked_shapes(model(INTS, VARIED), [("V", (7, 2))])
    assert shape_of(INTS, given, "m") == (3,)
    assert shape_of(VARIED, given, "m") == (7, 2)


def test_a_missing_variable_dimension_is_reported_with_an_example():
    with pytest.raises(BadUsage, match=r"input 'V' of model 'm'.*--shape V:8,2$"):
        shape_of(VARIED, {}, "m")


def test_unknown_inputs_and_wrong_ranks_are_rejected():
    with pytest.raises(BadUsage, match="has no such input; it has A, V"):
        checked_shapes(model(INTS, VARIED), [("B", (1,))])
    with pytest.raises(BadUsage, match=r"V:7 does not fit the model's \[-1, 2\]$"):
        checked_shapes(model(VARIED), [("V", (7,))])
    with pytest.raises(BadUsage, match="set the batch size with -b"):
        checked_shapes(model(VARIED, batch=8), [("V", (4, 7, 2))])


def test_only_variable_dimensions_accept_any_size():
    assert fits((5, 2), (-1, 2))
    assert not fits((5, 3), (-1, 2))
    assert not fits((2,), (-1, 2))
