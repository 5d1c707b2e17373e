from __future__ import annotations

import errno
import os
from threading import Event

import pytest

from tritonpy import Unavailable


def names(server):
    return {each.path.name for each in server.blobs.stored()}


def test_the_oldest_files_are_evicted_and_those_in_use_are_not(server):
    one = server(limit=30)
    lease, idle = one.cache.lease(), one.cache.lease()
    used = one.keep("used", b"u" * 10, lease)
    old = one.keep("old", b"o" * 10, idle)
    new = one.keep("new", b"n" * 10, idle)
    idle.release()
    os.utime(one.blobs.path(used), ns=(1, 1))
    os.utime(one.blobs.path(old), ns=(2, 2))
    third = one.keep("third", b"t" * 10, lease)
    assert names(one) == {used, new, third}
    assert [one.cache.has(key) for key in ("used", "old", "new", "third")] == [
        True,
        False,
        True,
        True,
    ]


def test_a_model_that_does_not_fit_next_to_files_in_use_is_rejected_with_the_numbers(server):
    one, other = server(limit=30), server(limit=30)
    one.keep("used", b"u" * 20, one.cache.lease())
    with pytest.raises(
        Unavailable,
        match="11 bytes are needed and 20 of its 30 bytes are in use; unload models or increase the option cache_size",
    ):
        other.keep("more", b"m" * 11, other.cache.lease(), model="more")
    other.keep("fits", b"f" * 10, other.cache.lease(), model="fits")


def test_active_downloads_count_and_abandoned_ones_are_evicted(server):
    one, other = server(limit=30), server(limit=30)
    with one.cache.exclusive_fetch("m", Event()) as folder:
        one.cache.allocate(folder, {"k": 20})
        with pytest.raises(Unavailable, match="20 of its 30 bytes are in use"):
            other.keep("more", b"m" * 20, other.cache.lease(), model="more")
    other.keep("more", b"m" * 20, other.cache.lease(), model="more")
    assert list(one.folder.partial.glob("*/k*")) == []


def test_a_model_larger_than_the_cache_evicts_nothing(server):
    one = server(limit=30)
    lease = one.cache.lease()
    kept = one.keep("k", b"k" * 10, lease)
    lease.release()
    with (
        one.cache.exclusive_fetch("m", Event()) as folder,
        pytest.raises(Unavailable, match="40 bytes are needed and 0 of its 30"),
    ):
        one.cache.allocate(folder, {"a": 20, "b": 20})
    assert names(one) == {kept}
    assert list(one.folder.partial.glob("*/[ab]*")) == []


def test_a_stray_file_among_the_partial_ones_is_left_alone(server, folder):
    (folder.partial / "stray").touch()
    one = server(limit=30)
    assert one.blobs.has(one.keep("k", b"k" * 10, one.cache.lease()))


def test_a_full_disk_evicts_the_oldest_files(server, monkeypatch):
    one = server()
    idle = one.cache.lease()
    for key in ("a", "b"):
        one.keep(key, key.encode() * 10, idle)
    idle.release()
    allocate, refusals = (
        os.posix_fallocate,
        [OSError(errno.ENOSPC, "full"), OSError(errno.ENOSPC, "full")],
    )

    def full(*arguments):
        if refusals:
            raise refusals.pop()
        allocate(*arguments)

    monkeypatch.setattr(os, "posix_fallocate", full)
    digest = one.keep("c", b"c" * 10, one.cache.lease())
    assert names(one) == {digest}


def test_another_failure_of_the_disk_is_raised(server, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "broken")

    one = server()
    monkeypatch.setattr(os, "posix_fallocate", broken)
    with pytest.raises(OSError, match="broken"):
        one.keep("c", b"c" * 10, one.cache.lease())
