from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tritonpy import Unavailable


def test_an_object_is_taken_by_every_server_once_one_has_it(server):
    one, other = server(), server()
    assert one.cache.take("k", one.cache.lease()) is None
    digest = one.keep("k", b"content", one.cache.lease())
    assert other.cache.has("k")
    assert other.cache.take("k", other.cache.lease()) == digest


def test_equal_contents_are_kept_once(server):
    one = server()
    lease = one.cache.lease()
    assert one.keep("k1", b"content", lease) == one.keep("k2", b"content", lease)
    assert len(list(one.blobs.stored())) == 1


def test_damaged_content_is_not_taken_and_makes_way_for_the_sound_one(server):
    one, other = server(), server()
    digest = one.keep("k", b"content", one.cache.lease())
    path = one.blobs.path(digest)
    path.chmod(0o644)
    path.write_bytes(b"CONTENT")
    assert other.cache.take("k", other.cache.lease()) is None
    assert not one.cache.has("k")
    assert other.keep("k", b"content", other.cache.lease()) == digest


def test_a_sound_copy_that_another_server_brought_meanwhile_is_left_alone(server, monkeypatch):
    one, other = server(), server()
    digest = one.keep("k", b"content", one.cache.lease())
    path = one.blobs.path(digest)
    path.chmod(0o644)
    path.write_bytes(b"CONTENT")
    judged = one.cache._blobs.sound

    def late(digest):
        result = judged(digest)
        if not result:
            monkeypatch.setattr(one.cache._blobs, "sound", judged)
            assert other.cache.take("k", other.cache.lease()) is None
            assert other.keep("k", b"content", other.cache.lease()) == digest
        return result

    monkeypatch.setattr(one.cache._blobs, "sound", late)
    assert one.cache.take("k", one.cache.lease()) is None
    assert path.read_bytes() == b"content"
    assert one.cache.take("k", one.cache.lease()) == digest


def test_a_folder_in_the_place_of_content_makes_way_for_it(server):
    one = server()
    digest = one.keep("k", b"content", one.cache.lease())
    path = one.blobs.path(digest)
    path.unlink()
    (path / "inside").mkdir(parents=True)
    assert one.cache.take("k", one.cache.lease()) is None
    assert one.keep("k", b"content", one.cache.lease()) == digest
    assert path.read_bytes() == b"content"


def test_waiting_for_another_server_is_told(server, caplog):
    one, other = server(), server()
    caplog.set_level("INFO")
    stopped = threading.Event()
    with one.cache.fetching("s3://bucket\0m", stopped), ThreadPoolExecutor(1) as pool:

        def wait():
            with pytest.raises(Unavailable), other.cache.fetching("s3://bucket\0m", stopped):
                pass

        waiting = pool.submit(wait)
        while not re.search(r"another server fetches 'm', waiting for it \(\d+ s so far\)", caplog.text):
            assert not waiting.done()
        stopped.set()
        waiting.result(10)


def test_an_empty_file_is_kept(server):
    one = server()
    lease = one.cache.lease()
    digest = one.keep("k", b"", lease)
    assert (lease.show("m", {"empty": digest}) / "empty").read_bytes() == b""


def test_one_server_fetches_a_model_and_the_others_wait(server):
    one, other = server(), server()
    order, waiting = [], threading.Event()

    def second():
        waiting.set()
        with other.cache.fetching("m", Event()):
            order.append("second")

    thread = threading.Thread(target=second)
    with one.cache.fetching("m", Event()), other.cache.fetching("another", Event()):
        thread.start()
        assert waiting.wait(30)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]


def test_who_waits_can_be_stopped(server):
    one, other, stopped = server(), server(), Event()
    stopped.set()
    with (
        one.cache.fetching("m", Event()),
        pytest.raises(Unavailable, match="Server exiting"),
        other.cache.fetching("m", stopped),
    ):
        pass
