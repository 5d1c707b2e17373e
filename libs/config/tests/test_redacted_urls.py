from __future__ import annotations

import pytest

from tritonpy_config.redacted_urls import redact_urls


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("sftp://user:SEC@RET@host/models", "sftp://user:***@host/models"),
        ("https://host/models?sig=SECRET", "https://host/models?***"),
        ("https://user@host:1/models", "https://user@host:1/models"),
        ("s3://https://host:1/bucket/a@b", "s3://https://host:1/bucket/a@b"),
        ("./models", "./models"),
    ],
)
def test_passwords_and_queries_are_redacted_anywhere_in_a_text(url, redacted):
    assert (
        redact_urls(f"cannot get '{url}', twice ({url})")
        == f"cannot get '{redacted}', twice ({redacted})"
    )
