"""A server goes on answering, whatever becomes of its Redis."""

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
from tritonpy.testing import ModelRepository, RunningServer, Witness, running_server

SECRET = "correct-horse-battery-staple"
PATIENCE_S = 30.0
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


def ask(running, value):
    """Ask with one number, and check the answer."""
    witness = Witness()
    array = np.array([[value]], np.int32)
    request = InferRequest("m", {"IN": Tensor.from_numpy("IN", array)}, witness.sink)
    running.engine.infer(request)
    ((response,),) = witness.wait(request)
    witness.check(request)
    assert response.error is None, response.error
    assert response.outputs[0].numpy().tolist() == [[2 * value]]


def counts(running):
    times = running.engine.statistics("m")[0].inference_stats
    return times.success.count, times.cache_hit.count, times.cache_miss.count


def until_hit(running, value=7):
    """Ask until Redis answers."""
    before, deadline = counts(running)[1], time.monotonic() + PATIENCE_S
    while counts(running)[1] == before:
        assert time.monotonic() < deadline, "the cache never answered again"
        ask(running, value)


@contextlib.contextmanager
def load(running, threads=4):
    """Ask from several threads meanwhile; every answer is checked, and at the end all of them were right."""
    going, errors, numbers = threading.Event(), [], itertools.count()
    asked = []

    def work():
        try:
            while not going.is_set():
                value = next(numbers) % 50
                ask(running, value)
                asked.append(value)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield asked
    finally:
        going.set()
        for worker in workers:
            worker.join()
    assert not errors, errors[0]


def wait_for_more(asked, count=100):
    """Return when that many more requests were answered."""
    start, deadline = len(asked), time.monotonic() + PATIENCE_S
    while len(asked) < start + count:
        assert time.monotonic() < deadline, "requests are not answered any more"
        time.sleep(0.002)


def test_answers_outlive_the_server(redis, tmp_path):
    server = redis()
    with served(tmp_path, server) as running:
        until_hit(running)
    with served(tmp_path, server, deadline=30_000, socket_timeout=30_000) as running:
        ask(running, 7)
        assert counts(running) == (1, 1, 0)


def test_a_redis_that_never_ran_costs_no_answer(redis, tmp_path):
    server = redis()
    server.kill()
    with served(tmp_path, server) as running, load(running) as asked:
        wait_for_more(asked)
        assert counts(running)[1] == 0


def test_killed_and_started_again_under_load_it_is_used_again(redis, tmp_path):
    server = redis()
    with served(tmp_path, server) as running:
        with load(running) as asked:
            until_hit(running)
            for _ in range(2):
                server.kill()
                wait_for_more(asked)
                server.start()
                wait_for_more(asked)
        until_hit(running)
        success, hits, misses = counts(running)
        assert hits + misses == success


def test_one_that_hangs_under_load_is_left_alone_until_it_answers_again(redis, tmp_path):
    server = redis()
    with served(tmp_path, server, deadline=20, socket_timeout=200) as running:
        with load(running) as asked:
            until_hit(running)
            server.stop()
            wait_for_more(asked, 300)
            server.go_on()
            wait_for_more(asked)
        until_hit(running)


def test_values_that_others_broke_are_computed_again(redis, tmp_path):
    server = redis()
    with served(tmp_path, server) as running:
        until_hit(running)
        with Redis(port=server.port) as client:
            for key in client.scan_iter():
                client.set(key, b"nonsense")
        ask(running, 7)
        until_hit(running)


def test_the_secret_is_in_no_log(redis, tmp_path, caplog):
    server = redis(f"requirepass {SECRET}")
    with caplog.at_level(logging.DEBUG), served(tmp_path, server, password=SECRET) as running:
        until_hit(running)
        with Redis(port=server.port, password=SECRET) as client:
            client.config_set("requirepass", "another one")
        server.kill()
        for value in range(20):
            ask(running, value)
    assert "failed" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("size", [1 << 20])
def test_large_answers_travel_too(redis, tmp_path, size):
    server = redis()
    with served(tmp_path, server, deadline=30_000, socket_timeout=30_000) as running:
        array = np.arange(size, dtype=np.int32)[None]
        for _ in range(2):
            witness = Witness()
            request = InferRequest("m", {"IN": Tensor.from_numpy("IN", array)}, witness.sink)
            running.engine.infer(request)
            ((response,),) = witness.wait(request)
            assert np.array_equal(response.outputs[0].numpy(), array * 2)
            deadline = time.monotonic() + PATIENCE_S
            with Redis(port=server.port) as client:
                while not client.keys():
                    assert time.monotonic() < deadline, "the answer was not inserted"
                    time.sleep(0.005)
        assert counts(running) == (2, 1, 1)
