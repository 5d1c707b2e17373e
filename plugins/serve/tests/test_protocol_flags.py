from __future__ import annotations

import pytest

from tritonpy_serve.protocol_flags import restriction

PARSE = restriction("http-restricted-api", "api")


@pytest.mark.parametrize(
    ("text", "apis", "key", "value"),
    [
        ("health:k=v", ["health"], "k", "v"),
        (
            "model-repository,shared-memory:admin-key=a value",
            ["model-repository", "shared-memory"],
            "admin-key",
            "a value",
        ),
        ("health:k=v=w", ["health"], "k", "v=w"),
        ("health:k:l=v", ["health"], "k:l", "v"),
    ],
)
def test_categories_header_and_value(text, apis, key, value):
    assert PARSE(text) == {"apis": apis, "key": key, "value": value}


@pytest.mark.parametrize(
    "text", ["", "health", "health;k=v", "health:k", "health:k=", ":k=v", "health:=v"]
)
def test_another_form_is_refused_in_tritons_words(text):
    with pytest.raises(ValueError) as caught:
        PARSE(text)
    assert (
        str(caught.value)
        == f"--http-restricted-api option format is '<config name>:<setting>=<value>'. Got {text}"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("bogus:k=v", "unknown restricted api 'bogus'"),
        ("health,bogus:k=v", "unknown restricted api 'bogus'"),
        ("health,,metadata:k=v", "unknown restricted api ''"),
        (" health:k=v", "unknown restricted api ' health'"),
        ("Health:k=v", "unknown restricted api 'Health'"),
        (
            "health,health:k=v",
            "restricted api 'health' can not be specified in multiple config groups",
        ),
    ],
)
def test_unknown_and_repeated_categories_are_named(text, error):
    with pytest.raises(ValueError) as caught:
        PARSE(text)
    assert str(caught.value) == error


def test_protocols_are_called_protocols():
    with pytest.raises(ValueError, match="unknown restricted protocol 'x'"):
        restriction("grpc-restricted-protocol", "protocol")("x:k=v")
