"""Response caches that tests can look into, hold up and break, and models whose answers tell whether they were computed."""

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
from tritonpy.server import Server
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, InferRequest, Tensor

from .doubler import Doubler
from .rescheduling import TurnScheduler
from .serving import ToyPlugin, config_of, request_of, serving, toy_plugins

PATIENCE_S = 10.0


class Kept(Cache):
    """Keeps everything; `made` is the last one that was made."""

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
        self.entries[key] = [Tensor(each.name, each.datatype, each.shape, np.array(each.data)) for each in outputs]

    def close(self) -> None:
        self.closed = True


class Distant(Kept):
    """Waits at `gate` like one that is far away; `deadline_ms` is long enough for every test that does not mean to pass it."""

    blocking = True
    deadline_ms = 60_000

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.gate = threading.Event()
        self.gate.set()
        self.inserted = threading.Semaphore(0)

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        self.gate.wait(PATIENCE_S)
        return super().lookup(key)

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        super().insert(key, outputs)
        self.inserted.release()

    def wait_for_insertions(self, count: int) -> None:
        """Return when that many more answers were inserted."""
        for _ in range(count):
            assert self.inserted.acquire(timeout=PATIENCE_S), "an answer was not inserted"


class Broken(Kept):
    """Raises at each call while it is down."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.down = True
        self.calls = 0

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        self.calls += 1
        if self.down:
            raise ConnectionError("nobody is there")
        return super().lookup(key)

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        self.calls += 1
        if self.down:
            raise ConnectionError("nobody is there")
        super().insert(key, outputs)


class Numbered(Doubler):
    """A doubler that counts the requests it computed, over all of its instances."""

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
    repository: ModelRepository, cache: type[Cache], backend: type[Backend] = Numbered, more: str = "", **settings: Any
) -> Iterator[Server]:
    """Serve `backend` as "m" with a cache."""
    config = config_of("toy", batch=64, dims=-1, more=f"dynamic_batching {{}} response_cache {{ enable: true }} {more}")
    repository.add("m", config)
    Numbered.computed = 0
    toys = toy_plugins(ToyPlugin({"toy": backend}, {"dynamic": TurnScheduler}), CachePlugin(cache))
    with serving(repository, toys, cache={"toy": {}}, **settings) as server:
        yield server


def answered(server: Server, value: Any, **fields: Any) -> tuple[InferRequest, list[Any]]:
    """Ask "m" and wait; return the request and its answers."""
    witness = Witness()
    request = request_of(witness, "m", value, **fields)
    server.engine.infer(request)
    (responses,) = witness.wait(request)
    witness.check(request)
    return request, responses


def counts(server: Server) -> tuple[int, int, int, int]:
    """Return successes, hits, misses and executions of "m"."""
    (statistics,) = server.engine.statistics("m")
    times = statistics.inference_stats
    return times.success.count, times.cache_hit.count, times.cache_miss.count, statistics.execution_count


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.001)
