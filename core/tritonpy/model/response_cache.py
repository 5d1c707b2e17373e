"""The server's response cache.

It protects requests from failures and delays of the cache plugin.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from tritonpy.api.cache import Cache
from tritonpy.model.cached_response import from_tensors
from tritonpy.runners.timer import Timer
from tritonpy_metrics.registry import FamilySnapshot
from tritonpy_types import InferResponse, Tensor
from tritonpy_types.clock import now_ns

log = logging.getLogger("tritonpy.cache")

MAX_INLINE_BYTES = 256 << 10  # copying or hashing more takes too long on an event loop
MAX_QUEUED_BYTES = 256 << 20  # responses queued for insertion
LOG_INTERVAL_NS = 10_000_000_000  # between two log lines about failures
CLOSE_TIMEOUT_S = 1.0


Task = Callable[[], None]


FAILURES = 3
PAUSE_NS = 1_000_000_000


class CircuitBreaker:
    """Opens after three consecutive failures, then allows one call per second until one succeeds.

    Not synchronized: a race may allow one call more or less, which is harmless.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._next_ns = 0

    def allows_call(self, now_ns: int) -> bool:
        """Return whether a call may be made now."""
        if self._failures < FAILURES:
            return True
        if now_ns < self._next_ns:
            return False
        self._next_ns = now_ns + PAUSE_NS
        return True

    def record_failure(self, now_ns: int) -> None:
        """Record a call that raised or missed its deadline."""
        self._failures += 1
        self._next_ns = now_ns + PAUSE_NS

    def record_success(self) -> bool:
        """Record a successful call; return whether it closed the breaker again."""
        was_broken, self._failures = self._failures >= FAILURES, 0
        return was_broken


class CacheThreads:
    """Runs tasks, which must not raise, in the order of their arrival.

    The threads start with the first task. They are daemon threads, so a blocked network call does
    not delay the end of the process.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, task: Task) -> bool:
        """Run `task` on one of the threads; False if they are closed and the task does not run."""
        if len(self._threads) < self._count or self._closed:
            with self._lock:
                if self._closed:
                    return False
                while len(self._threads) < self._count:
                    name = f"response cache {len(self._threads)}"
                    self._threads.append(
                        threading.Thread(target=self._work, name=name, daemon=True)
                    )
                    self._threads[-1].start()
        self._tasks.put(task)
        return True

    def close(self) -> None:
        """End the threads after the tasks that are already queued."""
        with self._lock:
            self._closed = True
            for _ in self._threads:
                self._tasks.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for each thread to end."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # a waiting thread must not keep the tensors of its last task alive


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

    def insert_later(
        self, key: bytes, outputs: Sequence[Tensor], done: Callable[[int], None]
    ) -> None:
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
                self._failed(
                    "lookup", TimeoutError(f"no response after {self._cache.deadline_ms:g} ms")
                )

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
            "the response cache '%s' failed, %s: %s: %s%s",
            self._name,
            operation,
            type(error).__name__,
            error,
            note,
        )
