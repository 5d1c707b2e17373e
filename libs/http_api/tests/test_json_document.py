from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Internal, InvalidArgument
from tritonpy_http_api import json_document as document

# The error texts of the real Triton.
SYNTAX = [
    (b"hello", "Invalid value. at 0"),
    (b"", "The document is empty. at 0"),
    (b" \n ", "The document is empty. at 3"),
    (b'[tr"ue]', "Invalid value. at 3"),
    (b"[1, nul]", "Invalid value. at 7"),
    (b'{"a":-x}', "Invalid value. at 6"),
    (b"[-", "Invalid value. at 2"),
    (b'["ab\\u20x1"]', "Incorrect hex digit after \\u escape in string. at 4"),
    (b"{", "Missing a name for object member. at 1"),
    (b'{"inputs":[{"name"', "Missing a colon after a name of object member. at 18"),
    (b'{"inp', "Missing a closing quotation mark in string. at 5"),
    (b'{"a":1,}', "Missing a name for object member. at 7"),
    (b"{'a':1}", "Missing a name for object member. at 1"),
    (b'{"id":"\\q"}', "Invalid escape character in string. at 7"),
    (b'{"a":"\x01"}', "Invalid escape character in string. at 6"),
    (b'{"a":1}  x', "The document root must not be followed by other values. at 9"),
    (b'{"a":1e999}', "Number too big to be stored in double. at 5"),
    (b'{"a":[1', "Missing a comma or ']' after an array element. at 7"),
    (b"[1.]", "Miss fraction part in number. at 3"),
    (b"[1e]", "Miss exponent in number. at 3"),
    (b"[1.", "Miss fraction part in number. at 3"),
    (b'{"a":"]","b":1', "Missing a comma or '}' after an object member. at 14"),
    ('{"é":1'.encode(), "Missing a comma or '}' after an object member. at 7"),
    (b'{"id":"\xff"}', "Invalid encoding in string. at 7"),
    (b'{"id":"\\ud800"}', "The surrogate pair in string is invalid. at 7"),
    ('{"é":"a\\uDFFF"}'.encode(), "The surrogate pair in string is invalid. at 8"),
    (b'{"id":"\\uD83D\\uDC4D\\uD83D"}', "The surrogate pair in string is invalid. at 19"),
]


@pytest.mark.parametrize(("raw", "text"), SYNTAX)
def test_syntax_errors_have_tritons_text_and_offset(raw, text):
    with pytest.raises(Internal) as caught:
        document.parse(raw)
    assert caught.value.message == f"failed to parse the request JSON buffer: {text}"


@pytest.mark.parametrize("raw", [b"[" * 10_000, b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 10_000])
def test_deep_nesting_is_refused(raw):
    with pytest.raises(
        InvalidArgument, match=r"JSON nesting depth exceeds maximum allowed limit \(100\)"
    ):
        document.parse(raw)


def test_infinity_is_accepted():
    assert document.parse(b"[Infinity,-Infinity]") == [float("inf"), -float("inf")]


def test_surrogate_pairs_and_escaped_backslashes_are_accepted():
    assert document.parse(b'["\\ud83d\\uDC4d", "\\\\ud800"]') == ["👍", "\\ud800"]


def test_the_first_duplicate_member_wins():
    assert document.parse(b'{"a":1,"a":2}') == {"a": 1}


def test_objects_may_be_converted():
    assert document.parse(b'{"a":1,"a":{"b":2}}', tuple) == (("a", 1), ("a", (("b", 2),)))


def test_a_number_with_many_digits_is_refused():
    with pytest.raises(Internal, match=r"Number too big"):
        document.parse(b"1" * 10_000)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_json_values_are_parsed_like_the_standard_library(value):
    assert document.parse(json.dumps(value).encode()) == value


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_parsed_or_refused(raw):
    try:
        document.parse(raw)
    except Internal as error:
        assert error.message.startswith("failed to parse the request JSON buffer: ")  # noqa: PT017


@given(json_values, st.data())
def test_a_truncated_document_is_refused_or_shorter(value, data):
    raw = json.dumps([value]).encode()
    cut = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(Internal):
        document.parse(raw[:cut])


@pytest.mark.parametrize(
    ("accessor", "good", "bad", "words"),
    [
        (document.as_array, [], {}, "non-array as array"),
        (document.as_string, "", 1, "non-string as string"),
        (document.as_bool, False, 0, "non-boolean as boolean"),
        (document.as_uint, 2**64 - 1, 2**64, "non-unsigned-integer as unsigned-integer"),
        (document.as_uint, 0, -1, "non-unsigned-integer as unsigned-integer"),
        (document.as_uint, 1, True, "non-unsigned-integer as unsigned-integer"),
        (document.as_uint, 1, 1.0, "non-unsigned-integer as unsigned-integer"),
    ],
)
def test_accessors_check_the_type(accessor, good, bad, words):
    assert accessor(good) == good
    with pytest.raises(Internal) as caught:
        accessor(bad)
    assert caught.value.message == f"attempt to access JSON {words}"


@pytest.mark.parametrize("holder", [{}, [], 3, None])
def test_a_missing_member_is_named(holder):
    with pytest.raises(Internal, match=r"attempt to access non-existing object member 'x'"):
        document.member(holder, "x")
    assert document.find(holder, "x") is None
    assert not document.has(holder, "x")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1f\x8b\x08", "Invalid value. at 0"),
        (b"\xff", "Invalid value. at 0"),
        (b"[1, \xff]", "Invalid value. at 4"),
        (b'{"a": "b\xff"}', "Invalid encoding in string. at 8"),
    ],
)
def test_invalid_utf8_has_the_error_of_its_position(raw, text):
    with pytest.raises(Internal, match=text):
        document.parse(raw)
