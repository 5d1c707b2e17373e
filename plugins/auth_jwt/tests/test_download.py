from __future__ import annotations

import pytest

from tritonpy_auth_jwt.download import MAX_BYTES, download

from .identity_provider import IdentityProvider


@pytest.fixture
def provider():
    with IdentityProvider() as running:
        yield running


def test_the_body_is_returned(provider):
    provider.body = "{}"
    assert download(provider.url, 20) == "{}"


@pytest.mark.parametrize("status", [204, 302, 307, 404, 500])
def test_another_status_is_an_error(provider, status):
    provider.body, provider.status = "", status
    with pytest.raises((OSError, ValueError)):
        download(provider.url, 20)
    assert provider.request_count == 1  # redirects are not followed


def test_an_oversized_response_is_rejected(provider):
    provider.body = "a" * (MAX_BYTES + 1)
    with pytest.raises(ValueError, match="more than"):
        download(provider.url, 20)


def test_a_refused_connection_is_an_error():
    with IdentityProvider() as gone:
        url = gone.url
    with pytest.raises(OSError):
        download(url, 20)
