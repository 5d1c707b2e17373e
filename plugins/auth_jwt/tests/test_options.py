from __future__ import annotations

import pytest

from tritonpy_auth_jwt.options import JwtOptions
from tritonpy_config.server import InvalidServerConfig, decode_options


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"jwks_file": "f"}, "'algorithms' is missing"),
        ({"algorithms": [], "jwks_file": "f"}, "'algorithms' is missing"),
        ({"algorithms": ["none"], "jwks_file": "f"}, "algorithms"),
        ({"algorithms": ["None"], "jwks_file": "f"}, "algorithms"),
        ({"algorithms": ["RS256"]}, "give either jwks_file or jwks_url"),
        ({"algorithms": ["RS256"], "jwks_file": "f", "jwks_url": "https://h"}, "give either"),
        ({"algorithms": ["RS256"], "jwks_url": "http://h/set"}, "must begin with https"),
        ({"algorithms": ["RS256"], "jwks_url": "file:///etc/set"}, "must begin with https"),
        (
            {"algorithms": ["RS256"], "jwks_url": "http://localhost.evil/set"},
            "must begin with https",
        ),
        ({"algorithms": ["RS256", "HS256"], "jwks_url": "https://h/set"}, "shared secret"),
    ],
)
def test_unsafe_options_are_rejected(raw, text):
    with pytest.raises(InvalidServerConfig) as caught:
        decode_options(JwtOptions, raw, "auth.jwt")
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://login.example/jwks", "http://127.0.0.1:8/jwks", "http://[::1]/jwks"]
)
def test_urls_are_https_or_local(url):
    assert (
        decode_options(JwtOptions, {"algorithms": ["ES256"], "jwks-url": url}, "auth.jwt").jwks_url
        == url
    )
