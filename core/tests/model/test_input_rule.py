from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.model.request_check import MAX_INLINE_STRING_BYTES, InputRule
from tritonpy_protos.model_config_pb2 import DataType, ModelInput
from tritonpy_types import DATATYPES, Tensor


def rule(dims, data_type="TYPE_INT32", batched=True, **options):
    return InputRule(
        ModelInput(name="x", data_type=DataType.Value(data_type), dims=dims, **options),
        batched,
        "m",
    )


def tensor(shape, size=None, datatype="INT32"):
    size = prod(shape) * 4 if size is None else size
    return Tensor.from_buffer("x", datatype, shape, bytes(size))


SIZES = st.integers(-3, 5)


@given(
    st.lists(st.integers(1, 4) | st.just(-1), min_size=1, max_size=4),
    st.lists(SIZES, max_size=5),
    st.data(),
)
def test_a_tensor_fits_exactly_if_it_has_no_error(dims, shape, data):
    if data.draw(st.booleans()):  # make matching shapes likely
        shape = [
            data.draw(st.integers(0, 3)),
            *[dim if dim > 0 else data.draw(SIZES) for dim in dims],
        ]
    size = data.draw(st.sampled_from([max(prod(shape) * 4, 0), 4, 0]))
    batched = data.draw(st.booleans())
    found, wanted = tensor(tuple(shape), size), rule(dims, batched=batched)
    sizes = shape[1:] if batched else shape
    sound = (
        len(shape) == len(dims) + batched
        and all(dim in (-1, each) for dim, each in zip(dims, sizes, strict=True))
        and min(shape) >= 0
        and prod(shape) * 4 == size
    )
    assert wanted.fits(found) == sound
    assert (wanted.find_error(found) is None) == sound


@pytest.mark.parametrize(
    "kind",
    [kind for kind in DATATYPES.values() if kind.name != "BYTES"],
    ids=lambda kind: kind.name,
)
def test_every_fixed_size_type_is_measured(kind):
    wanted = rule([3], kind.config_name)
    assert wanted.row_bytes == 3 * kind.itemsize
    assert wanted.fits(tensor((2, 3), 6 * kind.itemsize, kind.name))
    assert not wanted.fits(tensor((2, 3), 6 * kind.itemsize + 1, kind.name))


NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input "
    "shape. If you want to specify the full shape including the batch dim in your input dims config, try setting "
    "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
)


@pytest.mark.parametrize(
    ("dims", "batched", "found", "text", "with_id"),
    [
        (
            [3],
            True,
            tensor((1, 3), datatype="FP32"),
            "inference input 'x' data-type is 'FP32', but model 'm' expects 'INT32'",
            True,
        ),
        (
            [3],
            True,
            tensor((1, 4)),
            f"unexpected shape for input 'x' for model 'm'. Expected [-1,3], got [1,4]. {NOTE}",
            True,
        ),
        (
            [3],
            True,
            tensor((3,)),
            f"unexpected shape for input 'x' for model 'm'. Expected [-1,3], got [3]. {NOTE}",
            True,
        ),
        (
            [16],
            False,
            tensor((15,)),
            "unexpected shape for input 'x' for model 'm'. Expected [16], got [15]. ",
            True,
        ),
        (
            [16],
            False,
            tensor(()),
            "unexpected shape for input 'x' for model 'm'. Expected [16], got []. ",
            True,
        ),
        (
            [16],
            False,
            tensor((-1, 2), 64),
            "unexpected shape for input 'x' for model 'm'. Expected [16], got [-1,2]. ",
            True,
        ),
        (
            [-1, 4],
            False,
            tensor((-1, 5), 16),
            "All input dimensions should be specified for input 'x' for model 'm', got [-1,5]",
            True,
        ),
        (
            [-1, 4],
            False,
            tensor((2, 4), 31),
            "input byte size mismatch for input 'x' for model 'm'. Expected 32, got 31",
            True,
        ),
        (
            [-1, 4],
            False,
            tensor((-2, 4), 16),
            "tensor 'x' contains an invalid dimension [-2,4]",
            False,
        ),
        (
            [-1, 4],
            False,
            tensor((1 << 60, 4), 16),
            "byte size for tensor 'x' exceeds maximum size of 9223372036854775807",
            False,
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_in_tritons_words(
    dims, batched, found, text, with_id
):
    wanted = rule(dims, batched=batched)
    assert not wanted.fits(found)
    assert wanted.find_error(found) == (text, with_id)


def test_shapes_of_text_are_refused_by_their_element_count():
    wanted = rule([-1], "TYPE_STRING", batched=False)
    assert wanted.find_error(tensor((-2,), 0, "BYTES")) == (
        "tensor 'x' contains an invalid dimension in shape [-2]",
        False,
    )
    wanted = rule([-1, -1], "TYPE_STRING", batched=False)
    assert wanted.find_error(tensor((1 << 62, 4), 0, "BYTES")) == (
        "element count for tensor 'x' exceeds maximum size of 9223372036854775807",
        False,
    )


def test_the_check_of_large_strings_is_deferred():
    wanted = rule([-1], "TYPE_STRING", batched=False)
    broken = tensor((1,), MAX_INLINE_STRING_BYTES + 1, "BYTES")
    assert wanted.fits(broken)
    assert wanted.needs_deferred_check(broken)
    assert not wanted.fits(tensor((1,), MAX_INLINE_STRING_BYTES, "BYTES"))


def test_a_shape_tensor_has_no_batch_dimension():
    wanted = rule([2], is_shape_tensor=True)
    assert wanted.fits(tensor((2,)))
    assert not wanted.fits(tensor((1, 2)))


def test_the_size_of_a_non_linear_format_is_not_checked():
    wanted = rule([2, 3, 4], is_non_linear_format_io=True)
    assert wanted.find_error(tensor((1, 2, 3, 4), 4096)) is None
    assert wanted.fits(tensor((1, 2, 3, 4), 4096))


def test_memory_of_a_device_counts_by_its_shape():
    wanted = rule([3])
    assert wanted.fits(Tensor("x", "INT32", (2, 3), object(), (2, 0)))
    assert not wanted.fits(Tensor("x", "INT32", (2, 4), object(), (2, 0)))


def test_an_empty_tensor_fits_a_variable_dimension():
    wanted = rule([-1])
    assert wanted.fits(Tensor.from_numpy("x", np.zeros((1, 0), np.int32)))
