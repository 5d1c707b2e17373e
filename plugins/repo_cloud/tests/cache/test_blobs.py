from __future__ import annotations

import hashlib
import os

import pytest

from tritonpy_repo_cloud.cache.blobs import Blobs

CONTENT = b"content"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def blobs(tmp_path):
    (tmp_path / "blobs").mkdir()
    (tmp_path / "new").write_bytes(CONTENT)
    found = Blobs(tmp_path / "blobs")
    found.add(tmp_path / "new", DIGEST)
    return found


def test_a_file_is_found_by_its_content_and_cannot_be_written(blobs, tmp_path):
    assert blobs.has(DIGEST)
    assert blobs.path(DIGEST).read_bytes() == CONTENT
    assert blobs.path(DIGEST).stat().st_mode & 0o777 == 0o444
    assert not (tmp_path / "new").exists()


def test_touch_records_the_use_and_keeps_the_blob_verified(blobs):
    os.utime(blobs.path(DIGEST), ns=(1, blobs.path(DIGEST).stat().st_mtime_ns))
    (before,) = blobs.stored()
    blobs.touch(DIGEST)
    (after,) = blobs.stored()
    assert before.used_ns == 1 < after.used_ns
    assert (after.path, after.byte_size) == (blobs.path(DIGEST), len(CONTENT))


@pytest.mark.parametrize("content", [b"CONTENT", b"longer than it was", b""])
def test_a_modified_blob_is_not_intact(blobs, caplog, content):
    assert blobs.is_intact(DIGEST)
    blobs.path(DIGEST).chmod(0o644)
    blobs.path(DIGEST).write_bytes(content)
    assert not blobs.is_intact(DIGEST)
    assert "is damaged" in caplog.text


def test_another_process_verifies_a_blob_once(blobs, tmp_path, monkeypatch):
    from tritonpy_repo_cloud.cache import blobs as module

    other, read = Blobs(tmp_path / "blobs"), []
    file_digests = module.file_digests
    monkeypatch.setattr(
        module, "file_digests", lambda path: read.append(path) or file_digests(path)
    )
    assert other.is_intact(DIGEST)
    other.touch(DIGEST)
    assert other.is_intact(DIGEST)
    assert len(read) == 1


def test_links_keep_the_content_of_removed_blobs(blobs, tmp_path):
    os.link(blobs.path(DIGEST), tmp_path / "link")
    blobs.remove(DIGEST)
    blobs.remove(DIGEST)
    assert not blobs.has(DIGEST)
    assert (tmp_path / "link").read_bytes() == CONTENT


def test_a_blob_removed_by_another_server_is_not_intact(blobs, tmp_path):
    blobs.path(DIGEST).unlink()
    assert not Blobs(tmp_path / "blobs").is_intact(DIGEST)
