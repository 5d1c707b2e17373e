"""A server keeps responding during Redis outages."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from redis import Redis

import tritonpy_cache_redis
from tritonpy import Backend, InferRequest, Tensor, hookimpl
from tritonpy_testing import ModelRepository, RecordingSink, RunningServer, running_server

SECRET = "correct-horse-battery-staple"
WAIT_S = 30.0
CONFIG = """
    backend: "toy" max_batch_size: 8
    input { name: "IN" data_type: TYPE_INT32 dims: -1 }
    output { name: "OUT" data_type: TYPE_INT32 dims: -1 }
    response_cache { enable: true }
"""


class Doubler(Backend):
    def infer(self, inputs):
        return {"OUT": inputs["IN"] * 2}


class Toys:
    @hookimpl
    def tritonpy_backends(self):
        return {"toy": Doubler}


@contextlib.contextmanager
def served(folder, server, **more) -> Iterator[RunningServer]:
    """Serve a model with a cache in `server`."""
    repository = ModelRepository(folder / "models")
    if not (folder / "models" / "m").exists():
        repository.add("m", CONFIG)
    config = {
        "repositories": [{"url": str(folder / "models")}],
        "frontends": {"http": False, "grpc": False, "metrics": False},
        "cache": {"redis": {"host": "127.0.0.1", "port": server.port, **more}},
    }
    with running_server(config, [Toys(), tritonpy_cache_redis], installed=False) as running:
        yield running


def infer(running, value):
    """Send one number and check the response."""
    recorder = RecordingSink()
    array = np.array([[value]], np.int32)
    request = InferRequest("m", {"IN": Tensor.from_numpy("IN", array)}, recorder.sink)
    running.engine.infer(request)
    ((response,),) = recorder.wait(request)
    recorder.check(request)
    assert response.error is None, response.error
    assert response.outputs[0].numpy().tolist() == [[2 * value]]


def counts(running):
    times = running.engine.statistics("m")[0].inference_stats
    return times.success.count, times.cache_hit.count, times.cache_miss.count


def until_hit(running, value=7):
    """Send requests until Redis responds."""
    before, deadline = counts(running)[1], time.monotonic() + WAIT_S
    while counts(running)[1] == before:
        assert time.monotonic() < deadline, "the cache had no more hits"
        infer(running, value)


@contextlib.contextmanager
def load(running, threads=4):
    """Send requests from several threads meanwhile. All responses must be correct."""
    going, errors, numbers = threading.Event(), [], itertools.count()
    sent = []

    def work():
        try:
            while not going.is_set():
                value = next(numbers) % 50
                infer(running, value)
                sent.append(value)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield sent
    finally:
        going.set()
        for worker in workers:
            worker.join()
    assert not errors, errors[0]


def wait_for_more(sent, count=100):
    """Return when `count` more requests have responses."""
    start, deadline = len(sent), time.monotonic() + WAIT_S
    while len(sent) < start + count:
        assert time.monotonic() < deadline, "requests get no more responses"
        time.sleep(0.002)


def test_cached_responses_outlive_the_server(redis, tmp_path):
    server = redis()
    with served(tmp_path, server) as running:
        until_hit(running)
    with served(tmp_path, server, deadline=30_000, socket_timeout=30_000) as running:
        infer(running, 7)
        assert counts(running) == (1, 1, 0)


def test_no_request_fails_without_redis(redis, tmp_path):
    server = redis()
    server.kill()
    with served(tmp_path, server) as running, load(running) as sent:
        wait_for_more(sent)
        assert counts(running)[1] == 0


def test_a_restarted_redis_is_used_again(redis, tmp_path):
    server = redis()
    with served(tmp_path, server) as running:
        with load(running) as sent:
            until_hit(running)
            for _ in range(2):
                server.kill()
                wait_for_more(sent)
                server.start()
                wait_for_more(sent)
        until_hit(running)
        success, hits, misses = counts(running)
        assert hits + misses == success


def test_a_hanging_redis_is_skipped_until_it_responds(redis, tmp_path):
    server = redis()
    with served(tmp_path, server, deadline=20, socket_timeout=200) as running:
        with load(running) as sent:
            until_hit(running)
            server.suspend()
            wait_for_more(sent, 300)
            server.resume()
            wait_for_more(sent)
        until_hit(running)


def test_invalid_values_are_computed_again(redis, tmp_path):
    server = redis()
    with served(tmp_path, server) as running:
        until_hit(running)
        with Redis(port=server.port) as client:
            for key in client.scan_iter():
                client.set(key, b"nonsense")
        infer(running, 7)
        until_hit(running)


def test_the_secret_is_in_no_log(redis, tmp_path, caplog):
    server = redis(f"requirepass {SECRET}")
    with caplog.at_level(logging.DEBUG), served(tmp_path, server, password=SECRET) as running:
        until_hit(running)
        with Redis(port=server.port, password=SECRET) as client:
            client.config_set("requirepass", "another one")
        server.kill()
        for value in range(20):
            infer(running, value)
    assert "failed" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("size", [1 << 20])
def test_large_responses_are_cached(redis, tmp_path, size):
    server = redis()
    with served(tmp_path, server, deadline=30_000, socket_timeout=30_000) as running:
        array = np.arange(size, dtype=np.int32)[None]
        for _ in range(2):
            recorder = RecordingSink()
            request = InferRequest("m", {"IN": Tensor.from_numpy("IN", array)}, recorder.sink)
            running.engine.infer(request)
            ((response,),) = recorder.wait(request)
            assert np.array_equal(response.outputs[0].numpy(), array * 2)
            deadline = time.monotonic() + WAIT_S
            with Redis(port=server.port) as client:
                while not client.keys():
                    assert time.monotonic() < deadline, "the response was not inserted"
                    time.sleep(0.005)
        assert counts(running) == (2, 1, 1)
