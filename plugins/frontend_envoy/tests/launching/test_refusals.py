from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_frontend_envoy.launching.refusals import local_replies, path_filter, routes

(ROUTE,) = routes()
(ESCAPED,) = ROUTE["match"]["headers"]
RULES = ROUTE["typed_per_filter_config"][path_filter()["name"]]["rbac"]["rules"]
(UNREADABLE,) = RULES["policies"]["unreadable"]["permissions"]
PATTERN = re.compile(UNREADABLE["not_rule"]["url_path"]["path"]["safe_regex"]["regex"])


@given(st.text())
def test_every_escaped_text_is_readable(text):
    assert PATTERN.fullmatch("/" + quote(text, safe="/"))


@given(st.binary())
def test_escapes_are_readable_where_they_are_utf8(data):
    path = "/" + quote(data, safe="/")
    try:
        data.decode()
    except UnicodeDecodeError:
        assert not PATTERN.fullmatch(path)
    else:
        assert PATTERN.fullmatch(path)


@given(st.text())
def test_a_path_that_is_not_looked_at_is_readable(path):
    assert ESCAPED["string_match"]["contains"] in path or PATTERN.fullmatch(path)


@given(st.text("%0AaFfeEdDcC9z/", max_size=12))
def test_no_path_is_readable_that_pyvoy_cannot_decode(path):
    if PATTERN.fullmatch(path):
        unquote_to_bytes(path).decode()


@pytest.mark.parametrize("status", [400, 404, 408, 431])
def test_what_envoy_answers_by_itself_is_our_json(status):
    (mapper,) = (
        each
        for each in local_replies()["mappers"]
        if each["filter"]["status_code_filter"]["comparison"]["value"]["default_value"] == status
    )
    form = mapper["body_format_override"]
    assert form["content_type"] == "application/json"
    assert re.fullmatch(r'\{"error":"[^"]+"\}', form["text_format_source"]["inline_string"])
