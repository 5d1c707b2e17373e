from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy.model.request_check import SequenceIdRule
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types import CallbackSink, InferRequest, SequenceInfo
from tritonpy_types.errors import InvalidArgument


def rule(data_type):
    text = f'sequence_batching {{ control_input {{ name: "ID" control {{ kind: CONTROL_SEQUENCE_CORRID data_type: {data_type} }} }} }}'
    return SequenceIdRule(text_format.Parse(text, ModelConfig()), "m")


def request(sequence_id):
    sequence = None if sequence_id is None else SequenceInfo(sequence_id)
    return InferRequest("m", {}, CallbackSink(lambda *_: None), id="7", sequence=sequence)


@pytest.mark.parametrize(
    ("data_type", "sequence_id"),
    [("TYPE_UINT64", 5), ("TYPE_INT32", 5), ("TYPE_INT64", None), ("TYPE_STRING", "five")],
)
def test_an_id_of_the_right_type_passes(data_type, sequence_id):
    rule(data_type).check(request(sequence_id))


@pytest.mark.parametrize(
    ("data_type", "sequence_id", "found", "expected"),
    [
        ("TYPE_UINT64", "five", "BYTES", "UINT64"),
        ("TYPE_INT32", "five", "BYTES", "INT32"),
        ("TYPE_STRING", 5, "UINT64", "BYTES"),
        ("TYPE_STRING", None, "UINT64", "BYTES"),
    ],
)
def test_an_id_of_another_type_is_refused(data_type, sequence_id, found, expected):
    with pytest.raises(InvalidArgument) as caught:
        rule(data_type).check(request(sequence_id))
    assert caught.value.message == (
        f"[request id: 7] sequence batching control 'ID' data-type is '{found}', but model 'm' expects '{expected}'"
    )


def test_a_model_without_such_a_control_takes_any_id():
    none = SequenceIdRule(ModelConfig(), "m")
    assert not none
    none.check(request("five"))
    assert rule("TYPE_INT32")
