from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, Internal, InvalidArgument, TritonError
from tritonpy.frontend import TensorMetadata
from tritonpy_http_api.generate.decode import JsonMembers, decode_generate, read_members

SINK = CallbackSink(lambda request, response: None)
INPUTS = [TensorMetadata("PROMPT", "BYTES", [-1, 1]), TensorMetadata("N", "INT32", [-1])]


def mapped(document, inputs=INPUTS, limit=10**6, known=None):
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return decode_generate(read_members(raw), "m", 3, inputs, SINK, limit, known)


def refusal(document, kind=TritonError, **options):
    with pytest.raises(kind) as caught:
        mapped(document, **options)
    return caught.value.message


def test_input_names_become_tensors_and_others_parameters():
    request = mapped(
        {"PROMPT": "hi", "temperature": 0.5, "N": [1, 2], "top_k": 3, "stream": True, "stop": "."}
    )
    assert {name: (one.shape, one.numpy().tolist()) for name, one in request.inputs.items()} == {
        "PROMPT": ((1, 1), [[b"hi"]]),
        "N": ((2,), [1, 2]),
    }
    assert request.parameters == {"temperature": 0.5, "top_k": 3, "stream": True, "stop": "."}
    assert (request.model_name, request.model_version, request.sink) == ("m", 3, SINK)
    assert request.accepts_decoupled
    assert request.outputs is None


def test_members_of_parameters_are_treated_like_outer_members():
    request = mapped({"parameters": {"N": 4, "a": 1, "parameters_": "x"}, "b": 2, "PROMPT": "p"})
    assert request.inputs["N"].numpy().tolist() == [4]
    assert dict(request.parameters) == {"a": 1, "parameters_": "x", "b": 2}


def test_the_later_of_a_nested_and_an_outer_parameter_wins():
    assert mapped({"a": 1, "parameters": {"a": 2}}).parameters == {"a": 2}
    assert mapped({"parameters": {"a": 2}, "a": 1}).parameters == {"a": 1}


def test_the_first_of_duplicate_members_wins():
    assert mapped(b'{"a":1,"a":2}').parameters == {"a": 1}
    assert mapped(b'{"id":"x","id":"y"}').id == "x"
    assert mapped(b'{"parameters":{"a":1},"parameters":{"b":2}}').parameters == {"a": 1}


def test_the_id_is_also_a_parameter():
    request = mapped({"id": "7", "N": 1})
    assert (request.id, request.parameters) == ("7", {"id": "7"})
    nested = mapped({"parameters": {"id": "7"}})
    assert (nested.id, nested.parameters) == ("", {"id": "7"})
    assert (
        refusal({"id": 5}, Internal)
        == "Unable to parse 'id': attempt to access JSON non-string as string"
    )


def test_an_input_may_be_named_id():
    request = mapped({"id": "7"}, inputs=[TensorMetadata("id", "BYTES", [1])])
    assert (request.id, request.inputs["id"].strings(), request.parameters) == ("7", [b"7"], {})


def test_protocol_parameters_have_no_special_meaning():
    given_ = {
        "sequence_id": 5,
        "sequence_start": True,
        "priority": 1,
        "timeout": 7,
        "binary_data_output": True,
        "triton_x": "y",
    }
    request = mapped(given_)
    assert request.parameters == given_
    assert (request.sequence, request.priority, request.timeout_us) == (None, 0, 0)


def test_integers_above_64_bits_become_floats():
    request = mapped({"a": 2**63 - 1, "b": 2**63, "c": -(2**63)})
    assert {name: type(value) for name, value in request.parameters.items()} == {
        "a": int,
        "b": float,
        "c": int,
    }


@pytest.mark.parametrize("value", [None, [1], [], {}, {"x": 1}])
def test_a_parameter_is_a_single_value(value):
    text = "parameter 'x' has invalid type. It should be either 'int', 'bool', or 'string'."
    assert refusal({"x": value}, InvalidArgument) == text
    assert (
        refusal({"parameters": {"x": value}}, InvalidArgument)
        == f"Converting keyword: 'parameters': {text}"
    )


@pytest.mark.parametrize("value", [None, 3, "x", [], [{}]])
def test_parameters_must_be_an_object(value):
    assert refusal({"parameters": value}, Internal) == (
        "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object"
    )


def test_nested_parameters_is_an_ordinary_parameter():
    assert refusal({"parameters": {"parameters": {}}}, InvalidArgument) == (
        "Converting keyword: 'parameters': parameter 'parameters' has invalid type. It should be either 'int', 'bool', or 'string'."
    )
    assert mapped({"parameters": {"parameters": 1}}).parameters == {"parameters": 1}


def test_an_input_named_parameters_is_refused():
    inputs = [TensorMetadata("parameters", "INT32", [1])]
    assert refusal({"parameters": 1}, InvalidArgument, inputs=inputs) == (
        "Keyword 'parameters' for nested schema also given as input tensor name"
    )
    assert mapped({"a": 1}, inputs=inputs).inputs == {}


def test_a_duplicate_input_is_refused():
    again = "[request id: <id_unknown>] input 'N' already exists in request"
    assert refusal(b'{"N":1,"N":2}', InvalidArgument) == again
    assert (
        refusal({"N": 1, "parameters": {"N": 2}}, InvalidArgument)
        == f"Converting keyword: 'parameters': {again}"
    )
    assert refusal(b'{"id":"7","N":1,"N":2}', InvalidArgument).startswith(
        "[request id: 7] input 'N'"
    )


def test_errors_of_nested_tensors_keep_their_code():
    assert refusal({"parameters": {"N": "a"}}, Internal).startswith(
        "Converting keyword: 'parameters': Unable to parse 'data'"
    )


def test_members_are_read_in_order():
    assert "PROMPT" in refusal(
        {"PROMPT": ["a", "b"] * 2, "N": "x"},
        InvalidArgument,
        inputs=[TensorMetadata("PROMPT", "BYTES", [1]), INPUTS[1]],
    )
    assert refusal({"N": "x", "PROMPT": 1}, Internal).startswith("Unable to parse 'data'")


def test_each_level_has_its_own_limit():
    inputs = [TensorMetadata(name, "INT8", [-1]) for name in "XYZ"]
    assert (
        len(mapped({"X": [1, 2], "parameters": {"Y": [1, 2]}}, inputs=inputs, limit=2).inputs) == 2
    )
    assert refusal({"X": [1, 2], "Z": 1}, InvalidArgument, inputs=inputs, limit=2).startswith(
        "request size of 2 bytes with input 'Z' of size 1 bytes exceeds the maximum allowed input size of 2."
    )


@pytest.mark.parametrize("raw", [b"[1]", b'"x"', b"null", b"3", b"[]"])
def test_the_body_must_be_an_object(raw):
    assert refusal(raw, Internal) == "attempt to get members for non-object"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "The document is empty. at 0"),
        (b"{", "Missing a name for object member. at 1"),
        (b"hello", "Invalid value. at 0"),
    ],
)
def test_the_body_must_be_json(raw, text):
    assert refusal(raw, Internal) == f"failed to parse the request JSON buffer: {text}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.sampled_from(["PROMPT", "N", "id", "parameters", "temperature", ""]) | st.text(
    max_size=3
)
plain_values = (
    st.text(max_size=5)
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
)


@given(
    st.lists(
        st.tuples(names, json_values | st.dictionaries(names, json_values, max_size=3)), max_size=5
    )
)
def test_arbitrary_objects_are_decoded_or_refused(members):
    raw = (
        "{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members) + "}"
    ).encode()
    try:
        request = mapped(raw)
    except TritonError as error:
        assert error.message  # noqa: PT017
        return
    assert set(request.inputs) <= {"PROMPT", "N"}
    assert all(type(value) in (str, int, bool, float) for value in request.parameters.values())


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_decoded_or_refused(raw):
    try:
        assert isinstance(read_members(raw), JsonMembers)
    except TritonError as error:
        assert error.message  # noqa: PT017


@given(
    st.dictionaries(
        st.text(max_size=4).filter(lambda name: name not in ("PROMPT", "N", "parameters", "id")),
        plain_values,
    ),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1),
    st.lists(st.text(max_size=6), min_size=1),
    st.booleans(),
)
def test_values_are_passed_to_the_model_unchanged(parameters, numbers, texts, nested):
    tensors = {"N": numbers, "PROMPT": texts}
    document = (
        {**tensors, "parameters": parameters} if nested else {**parameters, "parameters": tensors}
    )
    request = mapped(document)
    assert request.parameters == parameters
    assert request.inputs["N"].numpy().tolist() == numbers
    assert request.inputs["PROMPT"].shape == (len(texts), 1)
    assert [text.decode() for text in request.inputs["PROMPT"].strings()] == texts


KNOWN = frozenset(("max_tokens", "temperature"))


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"PROMPT": "p", "max_token": 5}, "unknown parameter 'max_token' for model 'm'; did you mean 'max_tokens'?"),
        ({"PROMPT": "p", "parameters": {"Temprature": 1}}, "unknown parameter 'Temprature' for model 'm'; did you mean 'temperature'?"),
        ({"prompt": "p"}, "unknown parameter 'prompt' for model 'm'; did you mean 'PROMPT'?"),
        (
            {"PROMPT": "p", "zzz": 1},
            "unknown parameter 'zzz' for model 'm'; it has the inputs PROMPT, N, and reads the parameters max_tokens, temperature",
        ),
    ],
)  # fmt: skip
def test_an_unknown_parameter_is_refused_with_a_suggestion(document, text):
    assert refusal(document, InvalidArgument, known=KNOWN) == text


def test_the_error_of_a_model_without_parameters_names_none():
    assert refusal({"PROMPT": "p", "zzz": 1}, known=frozenset()).endswith("and reads no parameters")


def test_known_parameters_and_the_id_are_accepted():
    request = mapped(
        {"PROMPT": "p", "id": "7", "max_tokens": 5, "parameters": {"temperature": 0}}, known=KNOWN
    )
    assert request.parameters == {"id": "7", "max_tokens": 5, "temperature": 0}
