"""The server's response cache. It protects requests from failures and delays of the cache plugin."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from tritonpy.api.cache import Cache
from tritonpy.clock import now_ns
from tritonpy.custom_metrics.snapshot import FamilySnapshot
from tritonpy.model.cache_threads import CacheThreads
from tritonpy.model.cached_response import from_tensors
from tritonpy.model.circuit_breaker import CircuitBreaker
from tritonpy.runners.timer import Timer
from tritonpy.types import InferResponse, Tensor

log = logging.getLogger("tritonpy.cache")

MAX_INLINE_BYTES = 256 << 10  # copying or hashing more takes too long on an event loop
MAX_QUEUED_BYTES = 256 << 20  # responses queued for insertion
LOG_INTERVAL_NS = 10_000_000_000  # between two log lines about failures
CLOSE_TIMEOUT_S = 1.0


class ResponseCache:
    """The response cache of a server, shared by its models. Thread-safe; no method raises."""

    def __init__(self, cache: Cache, name: str, timer: Timer) -> None:
        self._cache = cache
        self._name = name
        self._timer = timer
        self._threads = CacheThreads(cache.threads)
        self._breaker = CircuitBreaker()
        self._lock = threading.Lock()
        self._queued_bytes = 0
        self._logged_ns = -LOG_INTERVAL_NS
        self._suppressed = 0
        self.shared = cache.shared
        self.blocking = cache.blocking

    def is_available(self) -> bool:
        """Return whether the cache may be called; false shortly after repeated failures."""
        return self._breaker.allows_call(now_ns())

    def can_run_inline(self, size: int) -> bool:
        """Return whether work on `size` bytes may run on the thread of the request."""
        return not self.blocking and size <= MAX_INLINE_BYTES

    def lookup(self, key: bytes) -> InferResponse | None:
        """Return the response stored under `key`, or None."""
        try:
            stored = self._cache.lookup(key)
            found = None if stored is None else from_tensors(stored)
        except Exception as error:
            self._failed("lookup", error)
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
        """Store a copy of `outputs` on another thread, and call `done` with its duration in ns.

        Does nothing if too many bytes are already queued.
        """
        size = sum(tensor.data.nbytes for tensor in outputs)
        with self._lock:
            if self._queued_bytes and self._queued_bytes + size > MAX_QUEUED_BYTES:
                return
            self._queued_bytes += size

        def run() -> None:
            if self.is_available():
                start = now_ns()
                self.insert(key, outputs)
                done(now_ns() - start)
            with self._lock:
                self._queued_bytes -= size

        self._threads.run(run)

    def run(self, task: Callable[[], None], late: Callable[[], bool]) -> None:
        """Run `task` on another thread.

        If the cache blocks, `late` is called at the deadline; it returns whether `task` had not
        finished by then.
        """

        def on_deadline() -> None:
            if late():
                self._failed("lookup", TimeoutError(f"no response after {self._cache.deadline_ms:g} ms"))

        if self.blocking:
            self._timer.at(now_ns() + int(self._cache.deadline_ms * 1e6), on_deadline)
        if not self._threads.run(task):
            task()

    def metrics(self) -> Sequence[FamilySnapshot]:
        """Return the cache plugin's own metrics."""
        try:
            return self._cache.metrics()
        except Exception as error:
            self._log_failure("metrics", error)
            return ()

    def close(self) -> None:
        """Close the cache. Call it when no request is in flight."""
        self._threads.close()
        if not self.blocking:
            self._threads.join(CLOSE_TIMEOUT_S)
        try:
            self._cache.close()
        except Exception:
            log.exception("the response cache '%s' failed to close", self._name)
        self._threads.join(CLOSE_TIMEOUT_S)

    def _succeeded(self) -> None:
        if self._breaker.record_success():
            log.info("the response cache '%s' works again", self._name)

    def _failed(self, operation: str, error: Exception) -> None:
        self._breaker.record_failure(now_ns())
        self._log_failure(operation, error)

    def _log_failure(self, operation: str, error: Exception) -> None:
        now = now_ns()
        with self._lock:
            if now - self._logged_ns < LOG_INTERVAL_NS:
                self._suppressed += 1
                return
            self._logged_ns, suppressed, self._suppressed = now, self._suppressed, 0
        note = f" ({suppressed} similar lines suppressed)" if suppressed else ""
        log.error(
            "the response cache '%s' failed, %s: %s: %s%s", self._name, operation, type(error).__name__, error, note
        )
