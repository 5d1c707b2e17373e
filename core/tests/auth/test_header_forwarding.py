from __future__ import annotations

import pytest

from tritonpy import InferRequest, InvalidArgument
from tritonpy.auth.header_forwarding import (
    RESERVED,
    HeaderForwarding,
    compile_pattern,
    keep_headers,
)


def forwarded(pattern, headers, **parameters):
    request = InferRequest("m", {}, None, parameters=parameters)
    HeaderForwarding(pattern).apply(headers, request)
    return request.parameters


def test_a_name_matches_anywhere_and_in_any_case():
    headers = [("My-Header", "1"), ("in-MY-middle", "2"), ("other", "3")]
    assert forwarded("my", headers) == {"My-Header": "1", "in-MY-middle": "2"}
    assert forwarded("^my", headers) == {"My-Header": "1"}


def test_case_matters_if_the_pattern_requires_it():
    assert forwarded("(?-i)MY.*", [("my_header", "1"), ("MY_header", "2")]) == {"MY_header": "2"}


def test_headers_follow_parameters_and_replace_those_of_the_same_name():
    assert forwarded(
        "x", [("x-a", "header"), ("x-a", "again"), ("X-A", "other")], q=1, **{"x-a": "body"}
    ) == {
        "q": 1,
        "x-a": "again",
        "X-A": "other",
    }


def test_parameters_of_other_requests_do_not_change():
    shared = {"a": 1}
    request = InferRequest("m", {}, None, parameters=shared)
    HeaderForwarding("x").apply([("x", "1")], request)
    assert shared == {"a": 1}
    assert request.parameters == {"a": 1, "x": "1"}


@pytest.mark.parametrize(
    "name", [*sorted(RESERVED), "triton_", "triton_enable_empty_final_response"]
)
def test_reserved_names_are_refused_in_tritons_words(name):
    with pytest.raises(InvalidArgument) as caught:
        forwarded(".*", [("a", "1"), (name, "1")])
    assert (
        caught.value.message
        == f"Header '{name}' is reserved for Triton usage and cannot be forwarded."
    )
    # not forwarded, therefore not refused
    assert forwarded("^a", [("a", "1"), (name, "1")]) == {"a": "1"}


@pytest.mark.parametrize("pattern", ["(", "[a", r"\pN", "a**"])
def test_an_invalid_pattern_is_named(pattern):
    with pytest.raises(
        ValueError, match=r"^header_forward_pattern: .* is not a valid regular expression"
    ) as caught:
        compile_pattern(pattern)
    assert pattern in str(caught.value)


def test_a_request_keeps_the_headers_that_are_named_and_no_others():
    request = InferRequest("m", {}, None, parameters={"a": 1})
    keep_headers(
        [("X-Tenant", "acme"), ("Authorization", "secret"), ("x-tenant-id", "7")],
        frozenset({"x-tenant"}),
        request,
    )
    assert (request.headers, request.parameters) == ({"x-tenant": "acme"}, {"a": 1})


def test_values_of_a_repeated_header_are_joined():
    request = InferRequest("m", {}, None)
    keep_headers([("x-tenant", "acme"), ("X-Tenant", "greedy")], frozenset({"x-tenant"}), request)
    assert request.headers == {"x-tenant": "acme, greedy"}
