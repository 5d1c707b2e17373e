from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, encode_strings
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.forms import EACH_LENGTH, MOST_LENGTHS, Form, KnownForms
from tritonpy_frontend_grpc.known_layouts import InputLayout, KnownLayouts, Layout, outline_of
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

SINK = CallbackSink(lambda *_: None)
FLOATS = InputLayout("X", "FP32", (1, 2), (1, 2), np.dtype(np.float32), 8)
TEXTS = InputLayout("S", "BYTES", (1, 1), (0,), np.dtype(np.uint8), -1)


def message(model="m", request_id="", floats=(1, 2), text=b"word"):
    request = ModelInferRequest(model_name=model, id=request_id)
    request.inputs.add(name="X", datatype="FP32", shape=[1, 2])
    request.inputs.add(name="S", datatype="BYTES", shape=[1, 1])
    request.raw_input_contents.append(np.array(floats, np.float32).tobytes())
    request.raw_input_contents.append(encode_strings([text]).tobytes())
    return request.SerializeToString()


def layout(model="m"):
    return Layout(model, -1, "", False, (FLOATS, TEXTS), None, 0, 0, False)


def form_of(raw, model="m"):
    return Form(raw, layout(model), outline_of(raw))


def forms_of(*raws):
    forms = KnownForms()
    for raw in raws:
        forms.remember(form_of(raw), len(raw))
    return forms


def test_data_and_id_may_be_anything_of_the_same_length():
    form, other = form_of(message(request_id="id-1")), message(request_id="id-2", floats=(5, 6), text=b"\0\xff\x82\n")
    assert form.fits(other)
    assert form.id(other) == "id-2"
    inputs = form.inputs(other)
    assert list(inputs) == ["X", "S"]
    assert inputs["X"].data.tolist() == [[5, 6]]
    assert inputs["S"].strings() == [b"\0\xff\x82\n"]
    assert np.shares_memory(inputs["X"].data, np.frombuffer(other, np.uint8))


@pytest.mark.parametrize(("request_id", "text"), [("", b"word"), ("id", b"wo")])
def test_messages_without_an_id_or_with_less_data_are_other_forms(request_id, text):
    raw = message(request_id=request_id, text=text)
    form = form_of(raw)
    assert form.fits(raw)
    assert form.id(raw) == request_id
    assert form.inputs(raw)["S"].strings() == [text]


def test_what_is_said_about_the_data_must_be_the_same():
    assert not form_of(message("m")).fits(message("n"))
    assert not form_of(message(request_id="ab", text=b"xy")).fits(message(request_id="", text=b"xyabcd"))


def test_an_id_that_is_no_text_is_not_read():
    raw = message(request_id="ab").replace(b"\x1a\x02ab", b"\x1a\x02\xff\xfe")
    form = form_of(message(request_id="ab"))
    assert form.fits(raw)
    with pytest.raises(UnicodeDecodeError):
        form.id(raw)


def test_a_form_is_found_among_others_of_its_length():
    forms = forms_of(message("a"), message("b"), message("c", request_id="longer"))
    assert [forms.find(message(model)).fits(message(model)) for model in "ab"] == [True, True]
    assert forms.find(message("c")) is None


def test_of_each_length_the_latest_are_remembered():
    models = [chr(ord("a") + number) for number in range(EACH_LENGTH + 1)]
    forms = forms_of(*map(message, models))
    assert [forms.find(message(model)) is None for model in models] == [True, *[False] * EACH_LENGTH]


def test_clients_that_send_another_length_each_time_do_not_fill_the_memory():
    forms = forms_of(*[message(text=b"x" * size) for size in range(MOST_LENGTHS)])
    assert len(forms._forms) == MOST_LENGTHS
    raw = message(text=b"x" * MOST_LENGTHS)
    forms.remember(form_of(raw), len(raw))
    assert len(forms._forms) == 1


@given(st.integers(0, len(message(request_id="ab")) - 1), st.integers(0, 255))
def test_a_message_with_any_byte_changed_is_read_as_the_parser_reads_it_or_not_at_all(at, value):
    raw, known = message(request_id="ab"), KnownLayouts()
    for _ in range(2):
        parsed = ModelInferRequest.FromString(raw)
        known.learn(raw, parsed, decode_request(parsed, SINK))
    assert known.find(raw) is not None  # from here on it is known
    changed = raw[:at] + bytes([value]) + raw[at + 1 :]
    form = known.find(changed)
    request = None if form is None else form.request(changed, SINK)
    if request is not None:
        expected = decode_request(ModelInferRequest.FromString(changed), SINK)
        assert (request.model_name, request.id) == (expected.model_name, expected.id)
        for tensor, other in zip(request.inputs.values(), expected.inputs.values(), strict=True):
            assert (tensor.name, tensor.datatype, tensor.shape) == (other.name, other.datatype, other.shape)
            assert tensor.data.tobytes() == other.data.tobytes()
