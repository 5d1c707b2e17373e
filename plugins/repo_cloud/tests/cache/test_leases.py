from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest


def test_blobs_are_in_use_until_their_lease_is_released(server):
    one, other = server(), server()
    lease = one.cache.lease()
    digest = one.keep("k", b"content", lease)
    with one.folder.lock():
        assert other.leases.in_use() == {one.blobs.path(digest)}
    lease.release()
    with one.folder.lock():
        assert other.leases.in_use() == set()


@pytest.mark.parametrize("linked", ["hard", "symbolic"])
def test_a_model_folder_consists_of_links(server, monkeypatch, linked):
    if linked == "symbolic":

        def refuse(*_):
            raise OSError(errno.EPERM, "no hard links here")

        monkeypatch.setattr(os, "link", refuse)
    one = server()
    lease = one.cache.lease()
    digest = one.keep("k", b"content", lease)
    folder = lease.link_files("m", {"1/model": digest, "2/same": digest, "3/": ""})
    assert (folder / "1/model").read_bytes() == b"content" == (folder / "2/same").read_bytes()
    assert (folder / "3").is_dir()
    assert (folder / "1/model").is_symlink() == (linked == "symbolic")
    lease.release()
    assert not folder.exists()
    assert one.blobs.has(digest)


def test_another_failure_to_link_is_raised(server, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    one = server()
    lease = one.cache.lease()
    digest = one.keep("k", b"content", lease)
    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="full"):
        lease.link_files("m", {"1/model": digest})


def test_leases_of_a_killed_server_are_removed(server, folder):
    code = f"""
import sys
from pathlib import Path
from tritonpy_repo_cloud.cache.folder import CacheFolder
from tritonpy_repo_cloud.cache.model_cache import ModelCache
cache = ModelCache(CacheFolder(Path({str(folder.root)!r})), 1 << 40)
lease = cache.lease()
(lease.folder / ".blobs").write_text("a" * 64)
print("held", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    one = server()
    with folder.lock():
        assert {path.name for path in one.leases.in_use()} == {"a" * 64}
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    with folder.lock():
        assert one.leases.in_use() == set()
    assert list(folder.leases.iterdir()) == []


def test_a_model_may_have_any_name(server):
    one = server()
    lease = one.cache.lease()
    digest = one.keep("k", b"content", lease)
    assert (lease.link_files("blobs", {"1/model": digest}) / "1/model").read_bytes() == b"content"


def test_a_stray_file_among_the_leases_is_left_alone(server, folder):
    (folder.leases / "stray").touch()
    with folder.lock():
        assert server().leases.in_use() == set()


def test_closing_ends_all_leases(server, folder):
    one = server()
    lease = one.leases.create()
    one.leases.close()
    assert not lease.folder.exists()
    one.leases.close()
    assert list(folder.leases.iterdir()) == []
