from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, encode_strings
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.layout_cache import MessageInputLayout, MessageLayout, MessageLayoutCache, read_outline
from tritonpy_frontend_grpc.templates import MAX_LENGTHS, TEMPLATES_PER_LENGTH, MessageTemplate, TemplateCache
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

SINK = CallbackSink(lambda *_: None)
FLOATS = MessageInputLayout("X", "FP32", (1, 2), (1, 2), np.dtype(np.float32), 8)
TEXTS = MessageInputLayout("S", "BYTES", (1, 1), (0,), np.dtype(np.uint8), -1)


def message(model="m", request_id="", floats=(1, 2), text=b"word"):
    request = ModelInferRequest(model_name=model, id=request_id)
    request.inputs.add(name="X", datatype="FP32", shape=[1, 2])
    request.inputs.add(name="S", datatype="BYTES", shape=[1, 1])
    request.raw_input_contents.append(np.array(floats, np.float32).tobytes())
    request.raw_input_contents.append(encode_strings([text]).tobytes())
    return request.SerializeToString()


def layout(model="m"):
    return MessageLayout(model, -1, "", False, (FLOATS, TEXTS), None, 0, 0, False)


def form_of(raw, model="m"):
    return MessageTemplate(raw, layout(model), read_outline(raw))


def forms_of(*raws):
    templates = TemplateCache()
    for raw in raws:
        templates.remember(form_of(raw), len(raw))
    return templates


def test_a_template_matches_other_data_and_ids_of_equal_length():
    template, other = (
        form_of(message(request_id="id-1")),
        message(request_id="id-2", floats=(5, 6), text=b"\0\xff\x82\n"),
    )
    assert template.fits(other)
    assert template.id(other) == "id-2"
    inputs = template.inputs(other)
    assert list(inputs) == ["X", "S"]
    assert inputs["X"].data.tolist() == [[5, 6]]
    assert inputs["S"].strings() == [b"\0\xff\x82\n"]
    assert np.shares_memory(inputs["X"].data, np.frombuffer(other, np.uint8))


@pytest.mark.parametrize(("request_id", "text"), [("", b"word"), ("id", b"wo")])
def test_messages_without_an_id_or_with_less_data_have_other_templates(request_id, text):
    raw = message(request_id=request_id, text=text)
    template = form_of(raw)
    assert template.fits(raw)
    assert template.id(raw) == request_id
    assert template.inputs(raw)["S"].strings() == [text]


def test_a_template_requires_the_same_description_of_the_data():
    assert not form_of(message("m")).fits(message("n"))
    assert not form_of(message(request_id="ab", text=b"xy")).fits(message(request_id="", text=b"xyabcd"))


def test_an_id_that_is_not_utf8_raises():
    raw = message(request_id="ab").replace(b"\x1a\x02ab", b"\x1a\x02\xff\xfe")
    template = form_of(message(request_id="ab"))
    assert template.fits(raw)
    with pytest.raises(UnicodeDecodeError):
        template.id(raw)


def test_a_template_is_found_among_others_of_its_length():
    templates = forms_of(message("a"), message("b"), message("c", request_id="longer"))
    assert [templates.find(message(model)).fits(message(model)) for model in "ab"] == [True, True]
    assert templates.find(message("c")) is None


def test_the_latest_templates_of_each_length_are_kept():
    models = [chr(ord("a") + number) for number in range(TEMPLATES_PER_LENGTH + 1)]
    templates = forms_of(*map(message, models))
    assert [templates.find(message(model)) is None for model in models] == [True, *[False] * TEMPLATES_PER_LENGTH]


def test_the_number_of_cached_lengths_is_bounded():
    templates = forms_of(*[message(text=b"x" * size) for size in range(MAX_LENGTHS)])
    assert len(templates._templates) == MAX_LENGTHS
    raw = message(text=b"x" * MAX_LENGTHS)
    templates.remember(form_of(raw), len(raw))
    assert len(templates._templates) == 1


@given(st.integers(0, len(message(request_id="ab")) - 1), st.integers(0, 255))
def test_a_modified_message_decodes_like_protobuf_or_is_not_matched(at, value):
    raw, known = message(request_id="ab"), MessageLayoutCache()
    for _ in range(2):
        parsed = ModelInferRequest.FromString(raw)
        known.learn(raw, parsed, decode_request(parsed, SINK))
    assert known.find(raw) is not None  # from here on it is known
    changed = raw[:at] + bytes([value]) + raw[at + 1 :]
    template = known.find(changed)
    request = None if template is None else template.request(changed, SINK)
    if request is not None:
        expected = decode_request(ModelInferRequest.FromString(changed), SINK)
        assert (request.model_name, request.id) == (expected.model_name, expected.id)
        for tensor, other in zip(request.inputs.values(), expected.inputs.values(), strict=True):
            assert (tensor.name, tensor.datatype, tensor.shape) == (other.name, other.datatype, other.shape)
            assert tensor.data.tobytes() == other.data.tobytes()
