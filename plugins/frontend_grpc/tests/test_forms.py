from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, encode_strings
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.forms import EACH_LENGTH, MOST_LENGTHS, MOST_STACKED, Form, KnownForms
from tritonpy_frontend_grpc.known_layouts import InputLayout, KnownLayouts, Layout, outline_of
from tritonpy_frontend_grpc.wire.frames import prefix
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


def floats_alone(request_id="", floats=(1, 2)):
    request = ModelInferRequest(model_name="m", id=request_id)
    request.inputs.add(name="X", datatype="FP32", shape=[1, 2])
    request.raw_input_contents.append(np.array(floats, np.float32).tobytes())
    return request.SerializeToString()


def form_of_floats(raw):
    return Form(raw, Layout("m", 3, "3", False, (FLOATS,), None, 2, 0, False), outline_of(raw))


def test_the_requests_of_many_messages_are_those_of_each_and_lie_in_one_block():
    raws = [floats_alone(f"id{at}", (at, -at)) for at in range(3)]
    form = form_of_floats(raws[0])
    assert form.stacks(raws[0])
    made = form.requests(raws, SINK)
    assert len({request.inputs.block for request in made}) == 1
    for at, (request, raw) in enumerate(zip(made, raws, strict=True)):
        alone = form.request(raw, SINK)
        assert (request.id, request.model_name, request.model_version, request.priority) == (f"id{at}", "m", 3, 2)
        assert request.inputs["X"].data.tolist() == alone.inputs["X"].data.tolist() == [[at, -at]]
        assert [*request.inputs] == [*alone.inputs]


def test_a_message_whose_id_cannot_be_read_is_none_among_the_others():
    raws = [floats_alone("abc"), floats_alone("abc").replace(b"abc", b"\xff\xff\xff"), floats_alone("abd")]
    first, broken, last = form_of_floats(raws[0]).requests(raws, SINK)
    assert (first.id, broken, last.id) == ("abc", None, "abd")


def test_scalars_do_not_lie_beside_others():
    request = ModelInferRequest(model_name="m", raw_input_contents=[bytes(4)])
    request.inputs.add(name="X", datatype="FP32", shape=[])
    raw = request.SerializeToString()
    scalar = InputLayout("X", "FP32", (), (), np.dtype(np.float32), 4)
    assert not Form(raw, Layout("m", -1, "", False, (scalar,), None, 0, 0, False), outline_of(raw)).stacks(raw)


def test_texts_and_large_messages_are_not_copied_beside_others():
    assert not form_of(message()).stacks(message())
    many = np.zeros((1, MOST_STACKED), np.float32)
    request = ModelInferRequest(model_name="m")
    request.inputs.add(name="X", datatype="FP32", shape=many.shape)
    request.raw_input_contents.append(many.tobytes())
    raw = request.SerializeToString()
    large = InputLayout("X", "FP32", many.shape, many.shape, many.dtype, many.nbytes)
    assert not Form(raw, Layout("m", -1, "", False, (large,), None, 0, 0, False), outline_of(raw)).stacks(raw)


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_a_message_with_its_prefix_goes_on_in_a_form_if_only_its_data_and_id_differ(kind):
    raw = floats_alone("id-1")
    form = form_of_floats(raw)
    other = floats_alone("id-2", (5, 6))
    assert form.continues(kind(prefix(other) + other))
    for framed in (
        other,
        prefix(other) + other[:-1],
        prefix(other) + other + b"x",
        b"\x01" + prefix(other)[1:] + other,
        prefix(other)[:-1] + b"\0" + other,
        prefix(other) + other.replace(b"X", b"Y"),
    ):
        assert not form.continues(kind(framed))


@given(st.integers(0, len(floats_alone("ab")) + 4), st.integers(0, 255), st.sampled_from(["", "ab"]))
def test_a_message_goes_on_in_a_form_where_it_fits_and_its_prefix_is_right(at, value, request_id):
    raw = floats_alone(request_id)
    framed = bytearray(prefix(raw) + raw)
    if at < len(framed):
        framed[at] = value
    form = form_of_floats(raw)
    assert form.continues(framed) == (framed[:5] == prefix(raw) and form.fits(bytes(framed[5:])))
