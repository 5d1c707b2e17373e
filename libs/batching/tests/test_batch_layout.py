from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.api.contexts import ModelContext
from tritonpy_batching.batch_layout import BatchLayout, flatten_ragged
from tritonpy_batching.gather import gather, scatter
from tritonpy_config.options import NoOptions
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import DATATYPE_OF_NUMBER, Batch, InferRequest, InferResponse, Tensor
from tritonpy_types.errors import Internal

SINK = RecordingSink().sink
CONFIG = """
max_batch_size: 64
input { name: "ROWS" data_type: TYPE_INT32 dims: 2 }
input { name: "RAGGED" data_type: TYPE_INT32 dims: [ -1, -1 ] allow_ragged_batch: true }
input { name: "SIZE" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }
input { name: "MAYBE" data_type: TYPE_INT32 dims: 1 optional: true }
output { name: "ROWS" data_type: TYPE_INT32 dims: 2 }
output { name: "RAGGED" data_type: TYPE_INT32 dims: [ -1, -1 ] }
output { name: "SIZE" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }
output { name: "MAYBE" data_type: TYPE_INT32 dims: 1 }
batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNTS" data_type: TYPE_INT32 source_input: "RAGGED" }
batch_output { target_name: "RAGGED" source_input: "RAGGED" }
"""


def context(config: str = CONFIG) -> Any:
    parsed = model_config(f'name: "m" {config}')
    types = {output.name: DATATYPE_OF_NUMBER[output.data_type].name for output in parsed.output}
    return ModelContext(
        "m", 1, parsed, Path(), Path(), {}, types, NoOptions(), SimpleNamespace(),
        logging.LoggerAdapter(logging.getLogger("test")), layout=BatchLayout.of(parsed),
    )  # fmt: skip


def request_of(**arrays: np.ndarray) -> InferRequest:
    tensors = {
        name: Tensor.from_numpy(name, array.astype(np.int32)) for name, array in arrays.items()
    }
    return InferRequest("m", tensors, SINK, batch_size=arrays["ROWS"].shape[0])


def double(tensors: list[Tensor]) -> dict[str, np.ndarray]:
    """A model that doubles every input, ragged ones in the order of their elements."""
    return {tensor.name: tensor.numpy() * 2 for tensor in tensors if tensor.name != "COUNTS"}


def run(requests: list[InferRequest], slots: list[InferRequest | None] | None = None) -> list[Any]:
    batch = Batch(requests, slots=slots, model=context())
    return [plain(response) for response in scatter(batch, double(gather(batch)))]


def plain(response: InferResponse) -> dict[str, tuple[tuple[int, ...], Any]]:
    return {tensor.name: (tensor.shape, tensor.numpy().tolist()) for tensor in response.outputs}


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[InferRequest], list[InferRequest | None] | None]:
    """Requests that may share a batch.

    Ragged shapes differ, a shape tensor is equal, and the optional input is present in all or none.
    """
    slotted = draw(st.booleans())
    count = draw(st.integers(1, 5))
    size, has_maybe = draw(st.integers(0, 9)), draw(st.booleans())
    requests = []
    for at in range(count):
        rows = 1 if slotted else draw(st.integers(1, 3))
        shape = (rows, draw(st.integers(0, 3)), draw(st.integers(0, 3)))
        arrays = {
            "ROWS": np.arange(rows * 2).reshape(rows, 2) + at,
            "RAGGED": np.arange(np.prod(shape)).reshape(shape),
        }
        arrays["SIZE"] = np.array([size])
        if has_maybe:
            arrays["MAYBE"] = np.full((rows, 1), at)
        requests.append(request_of(**arrays))
    if not slotted:
        return requests, None
    return requests, draw(st.permutations([*requests, None, None]))


@given(batches())
def test_a_batched_request_gets_the_same_response_as_alone(
    batch_of_requests: tuple[list[InferRequest], list[InferRequest | None] | None],
) -> None:
    requests, slots = batch_of_requests
    if slots is not None:
        requests = [slot for slot in slots if slot is not None]
    assert run(requests, slots) == [run([request])[0] for request in requests]


def test_plain_models_have_no_layout() -> None:
    config = model_config(
        'max_batch_size: 8 input { name: "A" data_type: TYPE_INT32 dims: -1 optional: true } '
        'output { name: "B" data_type: TYPE_INT32 dims: 1 reshape { } }'
    )
    assert BatchLayout.of(config) is None


def test_batch_inputs_follow_the_inputs() -> None:
    one = request_of(ROWS=np.zeros((1, 2)), RAGGED=np.zeros((1, 3, 1)), SIZE=np.array([4]))
    two = request_of(ROWS=np.zeros((2, 2)), RAGGED=np.zeros((2, 1, 2)), SIZE=np.array([4]))
    found = {tensor.name: tensor for tensor in gather(Batch([one, two], model=context()))}
    assert list(found) == ["ROWS", "RAGGED", "SIZE", "COUNTS"]
    assert [found[name].shape for name in ("ROWS", "RAGGED", "SIZE")] == [(3, 2), (7,), (1,)]
    assert found["COUNTS"].numpy().tolist() == [3, 4]


def test_shape_tensors_are_not_copied() -> None:
    one = request_of(ROWS=np.zeros((1, 2)), RAGGED=np.zeros((1, 1, 1)), SIZE=np.array([4]))
    tensors = gather(Batch([one, one], model=context()))
    assert next(tensor for tensor in tensors if tensor.name == "SIZE") is one.inputs["SIZE"]


def test_shape_tensor_values_are_repeated_for_each_row_of_a_request() -> None:
    requests = [
        request_of(ROWS=np.zeros((rows, 2)), RAGGED=np.zeros((rows, 1, 1)), SIZE=np.array([4]))
        for rows in (1, 2)
    ]
    responses = [answer["SIZE"] for answer in run(requests)]
    assert responses == [((1, 1), [[8]]), ((2, 1), [[8], [8]])]


def test_shape_tensor_values_are_unchanged_without_batching() -> None:
    model = context(
        'input { name: "SIZE" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true } '
        'output { name: "SIZE" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }'
    )
    batch = Batch(
        [InferRequest("m", {"SIZE": Tensor.from_numpy("SIZE", np.array([3, 4], np.int32))}, SINK)],
        model=model,
    )
    (response,) = scatter(batch, double(gather(batch)))
    assert plain(response) == {"SIZE": ((2,), [6, 8])}


def test_a_ragged_input_is_flat_without_batching_too() -> None:
    model = context(
        'input { name: "IN" data_type: TYPE_INT32 dims: [ -1, 2 ] allow_ragged_batch: true } '
        'output { name: "OUT" data_type: TYPE_INT32 dims: [ -1, 2 ] } output { name: "SUM" data_type: TYPE_INT32 dims: 1 } '
        'batch_output { target_name: "OUT" source_input: "IN" }'
    )
    request = InferRequest(
        "m", {"IN": Tensor.from_numpy("IN", np.arange(6, dtype=np.int32).reshape(3, 2))}, SINK
    )
    batch = Batch([request], model=model)
    (flat,) = gather(batch)
    assert flat.shape == (6,)
    (response,) = scatter(
        batch, {"OUT": flat.numpy() + 1, "SUM": flat.numpy().sum(keepdims=True, dtype=np.int32)}
    )
    assert plain(response) == {"OUT": ((3, 2), [[1, 2], [3, 4], [5, 6]]), "SUM": ((1,), [15])}


def test_outputs_are_in_the_order_of_the_configuration() -> None:
    one = request_of(
        ROWS=np.zeros((1, 2)), RAGGED=np.zeros((1, 2, 3)), SIZE=np.zeros(1), MAYBE=np.zeros((1, 1))
    )
    other = request_of(
        ROWS=np.zeros((1, 2)), RAGGED=np.zeros((1, 1, 3)), SIZE=np.zeros(1), MAYBE=np.zeros((1, 1))
    )
    batch = Batch([one, other], model=context())
    for response in scatter(batch, double(gather(batch))):
        assert [tensor.name for tensor in response.outputs] == ["ROWS", "RAGGED", "SIZE", "MAYBE"]


def test_requests_of_different_inputs_cannot_be_gathered() -> None:
    with_it = request_of(ROWS=np.zeros((1, 2)), MAYBE=np.zeros((1, 1)))
    without = request_of(ROWS=np.zeros((1, 2)))
    for model in (context(), None):
        with pytest.raises(
            Internal, match="some requests of a batch have the input 'MAYBE', others do not"
        ):
            gather(Batch([with_it, without], model=model))


def numbers(*shape: int) -> Tensor:
    return Tensor.from_numpy("IN", np.arange(np.prod(shape), dtype=np.int32).reshape(shape))


@given(
    st.lists(
        st.tuples(st.integers(1, 2), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5
    )
)
def test_elements_of_any_shapes_are_concatenated(shapes: list[tuple[int, ...]]) -> None:
    tensors = [numbers(*shape) for shape in shapes]
    flat = flatten_ragged(tensors, tensors[0])
    assert (flat.name, flat.datatype) == ("IN", "INT32")
    assert flat.numpy().tolist() == [
        number for tensor in tensors for number in tensor.numpy().ravel().tolist()
    ]
    assert flat.shape == (sum(tensor.numpy().size for tensor in tensors),)


def test_a_single_tensor_is_not_copied() -> None:
    one = numbers(2, 3)
    flat = flatten_ragged([one], one)
    assert flat.shape == (6,)
    assert np.shares_memory(flat.data, one.data)


def test_bytes_tensors_are_flattened() -> None:
    one, two = (
        Tensor.from_numpy("IN", np.array([words], object)) for words in ([b"a", b"bc"], [b""])
    )
    flat = flatten_ragged([one, None, two], one)
    assert (flat.shape, flat.strings()) == ((5,), [b"a", b"bc", b"", b"", b""])


def test_a_slot_without_data_is_a_row_of_zeros() -> None:
    one = numbers(1, 2)
    assert flatten_ragged([None, one], one).numpy().tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("count", [1, 2])
def test_the_copy_is_written_to_the_memory_of_out(count: int) -> None:
    memory = np.full(3 * count, -1, np.int32)
    calls = []

    def out(name: str, datatype: str, shape: tuple[int, ...]) -> np.ndarray:
        calls.append((name, datatype, shape))
        return memory

    flat = flatten_ragged([numbers(1, 3)] * count, numbers(1, 3), out)
    assert calls == [("IN", "INT32", (3 * count,))]
    assert np.shares_memory(flat.data, memory)
    assert memory.tolist() == [0, 1, 2] * count
