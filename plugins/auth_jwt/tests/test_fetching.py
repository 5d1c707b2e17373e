from __future__ import annotations

import pytest

from tritonpy_auth_jwt.fetching import LARGEST, fetch

from .identity_provider import IdentityProvider


@pytest.fixture
def provider():
    with IdentityProvider() as running:
        yield running


def test_what_is_there_is_returned(provider):
    provider.body = "{}"
    assert fetch(provider.url, 20) == "{}"


@pytest.mark.parametrize("status", [204, 302, 307, 404, 500])
def test_another_answer_is_an_error(provider, status):
    provider.body, provider.status = "", status
    with pytest.raises((OSError, ValueError)):
        fetch(provider.url, 20)
    assert provider.asked == 1  # a redirection is not followed


def test_an_answer_without_end_is_cut(provider):
    provider.body = "a" * (LARGEST + 1)
    with pytest.raises(ValueError, match="more than"):
        fetch(provider.url, 20)


def test_nobody_there():
    with IdentityProvider() as gone:
        url = gone.url
    with pytest.raises(OSError):
        fetch(url, 20)
