from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import StartupError
from tritonpy_repo_cloud.location import Location, parse_location


@pytest.mark.parametrize(
    ("url", "protocol", "root", "endpoint", "account"),
    [
        ("s3://bucket", "s3", "bucket", "", ""),
        ("s3://bucket/path/to/models/", "s3", "bucket/path/to/models", "", ""),
        ("s3://bucket//path///models", "s3", "bucket/path/models", "", ""),
        ("s3://localhost:9000/bucket/path", "s3", "bucket/path", "http://localhost:9000", ""),
        ("s3://http://10.0.0.1:9000/bucket", "s3", "bucket", "http://10.0.0.1:9000", ""),
        (
            "s3://https://store.example:443/bucket/m",
            "s3",
            "bucket/m",
            "https://store.example:443",
            "",
        ),
        ("s3://https://store.example/bucket/m", "s3", "bucket/m", "https://store.example", ""),
        ("s3://http://[::1]:9000/bucket", "s3", "bucket", "http://[::1]:9000", ""),
        ("gs://bucket/models", "gs", "bucket/models", "", ""),
        ("as://account/container/models", "abfs", "container/models", "", "account"),
        ("as://account.blob.core.windows.net/container", "abfs", "container", "", "account"),
        ("memory://models", "memory", "memory://models", "", ""),
        ("https://host/models/", "https", "https://host/models", "", ""),
    ],
)
def test_a_url_is_parsed(url, protocol, root, endpoint, account):
    assert parse_location(url) == Location(
        url, url.partition(":")[0], protocol, root, endpoint, account
    )


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///",
        "s3://localhost:9000/",
        "s3://https://host:1/",
        "gs://",
        "as://",
        "as://account",
    ],
)
def test_a_url_without_a_bucket_is_refused(url):
    with pytest.raises(StartupError, match=r"No (bucket|container) name found in path: .*; use "):
        parse_location(url)


@pytest.mark.parametrize("url", ["s3://http://KEY:SECRET@host:1/bucket", "s3://ftp://host/bucket"])
def test_a_url_whose_server_has_another_form_is_refused_without_its_secrets(url):
    with pytest.raises(StartupError, match="contains no server") as refused:
        parse_location(url)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("sftp://user:SEC@RET@host/models", "sftp://user:***@host/models"),
        ("https://host/models?sig=SECRET", "https://host/models?***"),
        ("https://user@host:1/models", "https://user@host:1/models"),
        ("s3://https://host:1/bucket/a@b", "s3://https://host:1/bucket/a@b"),
    ],
)
def test_the_redacted_url_has_no_secrets(url, redacted):
    assert parse_location(url).redacted_url == redacted


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1)


@given(st.sampled_from(["s3", "gs"]), st.lists(NAMES, min_size=1))
def test_slashes_do_not_matter(scheme, parts):
    assert parse_location(f"{scheme}://" + "/".join(parts)).root == "/".join(parts)
    assert parse_location(f"{scheme}://" + "//".join(parts) + "/").root == "/".join(parts)


@given(NAMES, st.integers(1, 65535), NAMES, NAMES)
def test_a_port_makes_a_server_of_the_first_part(host, port, bucket, path):
    location = parse_location(f"s3://{host}:{port}/{bucket}/{path}")
    assert (location.endpoint, location.root) == (f"http://{host}:{port}", f"{bucket}/{path}")
