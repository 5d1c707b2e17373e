from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.api.contexts import ModelContext
from tritonpy_batching.gather import gather, scatter
from tritonpy_config.options import NoOptions
from tritonpy_ipc.blocks import Block, BlockInputs, BlockRow
from tritonpy_ipc.signatures import Column, TensorSignature
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import DTYPES, Batch, InferRequest, OutputSpec, Tensor
from tritonpy_types.errors import Internal

SINK = RecordingSink().sink


def context(outputs: dict[str, str], max_batch_size: int = 64, more: str = "") -> Any:
    return ModelContext(
        "m", 1, model_config(f'name: "m" max_batch_size: {max_batch_size} {more}'), Path(), Path(), {}, outputs, NoOptions(),
        SimpleNamespace(), logging.LoggerAdapter(logging.getLogger("test")),
    )  # fmt: skip


def request_of(arrays: dict[str, np.ndarray], outputs: Sequence[str] | None = None) -> InferRequest:
    tensors = {name: Tensor.from_numpy(name, array) for name, array in arrays.items()}
    rows = next(iter(arrays.values())).shape[0]
    requested = None if outputs is None else {name: OutputSpec(name) for name in outputs}
    return InferRequest("m", tensors, SINK, id="r", batch_size=rows, outputs=requested)


def array_of(datatype: str, shape: tuple[int, ...], start: int) -> np.ndarray:
    numbers = np.arange(start, start + int(np.prod(shape))).reshape(shape)
    if datatype == "BYTES":
        texts = np.empty(numbers.size, object)
        texts[:] = [b"x" * (int(number) % 7) for number in numbers.ravel()]
        return texts.reshape(shape)
    return numbers.astype(DTYPES[datatype])


@given(
    st.sampled_from(["INT32", "FP16", "BF16", "BOOL", "BYTES"]),
    st.lists(st.integers(0, 3), max_size=2).map(tuple),
    st.lists(st.one_of(st.none(), st.integers(1, 3)), min_size=1, max_size=6).filter(any),
    st.booleans(),
)
def test_every_request_gets_its_own_rows(
    datatype: str, dims: tuple[int, ...], layout: list[int | None], slotted: bool
) -> None:
    """The model returns its input.

    `layout` has the rows of each request, None for an empty slot.
    """
    layout = (
        [None if rows is None else 1 for rows in layout]
        if slotted
        else [rows for rows in layout if rows]
    )
    arrays = [
        None if rows is None else array_of(datatype, (rows, *dims), 10 * at)
        for at, rows in enumerate(layout)
    ]
    slots = [None if array is None else request_of({"IN": array}) for array in arrays]
    requests = [slot for slot in slots if slot is not None]
    batch = Batch(requests, slots=slots if slotted else None, model=context({"IN": datatype}))
    (tensor,) = gather(batch)
    assert tensor.shape == (batch.size, *dims)
    responses = scatter(batch, {"IN": tensor})
    sent = [array for array in arrays if array is not None]
    for array, response, request in zip(sent, responses, requests, strict=True):
        (part,) = response.outputs
        assert (part.name, part.datatype, part.shape) == ("IN", datatype, array.shape)
        assert np.array_equal(part.numpy(), array)
        assert (response.model_name, response.model_version, response.id) == ("m", 1, request.id)


@pytest.mark.parametrize("datatype", ["FP32", "BYTES"])
def test_an_empty_slot_becomes_a_row_of_zeros_or_empty_strings(datatype: str) -> None:
    request = request_of({"IN": array_of(datatype, (1, 2), 5)})
    (tensor,) = gather(Batch([request], slots=[None, request, None]))
    assert (
        tensor.numpy()[0].tolist()
        == tensor.numpy()[2].tolist()
        == ([b"", b""] if datatype == "BYTES" else [0, 0])
    )


def test_a_single_request_is_passed_on_without_a_copy() -> None:
    request = request_of({"A": np.zeros((1, 2), np.int32), "B": np.zeros((1, 2), np.int32)})
    assert gather(Batch([request])) == list(request.inputs.values())


def test_controls_and_states_follow_the_inputs() -> None:
    request = request_of({"IN": np.zeros((1, 1), np.int32)})
    extra = [Tensor.from_numpy(name, np.zeros((1, 1), np.int32)) for name in ("CONTROL", "STATE")]
    batch = Batch([request], controls=extra[:1], states=extra[1:])
    assert [tensor.name for tensor in gather(batch)] == ["IN", "CONTROL", "STATE"]


def test_the_copy_is_written_to_the_memory_of_out() -> None:
    memory = np.full((3, 2), -1, np.int32)
    calls = []

    def out(name: str, datatype: str, shape: tuple[int, ...]) -> np.ndarray:
        calls.append((name, datatype, shape))
        return memory

    requests = [request_of({"IN": np.full((rows, 2), rows, np.int32)}) for rows in (1, 2)]
    (tensor,) = gather(Batch(requests), out)
    assert calls == [("IN", "INT32", (3, 2))]
    assert tensor.data is memory
    assert memory.tolist() == [[1, 1], [2, 2], [2, 2]]


def test_scattered_rows_are_views() -> None:
    requests = [request_of({"IN": np.zeros((1, 2), np.int32)}) for _ in range(2)]
    out = np.arange(4, dtype=np.int32).reshape(2, 2)
    responses = scatter(Batch(requests, model=context({"OUT": "INT32"})), {"OUT": out})
    assert all(np.shares_memory(response.outputs[0].data, out) for response in responses)


def test_a_model_without_batching_returns_the_whole_output_to_its_one_request() -> None:
    request = request_of({"IN": np.zeros((3,), np.int32)})
    (response,) = scatter(
        Batch([request], model=context({"OUT": "INT32"}, 0)), {"OUT": np.arange(5, dtype=np.int32)}
    )
    assert response.outputs[0].shape == (5,)


def test_only_requested_outputs_are_sent_in_the_order_of_the_request() -> None:
    outputs = {name: np.zeros((1,), np.int32) for name in ("A", "B", "EXTRA")}
    model = context({"A": "INT32", "B": "INT32"})
    both, one = request_of({"IN": np.zeros((1, 1))}), request_of({"IN": np.zeros((1, 1))}, ["B"])
    for request, names in ((both, ["A", "B"]), (one, ["B"])):
        (response,) = scatter(Batch([request], model=model), outputs)
        assert [tensor.name for tensor in response.outputs] == names


STATEFUL = """
sequence_batching { state { input_name: "OLD" output_name: "STATE" data_type: TYPE_INT32 dims: [2, -1] } }
"""


def stateful(outputs: dict[str, str], rows: int = 2, max_batch_size: int = 64) -> Batch:
    requests = [request_of({"IN": np.zeros((1, 1))}) for _ in range(rows)]
    return Batch(
        requests, state_outputs=["STATE"], model=context(outputs, max_batch_size, STATEFUL)
    )


def test_state_outputs_are_kept_whole_for_the_scheduler() -> None:
    batch, state = stateful({"OUT": "INT32"}), np.arange(12, dtype=np.int32).reshape(2, 2, 3)
    responses = scatter(batch, {"OUT": np.zeros((2, 1), np.int32), "STATE": state})
    assert list(batch.new_states) == ["STATE"]
    assert batch.new_states["STATE"].numpy().tolist() == state.tolist()
    assert [tensor.name for tensor in responses[0].outputs] == ["OUT"]


def test_a_state_that_is_also_an_output_is_sent() -> None:
    batch, state = stateful({"STATE": "INT32"}), np.arange(12, dtype=np.int32).reshape(2, 2, 3)
    responses = scatter(batch, {"STATE": state})
    assert [response.outputs[0].numpy().tolist() for response in responses] == [
        [row] for row in state.tolist()
    ]
    assert batch.new_states["STATE"].numpy().tolist() == state.tolist()


@pytest.mark.parametrize("whole", [True, False])
def test_responses_do_not_share_memory_with_a_writable_state(whole: bool) -> None:
    """The next execution writes to the state, possibly before the response is sent."""
    batch, buffer = (
        stateful({"OUT": "INT32", "STATE": "INT32"}, rows=1),
        np.ones((1, 2, 3), np.int32),
    )
    batch.states = [Tensor.from_numpy("OLD", buffer)]
    out = Tensor.from_numpy("OUT", buffer) if whole else buffer[:, :1]
    (response,) = scatter(batch, {"OUT": out, "STATE": buffer})
    assert np.shares_memory(batch.new_states["STATE"].data, buffer)
    buffer[:] = 7
    assert [set(tensor.numpy().ravel().tolist()) for tensor in response.outputs] == [{1}, {1}]


@pytest.mark.parametrize(
    ("state", "max_batch_size", "text"),
    [
        (
            np.zeros((2, 2, 3), np.float32),
            64,
            "model 'm' returned state output 'STATE' as FP32, its configuration says INT32",
        ),
        (
            np.zeros((2, 3, 3), np.int32),
            64,
            "model 'm' returned state output 'STATE' with shape [2,3,3], its configuration says [2,2,-1]",
        ),
        (
            np.zeros((1, 2, 3), np.int32),
            64,
            "model 'm' returned state output 'STATE' with shape [1,2,3], its configuration says [2,2,-1]",
        ),
        (
            np.zeros((2, 2), np.int32),
            64,
            "model 'm' returned state output 'STATE' with shape [2,2], its configuration says [2,2,-1]",
        ),
        (
            np.zeros((1, 2, 3), np.int32),
            0,
            "model 'm' returned state output 'STATE' with shape [1,2,3], its configuration says [2,-1]",
        ),
    ],
)
def test_a_state_that_does_not_match_the_configuration_is_named(
    state: np.ndarray, max_batch_size: int, text: str
) -> None:
    batch = stateful({}, 2 if max_batch_size else 1, max_batch_size)
    with pytest.raises(Internal) as caught:
        scatter(batch, {"STATE": state})
    assert caught.value.message == text
    assert batch.new_states == {}


def test_rows_on_a_device_stay_there() -> None:
    requests = [request_of({"IN": np.zeros((1, 1))}) for _ in range(2)]
    out = Tensor("OUT", "FP32", (2, 3), np.zeros((2, 3), np.float32), device=(2, 1))
    responses = scatter(Batch(requests, model=context({"OUT": "FP32"})), {"OUT": out})
    assert [response.outputs[0].device for response in responses] == [(2, 1)] * 2


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({}, "model 'm' returned no output 'OUT', it returned: nothing; expected: 'OUT'"),
        (
            {"OUT": np.zeros((2, 1), np.float64)},
            "model 'm' returned output 'OUT' as FP64, its configuration says INT32",
        ),
        (
            {"OUT": np.zeros((2, 1), complex)},
            "model 'm' returned output 'OUT' as complex128, its configuration says INT32",
        ),
        (
            {"OUT": Tensor.from_numpy("OUT", np.zeros((2, 1), np.float32))},
            "model 'm' returned output 'OUT' as FP32, its configuration says INT32",
        ),
        (
            {"OUT": np.zeros((3, 1), np.int32)},
            "model 'm' returned 3 rows of output 'OUT' for a batch of 2",
        ),
        ({"OUT": np.int32(3)}, "model 'm' returned 0 rows of output 'OUT' for a batch of 2"),
    ],
)
def test_outputs_that_do_not_match_the_configuration_are_named(
    outputs: dict[str, Any], text: str
) -> None:
    requests = [request_of({"IN": np.zeros((1, 1))}, ["OUT"]) for _ in range(2)]
    with pytest.raises(Internal) as caught:
        scatter(Batch(requests, model=context({"OUT": "INT32"})), outputs)
    assert caught.value.message == text


def test_a_missing_state_output_is_named() -> None:
    batch = Batch(
        [request_of({"IN": np.zeros((1, 1))})], state_outputs=["STATE"], model=context({})
    )
    with pytest.raises(
        Internal,
        match="model 'm' returned no output 'STATE', it returned: 'OUT'; expected: 'STATE'",
    ):
        scatter(batch, {"OUT": np.zeros((1, 1), np.int32)})


def in_block(count: int, first: int = 0, rows: int = 1) -> list[InferRequest]:
    """Return requests whose inputs are in one block and count up from `first`."""
    signature = TensorSignature([Column("IN", "INT32", (rows, 2), np.dtype(np.int32))], None)
    # padding for the alignment of the end
    payload = np.arange(first, first + 2 * rows * count + 3, dtype=np.int32).view(np.uint8)
    block = Block(signature, count, payload, 0, Tensor)
    return [
        InferRequest("m", BlockInputs(block, place), SINK, batch_size=rows)  # type: ignore[arg-type]
        for place in range(count)
    ]


def test_adjacent_requests_of_a_block_are_gathered_without_a_copy() -> None:
    requests = in_block(4, rows=2)
    (tensor,) = gather(Batch(requests[1:3], model=context({})))
    assert (tensor.name, tensor.datatype, tensor.shape) == ("IN", "INT32", (4, 2))
    assert tensor.data.tolist() == [[4, 5], [6, 7], [8, 9], [10, 11]]
    assert np.shares_memory(tensor.data, requests[0].inputs["IN"].data.base)


def test_requests_of_several_blocks_are_gathered_in_order() -> None:
    (tensor,) = gather(
        Batch([*in_block(2), *in_block(1, 100), *in_block(2)[1:]], model=context({}))
    )
    assert tensor.data.tolist() == [[0, 1], [2, 3], [100, 101], [2, 3]]


@pytest.mark.parametrize("block_first", [True, False])
def test_requests_with_and_without_blocks_are_gathered_together(block_first: bool) -> None:
    other = request_of({"IN": np.array([[7, 8]], np.int32)})
    requests = [*in_block(2), other] if block_first else [other, *in_block(2)]
    (tensor,) = gather(Batch(requests, model=context({})))
    expected = [[0, 1], [2, 3], [7, 8]] if block_first else [[7, 8], [0, 1], [2, 3]]
    assert tensor.data.tolist() == expected


def test_equal_numbers_of_rows_are_cut_lazily() -> None:
    requests = [request_of({"IN": np.zeros((2, 1))}) for _ in range(3)]
    out = np.arange(6, dtype=np.float32).reshape(6, 1)
    responses = scatter(Batch(requests, model=context({"OUT": "FP32"})), {"OUT": out})
    assert all(isinstance(response.outputs, BlockRow) for response in responses)
    assert [response.outputs[0].data.tolist() for response in responses] == [
        [[0], [1]],
        [[2], [3]],
        [[4], [5]],
    ]
    assert np.shares_memory(responses[2].outputs[0].data, out)


@pytest.mark.parametrize("requested", [["A"], ["B", "A"], ["A", "B"]])
def test_each_request_gets_its_requested_outputs_in_its_order(requested: list[str]) -> None:
    requests = [request_of({"IN": np.zeros((1, 1))}, requested) for _ in range(2)]
    for request in requests:
        request.outputs = requests[0].outputs  # the same object, as in coalesced requests
    outputs = {"A": np.array([[1], [2]], np.int32), "B": np.array([[3], [4]], np.int32)}
    responses = scatter(Batch(requests, model=context({"A": "INT32", "B": "INT32"})), outputs)
    values = {"A": (1, 2), "B": (3, 4)}
    for at, response in enumerate(responses):
        assert [tensor.name for tensor in response.outputs] == requested
        assert [int(tensor.data[0, 0]) for tensor in response.outputs] == [
            values[name][at] for name in requested
        ]


def test_a_wrong_number_of_rows_is_reported_for_requests_of_equal_size() -> None:
    requests = [request_of({"IN": np.zeros((1, 1))}) for _ in range(2)]
    with pytest.raises(Internal, match="returned 3 rows of output 'OUT' for a batch of 2"):
        scatter(
            Batch(requests, model=context({"OUT": "FP32"})), {"OUT": np.zeros((3, 1), np.float32)}
        )
