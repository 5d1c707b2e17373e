from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_http_api.dialect import HEADER_LENGTH, forwarded, translate_binary_type

PREFIX = b"application/x;json-header-size="


def translated(content_type):
    return dict(translate_binary_type({b"content-type": content_type}, PREFIX))


@pytest.mark.parametrize(("text", "length"), [(b"12", b"12"), (b" +7", b"+7"), (b"-1x", b"-1")])
def test_the_content_type_has_the_length_of_the_json(text, length):
    assert translated(PREFIX + text)[HEADER_LENGTH] == length


def test_other_content_types_have_none_and_tritons_header_is_left_out():
    headers = {b"content-type": b"application/json", HEADER_LENGTH: b"1"}
    assert HEADER_LENGTH not in translate_binary_type(headers, PREFIX)
    assert translate_binary_type({}, PREFIX) == {}


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        (b"a/" + PREFIX + b"1", "expect MIME type for binary data starts with"),
        (PREFIX + b"x", "Unable to parse inference header size, got: x"),
        (PREFIX + b"2147483648", "value is out of range, got: 2147483648"),
        (PREFIX + b"9" * 9999, "value is out of range, got: 9"),
    ],
)
def test_wrong_lengths_are_refused_with_tritons_text(content_type, text):
    with pytest.raises(InvalidArgument, match=text):
        translated(content_type)


def test_a_forwarded_request_keeps_its_headers_but_not_its_query():
    scope = {"method": "POST", "path": "/a", "query_string": b"q=1", "headers": [(b"x", b"y")]}
    found = forwarded(scope, "GET", "/v2/b")
    assert (found["method"], found["path"], found["raw_path"]) == ("GET", "/v2/b", b"/v2/b")
    assert (found["query_string"], found["headers"]) == (b"", scope["headers"])
