"""Response caches that tests can inspect, block and break, and a model that counts its executions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from tritonpy.api.backend import Backend
from tritonpy.api.cache import Cache
from tritonpy.hookspecs import hookimpl
from tritonpy.server.server import Server
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, InferRequest, Tensor

from .doubler import Doubler
from .rescheduling import ReschedulingScheduler
from .serving import ToyPlugin, config_of, request_of, serving, toy_plugins

WAIT_S = 10.0


class MemoryCache(Cache):
    """Stores everything; `made` is the last instance."""

    made: ClassVar[Any] = None

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        type(self).made = self
        self.entries: dict[bytes, list[Tensor]] = {}
        self.looked_up: list[str] = []
        self.closed = False

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        self.looked_up.append(threading.current_thread().name)
        return self.entries.get(key)

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        self.entries[key] = [
            Tensor(each.name, each.datatype, each.shape, np.array(each.data)) for each in outputs
        ]

    def close(self) -> None:
        self.closed = True


class SlowCache(MemoryCache):
    """Waits at `gate` like a remote cache; `deadline_ms` is long enough for most tests."""

    blocking = True
    deadline_ms = 60_000

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.gate = threading.Event()
        self.gate.set()
        self.inserted = threading.Semaphore(0)

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        self.gate.wait(WAIT_S)
        return super().lookup(key)

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        super().insert(key, outputs)
        self.inserted.release()

    def wait_for_insertions(self, count: int) -> None:
        """Return when `count` more responses were inserted."""
        for _ in range(count):
            assert self.inserted.acquire(timeout=WAIT_S), "a response was not inserted"


class Broken(MemoryCache):
    """Raises at each call while it is down."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.down = True
        self.calls = 0

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        self.calls += 1
        if self.down:
            raise ConnectionError("the cache is down")
        return super().lookup(key)

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        self.calls += 1
        if self.down:
            raise ConnectionError("the cache is down")
        super().insert(key, outputs)


class CountingDoubler(Doubler):
    """A doubler that counts the requests it computed, over all its instances."""

    computed: ClassVar[int] = 0

    def execute(self, batch: Batch) -> None:
        type(self).computed += len(batch.requests)
        super().execute(batch)


class CachePlugin:
    """Registers one cache as "toy"."""

    def __init__(self, cache: type[Cache]) -> None:
        self._cache = cache

    @hookimpl
    def tritonpy_caches(self) -> Mapping[str, type[Cache]]:
        return {"toy": self._cache}


@contextmanager
def cached(
    repository: ModelRepository,
    cache: type[Cache],
    backend: type[Backend] = CountingDoubler,
    more: str = "",
    **settings: Any,
) -> Iterator[Server]:
    """Serve `backend` as "m" with a cache."""
    config = config_of(
        "toy",
        batch=64,
        dims=-1,
        more=f"dynamic_batching {{}} response_cache {{ enable: true }} {more}",
    )
    repository.add("m", config)
    CountingDoubler.computed = 0
    toys = toy_plugins(
        ToyPlugin({"toy": backend}, {"dynamic": ReschedulingScheduler}), CachePlugin(cache)
    )
    with serving(repository, toys, cache={"toy": {}}, **settings) as server:
        yield server


def infer(server: Server, value: Any, **fields: Any) -> tuple[InferRequest, list[Any]]:
    """Send a request to "m" and wait; return the request and its responses."""
    recorder = RecordingSink()
    request = request_of(recorder, "m", value, **fields)
    server.engine.infer(request)
    (responses,) = recorder.wait(request)
    recorder.check(request)
    return request, responses


def counts(server: Server) -> tuple[int, int, int, int]:
    """Return successes, hits, misses and executions of "m"."""
    (statistics,) = server.engine.statistics("m")
    times = statistics.inference_stats
    return (
        times.success.count,
        times.cache_hit.count,
        times.cache_miss.count,
        statistics.execution_count,
    )


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.001)
