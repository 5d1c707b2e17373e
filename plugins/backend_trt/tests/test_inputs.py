from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Batch, InferRequest, ModelContext, Tensor
from tritonpy_backend_trt.inputs import adjacent, padded

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


def test_what_lies_together_is_one_view_on_the_same_memory():
    [span] = adjacent(batch(request(A=REGION[:2]), request(A=REGION[2:3]), request(A=REGION[3:7])))
    assert (span.name, span.datatype, span.shape) == ("A", "FP32", (7, 4))
    assert np.shares_memory(span.data, REGION)
    assert span.data.tolist() == REGION[:7].tolist()
    assert not span.data.flags.writeable


@pytest.mark.parametrize(
    "requests",
    [
        (request(A=REGION[:2]), request(A=REGION[3:4])),  # a gap
        (request(A=REGION[2:3]), request(A=REGION[:2])),  # the wrong order
        (request(A=REGION[:2], B=REGION[4:6]), request(A=REGION[2:3], B=REGION[7:8])),  # one of two inputs
        (request(A=REGION[:2], B=REGION[4:6]), request(A=REGION[2:4])),  # an input that is not there
    ],
)
def test_what_does_not_lie_together_is_gathered(requests):
    assert adjacent(batch(*requests)) is None


def test_holes_and_layouts_are_gathered():
    one = request(A=REGION[:1])
    assert adjacent(batch(one, slots=[one, None])) is None
    other = batch(one)
    other.model.layout = object()
    assert adjacent(other) is None


def test_a_model_whose_requests_lie_together_copies_them_at_once(simulation):
    assert ModelContext  # the harness makes it
    with simulation.load(plans.double(), coalesce_request_input=True) as harness:
        requests = [harness.request({"IN": REGION[:1]}) for _ in range(2)]
        for number, each in enumerate(requests):
            rows = REGION[number : number + 1]
            each.inputs["IN"] = Tensor.from_buffer("IN", "FP32", rows.shape, memoryview(rows).cast("B"))
        copies = simulation.machine.copies
        answers = harness.execute(*requests)
        assert simulation.machine.copies - copies == 2  # there and back
        assert simulation.machine.pageable_copies == 1  # straight from where the requests lie
    assert [output(answer, "OUT").tolist() for [answer] in answers] == [
        (2 * REGION[n : n + 1]).tolist() for n in range(2)
    ]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=3))
def test_padding_leaves_the_data_in_its_corner_and_zeros_elsewhere(sizes):
    array = np.ones([size for size, _ in sizes], np.float32)
    shape = tuple(size + more for size, more in sizes)
    found = padded(array, shape)
    assert found.shape == shape
    assert found.sum() == array.size
    assert (found[tuple(slice(size) for size, _ in sizes)] == 1).all()
    assert (found is array) == (array.shape == shape)
