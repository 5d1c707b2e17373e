from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tritonpy import Unavailable


def test_an_object_cached_by_one_server_is_used_by_all(server):
    one, other = server(), server()
    assert one.cache.acquire("k", one.cache.lease()) is None
    digest = one.keep("k", b"content", one.cache.lease())
    assert other.cache.has("k")
    assert other.cache.acquire("k", other.cache.lease()) == digest


def test_equal_contents_are_stored_once(server):
    one = server()
    lease = one.cache.lease()
    assert one.keep("k1", b"content", lease) == one.keep("k2", b"content", lease)
    assert len(list(one.blobs.stored())) == 1


def test_damaged_content_is_removed_and_replaced(server):
    one, other = server(), server()
    digest = one.keep("k", b"content", one.cache.lease())
    path = one.blobs.path(digest)
    path.chmod(0o644)
    path.write_bytes(b"CONTENT")
    assert other.cache.acquire("k", other.cache.lease()) is None
    assert not one.cache.has("k")
    assert other.keep("k", b"content", other.cache.lease()) == digest


def test_an_intact_copy_of_another_server_is_kept(server, monkeypatch):
    one, other = server(), server()
    digest = one.keep("k", b"content", one.cache.lease())
    path = one.blobs.path(digest)
    path.chmod(0o644)
    path.write_bytes(b"CONTENT")
    judged = one.cache._blobs.is_intact

    def late(digest):
        result = judged(digest)
        if not result:
            monkeypatch.setattr(one.cache._blobs, "is_intact", judged)
            assert other.cache.acquire("k", other.cache.lease()) is None
            assert other.keep("k", b"content", other.cache.lease()) == digest
        return result

    monkeypatch.setattr(one.cache._blobs, "is_intact", late)
    assert one.cache.acquire("k", one.cache.lease()) is None
    assert path.read_bytes() == b"content"
    assert one.cache.acquire("k", one.cache.lease()) == digest


def test_a_folder_in_the_place_of_a_blob_is_replaced(server):
    one = server()
    digest = one.keep("k", b"content", one.cache.lease())
    path = one.blobs.path(digest)
    path.unlink()
    (path / "inside").mkdir(parents=True)
    assert one.cache.acquire("k", one.cache.lease()) is None
    assert one.keep("k", b"content", one.cache.lease()) == digest
    assert path.read_bytes() == b"content"


def test_waiting_for_another_server_is_logged(server, caplog):
    one, other = server(), server()
    caplog.set_level("INFO")
    stopped = threading.Event()
    with one.cache.exclusive_fetch("s3://bucket\0m", stopped), ThreadPoolExecutor(1) as pool:

        def wait():
            with pytest.raises(Unavailable), other.cache.exclusive_fetch("s3://bucket\0m", stopped):
                pass

        waiting = pool.submit(wait)
        while not re.search(
            r"waiting for another server that fetches 'm' \(\d+ s so far\)", caplog.text
        ):
            assert not waiting.done()
        stopped.set()
        waiting.result(10)


def test_an_empty_file_is_kept(server):
    one = server()
    lease = one.cache.lease()
    digest = one.keep("k", b"", lease)
    assert (lease.link_files("m", {"empty": digest}) / "empty").read_bytes() == b""


def test_one_server_fetches_a_model_and_the_others_wait(server):
    one, other = server(), server()
    order, waiting = [], threading.Event()

    def second():
        waiting.set()
        with other.cache.exclusive_fetch("m", Event()):
            order.append("second")

    thread = threading.Thread(target=second)
    with one.cache.exclusive_fetch("m", Event()), other.cache.exclusive_fetch("another", Event()):
        thread.start()
        assert waiting.wait(30)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]


def test_waiting_for_another_server_can_be_stopped(server):
    one, other, stopped = server(), server(), Event()
    stopped.set()
    with (
        one.cache.exclusive_fetch("m", Event()),
        pytest.raises(Unavailable, match="Server exiting"),
        other.cache.exclusive_fetch("m", stopped),
    ):
        pass
