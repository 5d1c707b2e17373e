from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tritonpy.model import response_postprocessor
from tritonpy.model.reshape import Reshape
from tritonpy.model.response_postprocessor import ResponsePostprocessor, classify
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import InferRequest, InferResponse, OutputSpec, Tensor
from tritonpy_types.errors import FailureReason, InvalidArgument

SINK = RecordingSink().sink
RESHAPED = 'max_batch_size: 4 output { name: "OUT" data_type: TYPE_FP32 dims: [2, 2] reshape { shape: [4] } }'


def postprocessor(config: str = "max_batch_size: 4") -> ResponsePostprocessor:
    model = text_format.Parse(config, ModelConfig())
    return ResponsePostprocessor(
        Reshape.of_outputs(model), {"OUT": ["zero", "one"]}, model.max_batch_size > 0
    )


def make_response(values: Any) -> InferResponse:
    return InferResponse([Tensor.from_numpy("OUT", np.array(values, np.float32))])


def classifying_request(classes: int) -> InferRequest:
    return InferRequest(
        "m", {}, SINK, outputs={"OUT": OutputSpec("OUT", classification=classes)}, classifies=True
    )


def test_plain_responses_are_unchanged() -> None:
    responses = [make_response([[1]]), make_response([[2]])]
    assert postprocessor().apply([InferRequest("m", {}, SINK)] * 2, responses) is responses


def test_outputs_get_the_shape_that_clients_know() -> None:
    (response,) = postprocessor(RESHAPED).apply(
        [InferRequest("m", {}, SINK)], [make_response([[1, 2, 3, 4]])]
    )
    assert response.outputs[0].shape == (1, 2, 2)


def test_an_output_with_a_wrong_shape_fails_only_its_own_response() -> None:
    good, bad = postprocessor(RESHAPED).apply(
        [InferRequest("m", {}, SINK, id=each) for each in "ab"],
        [make_response([[1, 2, 3, 4]]), make_response([[1, 2, 3]])],
    )
    assert good.error is None
    assert bad.error is not None
    assert (
        bad.error.message
        == "tensor 'OUT' has shape [1,3], the configuration's reshape expects [-1,4]"
    )
    assert (bad.id, bad.final, list(bad.outputs), bad.error.reason) == (
        "b",
        True,
        [],
        FailureReason.BACKEND,
    )


def test_classes_have_their_labels() -> None:
    (response,) = postprocessor().apply([classifying_request(1)], [make_response([[1, 5]])])
    assert response.outputs[0].strings() == [b"5.000000:1:one"]


def test_an_output_that_cannot_be_classified_is_an_error() -> None:
    text = InferResponse([Tensor.from_numpy("OUT", np.array([[b"x"]], np.object_))])
    (response,) = postprocessor().apply([classifying_request(1)], [text])
    assert response.error is not None


class Held:
    """Replaces the regions of a request."""

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        response.parameters = {"written": True}
        return response

    def outputs(self, response: InferResponse) -> list[Tensor]:
        return list(response.outputs)


@pytest.mark.parametrize("classes", [0, 1])
def test_regions_are_written_last(classes: int) -> None:
    request = classifying_request(classes)
    request.classifies, request.regions = bool(classes), Held()
    (response,) = postprocessor().apply([request], [make_response([[1, 5]])])
    assert response.parameters == {"written": True}


INTEGERS = st.sampled_from(["uint8", "int8", "uint64", "int64", "int32"])
ROWS = st.tuples(st.integers(1, 3), st.integers(1, 6))
FLOATS = st.floats(-1e6, 1e6, width=32)


def naive(row: list[Any], count: int, labels: list[str]) -> list[bytes]:
    """Return the best `count` classes by value and index, with a naive search."""
    left, found = list(enumerate(row)), []
    while left and len(found) < count:
        best = left[0]
        for each in left:
            if each[1] > best[1]:
                best = each
        left.remove(best)
        index, value = best
        text = f"{value:f}:{index}" if isinstance(value, float) else f"{value}:{index}"
        found.append(
            (text + (f":{labels[index]}" if index < len(labels) and labels[index] else "")).encode()
        )
    return found


@given(
    st.one_of(
        arrays.arrays(np.float32, ROWS, elements=FLOATS),
        INTEGERS.flatmap(lambda dtype: arrays.arrays(dtype, ROWS)),
    ),
    st.integers(1, 8),
    st.lists(st.text("abc", min_size=1), max_size=6),
)
def test_the_best_classes_are_those_of_a_naive_search(
    array: np.ndarray, count: int, labels: list[str]
) -> None:
    classes = classify(Tensor.from_numpy("OUT", array), count, labels, batched=True)
    best = min(count, array.shape[1])
    assert (classes.name, classes.datatype, classes.shape) == ("OUT", "BYTES", (len(array), best))
    expected = [text for row in array.tolist() for text in naive(row, count, labels)]
    assert classes.strings() == expected


def test_without_a_batch_dimension_the_whole_output_is_one_row() -> None:
    classes = classify(
        Tensor.from_numpy("OUT", np.array([[1, 5], [3, 2]], np.int32)), 2, ["a", "b"], batched=False
    )
    assert (classes.shape, classes.strings()) == ((2,), [b"5:1:b", b"3:2"])


@pytest.mark.parametrize("datatype", ["BOOL", "BYTES", "FP16", "BF16"])
def test_types_without_an_order_on_the_wire_are_refused(datatype: str) -> None:
    tensor = Tensor("OUT", datatype, (1, 0), np.zeros((1, 0), np.uint8))
    with pytest.raises(
        InvalidArgument,
        match=f"^class result not available for output due to unsupported type '{datatype}'$",
    ):
        classify(tensor, 1, (), batched=True)


def test_an_enormous_output_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_postprocessor, "MAX_ELEMENTS", 3)
    classify(Tensor.from_numpy("OUT", np.zeros((2, 3), np.float32)), 1, (), batched=True)
    with pytest.raises(InvalidArgument, match="classification output tensor too large"):
        classify(Tensor.from_numpy("OUT", np.zeros((2, 4), np.float32)), 1, (), batched=True)


def test_a_batch_of_nothing_has_no_classes() -> None:
    assert classify(
        Tensor.from_numpy("OUT", np.zeros((2, 0), np.float32)), 3, (), batched=True
    ).shape == (2, 0)


def test_an_empty_label_is_none() -> None:
    scores = Tensor.from_numpy("OUT", np.array([3, 2, 1], np.int32))
    assert classify(scores, 3, ["first", "", "third"], batched=False).strings() == [
        b"3:0:first",
        b"2:1",
        b"1:2:third",
    ]
