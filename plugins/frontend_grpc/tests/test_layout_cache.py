from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, encode_strings
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.layout_cache import (
    MAX_HEAD_BYTES,
    MAX_LAYOUTS,
    MAX_LENGTHS,
    TEMPLATES_PER_LENGTH,
    MessageInputLayout,
    MessageLayout,
    MessageLayoutCache,
    MessageTemplate,
    TemplateCache,
    read_outline,
)
from tritonpy_protos.grpc_service_pb2 import InferParameter, ModelInferRequest

SINK = CallbackSink(lambda *_: None)
COMPARED = (
    "model_name", "model_version", "id", "outputs", "parameters", "priority", "timeout_us", "sequence", "classifies", "uses_regions",
    "sink",
)  # fmt: skip
arrays = st.tuples(
    st.sampled_from([np.int8, np.uint16, np.int32, np.float64, np.bool_]),
    st.lists(st.integers(0, 3), max_size=3),
)
FLOATS = MessageInputLayout("X", "FP32", (1, 2), (1, 2), np.dtype(np.float32), 8)
TEXTS = MessageInputLayout("S", "BYTES", (1, 1), (0,), np.dtype(np.uint8), -1)


def message(data=b"\1\0\0\0\2\0\0\0", shape=(2,), datatype="INT32", **fields):
    request = ModelInferRequest(model_name="m", raw_input_contents=[data], **fields)
    request.inputs.add(name="X", datatype=datatype, shape=shape)
    return request


def decoded(raw):
    return decode_request(ModelInferRequest.FromString(raw), SINK)


def learn(known, raw):
    parsed = ModelInferRequest.FromString(raw)
    known.learn(raw, parsed, decode_request(parsed, SINK))


def read(known, raw):
    template = known.find(raw)
    return None if template is None else template.request(raw, SINK)


def learn_messages(*messages):
    """Return a cache that has seen the messages twice."""
    known = MessageLayoutCache()
    for one in messages:
        for _ in range(2):
            learn(known, one.SerializeToString())
    return known


def assert_equal(request, expected):
    assert [getattr(request, name) for name in COMPARED] == [
        getattr(expected, name) for name in COMPARED
    ]
    assert list(request.inputs) == list(expected.inputs)
    for tensor, other in zip(request.inputs.values(), expected.inputs.values(), strict=True):
        assert (tensor.name, tensor.datatype, tensor.shape) == (
            other.name,
            other.datatype,
            other.shape,
        )
        assert tensor.data.dtype == other.data.dtype
        np.testing.assert_array_equal(tensor.data, other.data)


def test_a_layout_is_cached_from_the_third_request_on():
    known, raw = MessageLayoutCache(), message().SerializeToString()
    for _ in range(2):
        assert read(known, raw) is None
        learn(known, raw)
    assert_equal(read(known, raw), decoded(raw))


def test_the_data_and_the_id_may_differ():
    known = learn_messages(message(id="first"))
    raw = message(
        np.array([-5, 7], np.int32).tobytes(), id="second \N{SNOWMAN}"
    ).SerializeToString()
    request = read(known, raw)
    assert_equal(request, decoded(raw))
    assert request.inputs["X"].data.tolist() == [-5, 7]
    assert request.received_ns > 0


def test_tensors_are_views_on_the_message():
    known = learn_messages(message())
    raw = message().SerializeToString()
    array = read(known, raw).inputs["X"].data
    assert not array.flags.owndata
    assert not array.flags.writeable
    assert np.shares_memory(array, np.frombuffer(raw, np.uint8))


@pytest.mark.parametrize(
    "other",
    [
        message(bytes(12)),
        message(bytes(4)),
        message(shape=(1, 2)),
        message(datatype="UINT32"),
        message(model_version="1"),
        ModelInferRequest(model_name="m"),
        ModelInferRequest(model_name="m", raw_input_contents=[bytes(8)]),
    ],
)
def test_a_different_message_is_not_matched(other):
    assert read(learn_messages(message()), other.SerializeToString()) is None


def test_two_data_fields_for_one_tensor_are_not_matched():
    raw = message().SerializeToString()
    assert (
        read(
            learn_messages(message()),
            raw + ModelInferRequest(raw_input_contents=[b"x"]).SerializeToString(),
        )
        is None
    )


def test_fields_after_the_data_prevent_a_match():
    raw = message().SerializeToString() + ModelInferRequest(model_name="other").SerializeToString()
    assert read_outline(raw) is None
    assert read(learn_messages(message()), raw) is None


@pytest.mark.parametrize("size", [1, 5, 9, 20])
def test_a_truncated_message_has_no_outline(size):
    raw = message().SerializeToString()
    assert read_outline(raw[:-size]) is None


def test_an_id_that_is_not_utf8_is_left_to_the_parser():
    raw = message(id="ab").SerializeToString().replace(b"\x1a\x02ab", b"\x1a\x02\xff\xfe")
    assert read(learn_messages(message(id="ab")), raw) is None


def test_unknown_fields_are_left_to_the_parser():
    looks_like_fields = b"\x82\x01\x03" + ModelInferRequest(model_name="x").SerializeToString()
    raw = looks_like_fields + message().SerializeToString()
    assert decoded(raw).model_name == "m"
    assert read_outline(raw) is None


def test_two_ids_are_left_to_the_parser():
    assert (
        read_outline(
            ModelInferRequest(id="a").SerializeToString() + message(id="b").SerializeToString()
        )
        is None
    )


def test_outputs_priority_and_timeout_are_cached():
    sent = message()
    sent.outputs.add(name="Y").parameters["classification"].int64_param = 3
    sent.parameters["priority"].int64_param = 2
    sent.parameters["timeout"].int64_param = 5
    raw = sent.SerializeToString()
    request = read(learn_messages(sent), raw)
    assert_equal(request, decoded(raw))
    assert (request.classifies, request.priority, request.timeout_us) == (True, 2, 5)


def of_sequence(sequence_id, *, start=False, end=False, order="ise", **fields):
    """Return the bytes of a message with its sequence parameters in the given order."""
    entries = {
        "i": {"sequence_id": InferParameter(int64_param=sequence_id)}
        if isinstance(sequence_id, int)
        else {"sequence_id": InferParameter(string_param=sequence_id)},
        "s": {"sequence_start": InferParameter(bool_param=start)},
        "e": {"sequence_end": InferParameter(bool_param=end)},
    }
    ahead = ModelInferRequest(model_name="m", **fields).SerializeToString()
    written = b"".join(
        [ModelInferRequest(parameters=entries[each]).SerializeToString() for each in order]
    )
    rest = message()
    rest.ClearField("model_name")
    return ahead + written + rest.SerializeToString()


def learn_sequences():
    known = MessageLayoutCache()
    for _ in range(2):
        learn(known, of_sequence(7, start=True))
    return known


@pytest.mark.parametrize("order", ["ise", "esi", "i", "is", "ei"])
@pytest.mark.parametrize("sequence_id", [7, 1, 300, 2**63 - 1, -1, 0, "name", "\N{SNOWMAN}" * 20])
@pytest.mark.parametrize(("start", "end"), [(True, False), (False, False), (True, True)])
def test_sequence_parameters_may_differ(order, sequence_id, start, end):
    known, raw = learn_sequences(), of_sequence(sequence_id, start=start, end=end, order=order)
    for _ in range(2):  # by its outline, then by its template
        assert_equal(read(known, raw), decoded(raw))


def test_requests_with_and_without_a_sequence_share_a_layout():
    raw = message(id="1").SerializeToString()
    assert_equal(read(learn_sequences(), raw), decoded(raw))


@pytest.mark.parametrize(
    "replaced",
    [
        (b"sequence_end", b"sequence_ene"),
        (b"\x12\x02\x10\x07", b"\x12\x02\x08\x07"),  # a boolean id
        (b"\x12\x02\x10\x07", b"\x12\x02\x1a\x07"),  # a string beyond its field
        (b"\x22\x11\x0a\x0bsequence_id", b"\x1a\x11\x0a\x0bsequence_id"),  # the id of the request
        (b"\x22\x11\x0a\x0bsequence_id", b"\x22\x11\x0a\x0btriton_dont"),
    ],
)
def test_invalid_sequence_parameters_are_left_to_the_parser(replaced):
    known, raw = learn_sequences(), of_sequence(7)
    assert read(known, raw) is not None
    changed = raw.replace(*replaced)
    assert changed != raw
    assert read(known, changed) is None


@given(st.data())
def test_a_modified_sequence_message_decodes_like_protobuf_or_is_not_matched(data):
    known, raw = learn_sequences(), bytearray(of_sequence(7, id="ab"))
    assert read(known, bytes(raw)) is not None
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    changed = bytes(raw)
    request = read(known, changed)
    if request is not None:
        assert_equal(request, decoded(changed))


def field(tag, content):
    return bytes([tag, len(content)]) + content


FIVE = field(0x12, InferParameter(int64_param=5).SerializeToString())


def test_an_entry_with_two_keys_is_not_cached():
    plain = message().SerializeToString()
    raw = field(0x22, field(0x0A, b"sequence_id") + field(0x0A, b"timeout") + FIVE) + plain
    assert decoded(raw).timeout_us == 5
    known = MessageLayoutCache()
    for _ in range(2):
        learn(known, raw)
    assert (read(known, raw), read(known, plain)) == (None, None)


def test_an_entry_with_its_key_after_the_value_is_left_to_the_parser():
    raw = field(0x22, FIVE + field(0x0A, b"sequence_id")) + message().SerializeToString()
    assert decoded(raw).sequence is not None
    known = MessageLayoutCache()
    for _ in range(2):
        learn(known, raw)
    assert read(known, raw) is None


def test_an_entry_beyond_its_field_is_left_to_the_parser():
    def truncated_entry(size):
        """Return a truncated entry that declares a string of `size` bytes."""
        key, text = field(0x0A, b"sequence_id"), bytes([0x1A, size]) + b"a"
        return bytes([0x22, len(key) + size + 4]) + key + bytes([0x12, size + 2]) + text

    model, rest = (
        ModelInferRequest(model_name="m").SerializeToString(),
        message().SerializeToString(),
    )
    start = field(0x22, field(0x0A, b"sequence_start") + field(0x12, b"\x08\1"))
    known = MessageLayoutCache()
    for _ in range(2):
        learn(known, truncated_entry(1) + model + start + truncated_entry(1) + rest)
    assert read(known, truncated_entry(1) + model + start + truncated_entry(1) + rest) is not None
    assert (
        read(
            known,
            truncated_entry(1 + len(start)) + model + b"a" * len(start) + truncated_entry(1) + rest,
        )
        is None
    )


def in_a_region():
    sent = ModelInferRequest(model_name="m", raw_input_contents=[b"1234"])
    sent.inputs.add(name="X", datatype="UINT8", shape=[4])
    region = sent.outputs.add(name="Y")
    region.parameters["shared_memory_region"].string_param = "r"
    region.parameters["shared_memory_byte_size"].int64_param = 4
    return sent


def with_parameter(**choice):
    sent = message()
    (name, value), *_ = choice.items()
    sent.parameters[name].string_param = value
    return sent


@pytest.mark.parametrize(
    "sent", [in_a_region(), with_parameter(color="red"), message(datatype="INT3"), message(bytes(3))]
)  # fmt: skip
def test_requests_that_are_not_plain_are_not_cached(sent):
    assert read(learn_messages(sent), sent.SerializeToString()) is None


def test_strings_may_have_any_size():
    def words(*given):
        return message(encode_strings([word.encode() for word in given]).tobytes(), (2,), "BYTES")

    raw = words("much longer", "than before").SerializeToString()
    assert_equal(read(learn_messages(words("a", "b")), raw), decoded(raw))


def test_a_long_head_is_not_cached():
    sent = message(shape=[1] * MAX_HEAD_BYTES + [2])
    assert read_outline(sent.SerializeToString()) is None


def test_an_invalid_size_has_no_outline():
    raw = message().SerializeToString()
    longer = b"\x0a\x81" + b"\x80" * 9 + b"\0m" + raw[3:]
    with pytest.raises(DecodeError):
        ModelInferRequest.FromString(longer)
    assert raw[:3] == b"\x0a\x01m"
    assert read_outline(longer) is None
    assert read_outline(b"\x0a" + b"\xff" * 10_000_000) is None


def test_too_many_data_fields_have_no_outline():
    raw = message().SerializeToString() + b"\x3a\0" * MAX_HEAD_BYTES
    assert read_outline(raw) is None
    assert read_outline(raw[: 2 - 2 * MAX_HEAD_BYTES]) is not None


def test_the_cache_size_is_bounded():
    known = learn_messages(
        *[message(model_version=str(number)) for number in range(MAX_LAYOUTS + 1)]
    )
    assert len(known._layouts) == 1


@given(st.lists(arrays, min_size=1, max_size=3), st.text(max_size=5), st.booleans(), st.data())
def test_a_cached_request_equals_the_decoded_one(given_inputs, request_id, names_outputs, data):
    names = {
        np.int8: "INT8",
        np.uint16: "UINT16",
        np.int32: "INT32",
        np.float64: "FP64",
        np.bool_: "BOOL",
    }
    sent = ModelInferRequest(model_name="m", id=request_id)
    for number, (dtype, shape) in enumerate(given_inputs):
        sent.inputs.add(name=f"X{number}", datatype=names[dtype], shape=shape)
        size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
        sent.raw_input_contents.append(data.draw(st.binary(min_size=size, max_size=size)))
    if names_outputs:
        sent.outputs.add(name="Y")
    raw = sent.SerializeToString()
    assert_equal(read(learn_messages(sent), raw), decoded(raw))


@given(st.binary(max_size=60))
def test_arbitrary_bytes_have_a_valid_outline_or_none(raw):
    outline = read_outline(raw)
    assert outline is None or all(start <= end <= len(raw) for start, end in outline.spans)


def message_of_two(model="m", request_id="", floats=(1, 2), text=b"word"):
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
        form_of(message_of_two(request_id="id-1")),
        message_of_two(request_id="id-2", floats=(5, 6), text=b"\0\xff\x82\n"),
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
    raw = message_of_two(request_id=request_id, text=text)
    template = form_of(raw)
    assert template.fits(raw)
    assert template.id(raw) == request_id
    assert template.inputs(raw)["S"].strings() == [text]


def test_a_template_requires_the_same_description_of_the_data():
    assert not form_of(message_of_two("m")).fits(message_of_two("n"))
    assert not form_of(message_of_two(request_id="ab", text=b"xy")).fits(
        message_of_two(request_id="", text=b"xyabcd")
    )


def test_an_id_that_is_not_utf8_raises():
    raw = message_of_two(request_id="ab").replace(b"\x1a\x02ab", b"\x1a\x02\xff\xfe")
    template = form_of(message_of_two(request_id="ab"))
    assert template.fits(raw)
    with pytest.raises(UnicodeDecodeError):
        template.id(raw)


def test_a_template_is_found_among_others_of_its_length():
    templates = forms_of(
        message_of_two("a"), message_of_two("b"), message_of_two("c", request_id="longer")
    )
    assert [
        templates.find(message_of_two(model)).fits(message_of_two(model)) for model in "ab"
    ] == [True, True]
    assert templates.find(message_of_two("c")) is None


def test_the_latest_templates_of_each_length_are_kept():
    models = [chr(ord("a") + number) for number in range(TEMPLATES_PER_LENGTH + 1)]
    templates = forms_of(*map(message_of_two, models))
    assert [templates.find(message_of_two(model)) is None for model in models] == [
        True,
        *[False] * TEMPLATES_PER_LENGTH,
    ]


def test_the_number_of_cached_lengths_is_bounded():
    templates = forms_of(*[message_of_two(text=b"x" * size) for size in range(MAX_LENGTHS)])
    assert len(templates._templates) == MAX_LENGTHS
    raw = message_of_two(text=b"x" * MAX_LENGTHS)
    templates.remember(form_of(raw), len(raw))
    assert len(templates._templates) == 1


@given(st.integers(0, len(message_of_two(request_id="ab")) - 1), st.integers(0, 255))
def test_a_modified_message_decodes_like_protobuf_or_is_not_matched(at, value):
    raw, known = message_of_two(request_id="ab"), MessageLayoutCache()
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
            assert (tensor.name, tensor.datatype, tensor.shape) == (
                other.name,
                other.datatype,
                other.shape,
            )
            assert tensor.data.tobytes() == other.data.tobytes()
