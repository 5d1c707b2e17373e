from __future__ import annotations

import pytest

from tritonpy.access.credentials import MAX_CREDENTIAL_LENGTH, bearer_token, joined_headers


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("", None),
        ("Bearer a, Bearer b", "a, Bearer b"),  # two headers become one invalid token
        ("Bearer " + "a" * MAX_CREDENTIAL_LENGTH, "a" * MAX_CREDENTIAL_LENGTH),
        ("Bearer " + "a" * (MAX_CREDENTIAL_LENGTH + 1), None),
    ],
)
def test_the_bearer_s_token(value, token):
    assert bearer_token({"authorization": value}) == token


def test_no_header_no_token():
    assert bearer_token({}) is None


def test_headers_of_one_name_are_joined_with_a_comma():
    pairs = [("X-Api-Key", "a"), ("other", "1"), ("x-api-key", "b")]
    assert joined_headers(pairs) == {"x-api-key": "a, b", "other": "1"}
