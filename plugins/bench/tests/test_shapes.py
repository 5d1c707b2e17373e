from __future__ import annotations

import pytest

from tritonpy_bench.inputs.shapes import fits, given_shapes, shape_of
from tritonpy_bench.options import BadUsage

from .facts import INTS, VARIED, model


def test_a_shape_is_the_models_or_the_given_one():
    given = given_shapes(model(INTS, VARIED), [("V", (7, 2))])
    assert shape_of(INTS, given, "m") == (3,)
    assert shape_of(VARIED, given, "m") == (7, 2)


def test_what_varies_is_asked_for_with_an_example():
    with pytest.raises(BadUsage, match=r"input 'V' of model 'm'.*--shape V:8,2$"):
        shape_of(VARIED, {}, "m")


def test_shapes_of_other_inputs_and_other_ranks_are_refused():
    with pytest.raises(BadUsage, match="has no such input; it has A, V"):
        given_shapes(model(INTS, VARIED), [("B", (1,))])
    with pytest.raises(BadUsage, match=r"V:7 does not fit the model's \[-1, 2\]$"):
        given_shapes(model(VARIED), [("V", (7,))])
    with pytest.raises(BadUsage, match="-b says how large it is"):
        given_shapes(model(VARIED, batch=8), [("V", (4, 7, 2))])


def test_only_dimensions_that_vary_are_free():
    assert fits((5, 2), (-1, 2))
    assert not fits((5, 3), (-1, 2))
    assert not fits((2,), (-1, 2))
