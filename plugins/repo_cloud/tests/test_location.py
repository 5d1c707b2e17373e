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
        ("s3://https://store.example:443/bucket/m", "s3", "bucket/m", "https://store.example:443", ""),
        ("s3://https://store.example/bucket/m", "s3", "bucket/m", "https://store.example", ""),
        ("s3://http://[::1]:9000/bucket", "s3", "bucket", "http://[::1]:9000", ""),
        ("gs://bucket/models", "gs", "bucket/models", "", ""),
        ("as://account/container/models", "abfs", "container/models", "", "account"),
        ("as://account.blob.core.windows.net/container", "abfs", "container", "", "account"),
        ("memory://models", "memory", "memory://models", "", ""),
        ("https://host/models/", "https", "https://host/models", "", ""),
    ],
)
def test_a_url_names_a_place(url, protocol, root, endpoint, account):
    assert parse_location(url) == Location(url, url.partition(":")[0], protocol, root, endpoint, account)


@pytest.mark.parametrize(
    "url", ["s3://", "s3:///", "s3://localhost:9000/", "s3://https://host:1/", "gs://", "as://", "as://account"]
)
def test_a_url_without_a_bucket_is_refused(url):
    with pytest.raises(
        StartupError, match=r"No (bucket|container) name found in path: .*; a model repository is written"
    ):
        parse_location(url)


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1)


@given(st.sampled_from(["s3", "gs"]), st.lists(NAMES, min_size=1))
def test_slashes_do_not_matter(scheme, parts):
    assert parse_location(f"{scheme}://" + "/".join(parts)).root == "/".join(parts)
    assert parse_location(f"{scheme}://" + "//".join(parts) + "/").root == "/".join(parts)


@given(NAMES, st.integers(1, 65535), NAMES, NAMES)
def test_a_port_makes_a_server_of_the_first_part(host, port, bucket, path):
    location = parse_location(f"s3://{host}:{port}/{bucket}/{path}")
    assert (location.endpoint, location.root) == (f"http://{host}:{port}", f"{bucket}/{path}")
