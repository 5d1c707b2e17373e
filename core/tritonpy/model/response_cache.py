"""The server's response cache: a plugin's, seen to it that it can neither fail nor hold up anybody."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from tritonpy.api.cache import Cache
from tritonpy.clock import now_ns
from tritonpy.custom_metrics.snapshot import FamilySnapshot
from tritonpy.model.cache_breaker import Breaker
from tritonpy.model.cache_threads import CacheThreads
from tritonpy.model.cached_response import from_tensors
from tritonpy.runners.timer import Timer
from tritonpy.types import InferResponse, Tensor

log = logging.getLogger("tritonpy.cache")

INLINE_BYTES = 256 << 10  # a copy or a digest of more takes longer than an event loop should
LATER_BYTES = 256 << 20  # of answers that wait to be inserted
LINE_NS = 10_000_000_000  # between two lines about failures
CLOSE_S = 1.0


class ResponseCache:
    """One per server, shared by its models. Every method may be called from any thread; none raises."""

    def __init__(self, cache: Cache, name: str, timer: Timer) -> None:
        self._cache = cache
        self._name = name
        self._timer = timer
        self._threads = CacheThreads(cache.threads)
        self._breaker = Breaker()
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self._told_ns = -LINE_NS
        self._untold = 0
        self.shared = cache.shared
        self.blocking = cache.blocking

    def works(self) -> bool:
        """Say whether it is worth a try: not where the last ones failed a moment ago."""
        return self._breaker.lets_through(now_ns())

    def inline(self, size: int) -> bool:
        """Say whether what concerns `size` bytes may be done where the request is."""
        return not self.blocking and size <= INLINE_BYTES

    def lookup(self, key: bytes) -> InferResponse | None:
        """Return the answer stored under `key`, or None."""
        try:
            kept = self._cache.lookup(key)
            found = None if kept is None else from_tensors(kept)
        except Exception as error:
            self._failed("look-up", error)
            return None
        self._succeeded()
        return found

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        """Store a copy of `outputs`, unless the cache refuses."""
        try:
            self._cache.insert(key, outputs)
        except Exception as error:
            self._failed("insertion", error)
        else:
            self._succeeded()

    def insert_later(self, key: bytes, outputs: Sequence[Tensor], done: Callable[[int], None]) -> None:
        """Store a copy of `outputs` from another thread and tell `done` how many ns that took; not where too much waits already."""
        size = sum(tensor.data.nbytes for tensor in outputs)
        with self._lock:
            if self._waiting_bytes and self._waiting_bytes + size > LATER_BYTES:
                return
            self._waiting_bytes += size

        def run() -> None:
            if self.works():
                start = now_ns()
                self.insert(key, outputs)
                done(now_ns() - start)
            with self._lock:
                self._waiting_bytes -= size

        self._threads.run(run)

    def run(self, task: Callable[[], None], late: Callable[[], bool]) -> None:
        """Run `task` on another thread. For a blocking cache `late` is called at the deadline and says whether it came before the task's end."""

        def overdue() -> None:
            if late():
                self._failed("look-up", TimeoutError(f"no answer after {self._cache.deadline_ms:g} ms"))

        if self.blocking:
            self._timer.at(now_ns() + int(self._cache.deadline_ms * 1e6), overdue)
        if not self._threads.run(task):
            task()

    def metrics(self) -> Sequence[FamilySnapshot]:
        """Return the cache's own metrics."""
        try:
            return self._cache.metrics()
        except Exception as error:
            self._tell("its metrics", error)
            return ()

    def close(self) -> None:
        """Free what the cache holds; no request is open any more."""
        self._threads.close()
        if not self.blocking:
            self._threads.join(CLOSE_S)
        try:
            self._cache.close()
        except Exception:
            log.exception("the response cache '%s' failed to close", self._name)
        self._threads.join(CLOSE_S)

    def _succeeded(self) -> None:
        if self._breaker.succeeded():
            log.info("the response cache '%s' works again", self._name)

    def _failed(self, what: str, error: Exception) -> None:
        self._breaker.failed(now_ns())
        self._tell(what, error)

    def _tell(self, what: str, error: Exception) -> None:
        now = now_ns()
        with self._lock:
            if now - self._told_ns < LINE_NS:
                self._untold += 1
                return
            self._told_ns, untold, self._untold = now, self._untold, 0
        more = f" ({untold} such lines before it are left out)" if untold else ""
        log.error("the response cache '%s' failed, %s: %s: %s%s", self._name, what, type(error).__name__, error, more)
