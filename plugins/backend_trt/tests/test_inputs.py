from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Batch, InferRequest, ModelContext, Tensor
from tritonpy_backend_trt.inputs import adjacent_views, pad

from .conftest import output
from .simulated import plans


class Model:
    layout = None


def request(**arrays):
    tensors = {
        name: Tensor.from_buffer(name, "FP32", array.shape, memoryview(array).cast("B"))
        for name, array in arrays.items()
    }
    return InferRequest("m", tensors, None, batch_size=len(next(iter(arrays.values()))))


REGION = np.arange(40, dtype=np.float32).reshape(10, 4)


def batch(*requests, **more):
    return Batch(list(requests), model=Model(), **more)


def test_adjacent_inputs_are_one_view_of_the_same_memory():
    [span] = adjacent_views(
        batch(request(A=REGION[:2]), request(A=REGION[2:3]), request(A=REGION[3:7]))
    )
    assert (span.name, span.datatype, span.shape) == ("A", "FP32", (7, 4))
    assert np.shares_memory(span.data, REGION)
    assert span.data.tolist() == REGION[:7].tolist()
    assert not span.data.flags.writeable


@pytest.mark.parametrize(
    "requests",
    [
        (request(A=REGION[:2]), request(A=REGION[3:4])),  # a gap
        (request(A=REGION[2:3]), request(A=REGION[:2])),  # the wrong order
        (
            request(A=REGION[:2], B=REGION[4:6]),
            request(A=REGION[2:3], B=REGION[7:8]),
        ),  # one of two inputs
        (
            request(A=REGION[:2], B=REGION[4:6]),
            request(A=REGION[2:4]),
        ),  # an input that is not there
    ],
)
def test_inputs_that_are_not_adjacent_are_gathered(requests):
    assert adjacent_views(batch(*requests)) is None


def test_empty_slots_and_layouts_are_gathered():
    one = request(A=REGION[:1])
    assert adjacent_views(batch(one, slots=[one, None])) is None
    other = batch(one)
    other.model.layout = object()
    assert adjacent_views(other) is None


def test_adjacent_requests_are_copied_at_once(simulation):
    assert ModelContext  # the harness creates it
    with simulation.load(plans.double(), coalesce_request_input=True) as harness:
        requests = [harness.request({"IN": REGION[:1]}) for _ in range(2)]
        for number, each in enumerate(requests):
            rows = REGION[number : number + 1]
            each.inputs["IN"] = Tensor.from_buffer(
                "IN", "FP32", rows.shape, memoryview(rows).cast("B")
            )
        copies = simulation.machine.copies
        answers = harness.execute(*requests)
        assert simulation.machine.copies - copies == 2  # there and back
        assert simulation.machine.pageable_copies == 1  # directly from the requests' memory
    assert [output(answer, "OUT").tolist() for [answer] in answers] == [
        (2 * REGION[n : n + 1]).tolist() for n in range(2)
    ]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=3))
def test_padding_appends_zeros_in_each_dimension(sizes):
    array = np.ones([size for size, _ in sizes], np.float32)
    shape = tuple(size + more for size, more in sizes)
    found = pad(array, shape)
    assert found.shape == shape
    assert found.sum() == array.size
    assert (found[tuple(slice(size) for size, _ in sizes)] == 1).all()
    assert (found is array) == (array.shape == shape)
