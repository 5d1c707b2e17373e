from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.remote_file import RemoteFile, by_model, remote_files

MD5 = hashlib.md5(b"x", usedforsecurity=False)
TIME = datetime(2026, 1, 2, tzinfo=UTC)


def one(**info):
    (found,) = remote_files("bucket/root", {"bucket/root/m/f": {"size": 1, "type": "file", **info}})
    return found


@pytest.mark.parametrize(
    ("info", "checksum"),
    [
        ({"ETag": f'"{MD5.hexdigest()}"'}, ("md5", MD5.hexdigest())),
        ({"ETag": f'"{MD5.hexdigest()}-12"'}, None),
        ({"md5Hash": base64.b64encode(MD5.digest()).decode()}, ("md5", MD5.hexdigest())),
        (
            {"crc32c": base64.b64encode(b"\1\2\3\4").decode(), "generation": "1"},
            ("crc32c", "01020304"),
        ),
        (
            {"content_settings": SimpleNamespace(content_md5=bytearray(MD5.digest()))},
            ("md5", MD5.hexdigest()),
        ),
        ({"content_settings": SimpleNamespace(content_md5=None), "etag": "0x1"}, None),
        ({"md5Hash": "no base 64"}, None),
        ({}, None),
    ],
)
def test_the_checksum_is_the_stores(info, checksum):
    assert one(**info).checksum == checksum


def test_the_version_is_the_checksum_if_known():
    content = {"ETag": f'"{MD5.hexdigest()}"'}
    assert (
        one(**content, LastModified=TIME).version
        == one(**content, LastModified=TIME + timedelta(1)).version
    )


@pytest.mark.parametrize("key", ["ETag", "etag", "generation", "LastModified", "mtime", "created"])
def test_without_a_checksum_the_version_is_the_tag_or_time(key):
    values = (TIME, TIME + timedelta(0, 1)) if key in {"LastModified", "created"} else ("1", "2")
    values = (1.0, 2.0) if key == "mtime" else values
    first, second = (one(**{key: value}) for value in values)
    assert first.version != second.version
    assert one(**{key: values[0]}, size=2).version != first.version


@pytest.mark.parametrize(
    "value", [TIME, TIME.replace(tzinfo=None), TIME.isoformat(), TIME.timestamp()]
)
def test_all_time_formats_are_parsed(value):
    assert one(modified=value).modified == TIME.timestamp()


def test_an_invalid_time_is_none():
    assert one(updated="yesterday").modified is None


def test_folders_without_files_are_listed_with_a_slash():
    found = remote_files(
        "b/r",
        {
            "b/r": {"type": "directory"},
            "b/r/m": {"type": "directory"},
            "b/r/m/1": {"type": "directory"},
            "b/r/m/2/": {"type": "file", "size": 0},
            "b/r/m/3": {"type": "file", "size": 0},
            "b/r/m/3/model": {"type": "file", "size": 5},
        },
    )
    assert [file.path for file in found] == ["m/1/", "m/2/", "m/3/model"]


PATHS = st.lists(st.text("abc.", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@given(st.sets(PATHS))
def test_every_file_in_a_visible_folder_belongs_to_the_model_of_that_name(paths):
    files = [RemoteFile(path, path, 1, "1") for path in paths]
    models = by_model(files)
    assert {file.path for each in models.values() for file in each} == {
        path for path in paths if "/" in path and not path.startswith(".")
    }
    assert all(file.path.startswith(f"{name}/") for name, each in models.items() for file in each)


def test_a_stray_key_with_two_slashes_is_of_no_model():
    found = remote_files(
        "bucket/models", {"bucket/models//x": {"size": 1}, "bucket/models//y/1/f": {"size": 1}}
    )
    assert [file.path for file in found] == ["/x", "/y/1/f"]
    assert by_model(found) == {}
