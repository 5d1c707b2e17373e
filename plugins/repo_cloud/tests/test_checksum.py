from __future__ import annotations

import hashlib
import sys

import pytest

from tritonpy_repo_cloud.checksum import file_digests

CHECK = b"123456789"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CHECK)
    return path


def test_a_file_is_read_once_for_both_checksums(file):
    assert file_digests(file) == {"sha256": hashlib.sha256(CHECK).hexdigest()}
    assert file_digests(file, "md5")["md5"] == "25f9e794323b453885f5181f1b624d0b"
    assert file_digests(file, "crc32c")["crc32c"] == "e3069283"


def test_an_unsupported_checksum_is_omitted(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    assert set(file_digests(file, "crc32c")) == {"sha256"}
