from __future__ import annotations

import pytest

from tritonpy.shown_urls import without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sftp://user:SEC@RET@host/models", "sftp://user:***@host/models"),
        ("https://host/models?sig=SECRET", "https://host/models?***"),
        ("https://user@host:1/models", "https://user@host:1/models"),
        ("s3://https://host:1/bucket/a@b", "s3://https://host:1/bucket/a@b"),
        ("./models", "./models"),
    ],
)
def test_what_is_shown_of_a_url_has_no_secrets_wherever_it_stands(url, shown):
    assert without_secrets(f"cannot get '{url}', twice ({url})") == f"cannot get '{shown}', twice ({shown})"
