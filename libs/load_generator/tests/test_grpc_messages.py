from __future__ import annotations

import pytest

from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.loops.jobs import Job
from tritonpy_load_generator.wire.grpc_messages import GrpcMessages, unframe
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

from .metadata import INTS, TEXT, model, options, target


def sent(description, job=None, request_id="", **more):
    given = options(**more)
    messages = GrpcMessages(target(description), given, make_corpus(description, given), None)
    [message], rest = unframe(messages.message_for(job or Job(0), 0, request_id))
    assert rest == b""
    return ModelInferRequest.FromString(message)


def test_a_request_has_its_tensors_as_bytes():
    request = sent(model(INTS, TEXT), input_data=("zero",))
    assert [(each.name, each.datatype, list(each.shape)) for each in request.inputs] == [
        ("A", "INT32", [3]), ("T", "BYTES", [2]),
    ]  # fmt: skip
    assert list(request.raw_input_contents) == [bytes(12), bytes(8)]


def test_ids_and_sequences_are_appended_to_the_constant_fields():
    job = Job(0, 2**40, start=True)
    request = sent(
        model(INTS), job, "17", request_parameter=(("a", "x"), ("f", 0.5), ("b", True), ("i", 3))
    )
    assert request.id == "17"
    given = {
        name: getattr(value, value.WhichOneof("parameter_choice"))
        for name, value in request.parameters.items()
    }
    assert given == {
        "a": "x", "f": 0.5, "b": True, "i": 3, "sequence_id": 2**40, "sequence_start": True, "sequence_end": False,
    }  # fmt: skip
    assert len(request.raw_input_contents) == 1


@pytest.mark.parametrize("decoupled", [True, False])
def test_a_request_to_a_decoupled_model_enables_an_empty_final_response(decoupled):
    request = sent(model(INTS, decoupled=decoupled))
    assert ("triton_enable_empty_final_response" in request.parameters) == decoupled


@pytest.mark.parametrize("algorithm", ["none", "gzip", "deflate"])
def test_a_compressed_request_holds_the_same_message(algorithm):
    plain, packed = (
        sent(model(INTS), Job(0, 7), grpc_compression_algorithm=each)
        for each in ("none", algorithm)
    )
    assert packed == plain


def test_framed_messages_are_split():
    given = options()
    framed = GrpcMessages(
        target(model(INTS)), given, make_corpus(model(INTS), given), None
    ).message_for(Job(0), 0)
    message = framed[5:]
    assert unframe(framed * 2 + framed[:7]) == ([message, message], framed[:7])
    assert unframe(framed[:4]) == ([], framed[:4])
