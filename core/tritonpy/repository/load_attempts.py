"""Loads on their own threads, so that a hanging load blocks neither its caller nor other loads."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeVar
from weakref import WeakSet

from tritonpy.api.load_cancellation import LoadCancellation
from tritonpy_types.errors import Internal, InvalidArgument, TritonError, Unavailable

log = logging.getLogger("tritonpy.repository")
_T = TypeVar("_T")

SLOW_S = 10.0  # a load that takes longer is logged and no longer counts against the limits
MAX_CONCURRENT_LOADS = 32
MAX_LOAD_THREADS = 256  # including those of canceled loads
_CANCEL_GRACE_S = 2.0  # after this, the thread of a load that timed out counts as stuck


class LoadAttempt:
    """One load of one model. It is either committed or canceled; a canceled load has no effect."""

    def __init__(self, key: str, fingerprint: str = "") -> None:
        self.key = key
        self.fingerprint = fingerprint
        self.cancellation = LoadCancellation()
        self.error: TritonError | None = None
        self.started = time.monotonic()
        self._committed = False
        self._lock = threading.RLock()

    @property
    def age_s(self) -> float:
        """Seconds since the load started."""
        return time.monotonic() - self.started

    def cancel(self, error: TritonError, reason: str = "") -> bool:
        """Cancel the load with `error`; False if it was already committed or canceled.

        `reason` is for the index and the log if it differs from the text of the error.
        """
        with self._lock:
            if self._committed or self.error is not None:
                return False
            self.error = error
        self.cancellation.cancel(reason or error.message.rstrip())
        return True

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Commit the load in this block, after which it cannot be canceled.

        Raises the error of a canceled load.
        """
        with self._lock:
            if self.error is not None:
                raise self.error
            self._committed = True
            yield

    def record(self, write: Callable[[], object]) -> None:
        """Call `write`, which records the progress of the load, unless the load is canceled."""
        with self._lock:
            if self.error is None:
                write()


class ModelLock:
    """Serializes the operations on one model, first come, first served.

    An unload goes first and cancels the load that holds the lock.
    """

    def __init__(self) -> None:
        self.attempt: LoadAttempt | None = None
        self._held = False
        self._waiting: deque[tuple[threading.Event, LoadAttempt | None]] = deque()
        self._guard = threading.Lock()

    @contextmanager
    def loading(self, attempt: LoadAttempt) -> Iterator[None]:
        """Hold the lock for a load."""
        self._acquire(attempt, first=False)
        try:
            yield
        finally:
            self.release()

    @contextmanager
    def unloading(self, error: TritonError, reason: str) -> Iterator[None]:
        """Hold the lock for an unload; cancel a load that holds it with `error` and `reason`."""
        self._acquire(
            None, first=True, canceling=partial(LoadAttempt.cancel, error=error, reason=reason)
        )
        try:
            yield
        finally:
            self.release()

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free."""
        with self._guard:
            if self._held:
                return False
            self._held = True
            return True

    def release(self) -> None:
        """Pass the lock to the next operation."""
        with self._guard:
            if self._waiting:
                granted, self.attempt = self._waiting.popleft()
                granted.set()
            else:
                self._held, self.attempt = False, None

    def _acquire(
        self,
        attempt: LoadAttempt | None,
        *,
        first: bool,
        canceling: Callable[[LoadAttempt], object] | None = None,
    ) -> None:
        granted = threading.Event()
        with self._guard:
            if not self._held:
                self._held, self.attempt = True, attempt
                return
            holder = self.attempt
            if first:
                self._waiting.appendleft((granted, attempt))
            else:
                self._waiting.append((granted, attempt))
        if holder is not None and canceling is not None:
            canceling(holder)
        granted.wait()


class LoadThreads:
    """The threads of loads. `run` waits for the result, a timeout or a cancellation.

    A thread cannot be stopped from outside. The thread of a canceled load ends when the load
    returns. Backends that load in a process kill the process.
    """

    def __init__(
        self,
        timeout_s: float = 0.0,
        *,
        max_concurrent: int = MAX_CONCURRENT_LOADS,
        max_threads: int = MAX_LOAD_THREADS,
        slow_s: float = SLOW_S,
    ) -> None:
        self.slow_s = slow_s
        self._timeout_s = timeout_s
        self._max_concurrent = max_concurrent
        self._max_threads = max_threads
        self._running: dict[LoadAttempt, float] = {}
        self._threads: WeakSet[threading.Thread] = WeakSet()
        self._changed = threading.Condition()

    def run(self, attempt: LoadAttempt, work: Callable[[], _T]) -> _T:
        """Return the result of `work`. Raises its exception, or the error of a canceled load."""
        outcome: Future[_T] = Future()
        with attempt.cancellation.calling(self._notify):
            self._admit(attempt)
            name = f"load {attempt.key}"
            thread = threading.Thread(
                target=self._run, args=(attempt, work, outcome), name=name, daemon=True
            )
            thread.start()
            with self._changed:
                self._threads.add(thread)
            self._wait(attempt, outcome)
        if attempt.error is not None:
            raise attempt.error
        return outcome.result()

    def join(self, timeout_s: float) -> None:
        """Wait for the threads of all loads, up to `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _admit(self, attempt: LoadAttempt) -> None:
        with self._changed:
            while attempt.error is None:
                if len(self._running) >= self._max_threads:
                    raise Unavailable(
                        f"model '{attempt.key}' is not loaded: {len(self._running)} loads are in "
                        "progress or stuck. "
                        "Unload the models that hang, or restart the server"
                    )
                now = time.monotonic()
                counting = [
                    since
                    for each, since in self._running.items()
                    if self._counts(each, now - since)
                ]
                if len(counting) < self._max_concurrent:
                    self._running[attempt] = attempt.started = now
                    return
                self._changed.wait(min(counting) + self.slow_s - now)
        raise attempt.error

    def _counts(self, attempt: LoadAttempt, age_s: float) -> bool:
        return attempt.error is None and age_s < self.slow_s

    def _run(self, attempt: LoadAttempt, work: Callable[[], _T], outcome: Future[_T]) -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)
        with self._changed:
            del self._running[attempt]
            self._changed.notify_all()
        if attempt.error is not None:
            log.info(
                "the canceled load of '%s' ended after %.1f s, its result is discarded",
                attempt.key,
                attempt.age_s,
            )

    def _wait(self, attempt: LoadAttempt, outcome: Future[_T]) -> None:
        report_s = self.slow_s
        with self._changed:
            while attempt.error is None and not outcome.done():
                limit_s = min(report_s, self._timeout_s or report_s) - attempt.age_s
                self._changed.wait(max(limit_s, 0.0))
                if outcome.done() or attempt.error is not None:
                    return
                if self._timeout_s and attempt.age_s >= self._timeout_s:
                    break
                if attempt.age_s >= report_s:
                    log.info("still loading '%s' (%.0f s)", attempt.key, attempt.age_s)
                    report_s *= 2
            else:
                return
        self._expire(attempt, outcome)

    def _expire(self, attempt: LoadAttempt, outcome: Future[_T]) -> None:
        text = (
            f"load failed for model '{attempt.key}': the load took longer than the limit of "
            f"{self._timeout_s:g} s (--model-load-timeout-secs)"
        )
        if not attempt.cancel(InvalidArgument(f"{text}\n")):
            return
        wait((outcome,), _CANCEL_GRACE_S)
        if not outcome.done():
            attempt.error = InvalidArgument(
                f"{text}. The thread that loads it cannot be stopped: it keeps its memory until "
                "the load returns, or the server restarts\n"
            )

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


def unloaded_while_loading(name: str) -> TritonError:
    """Return Triton's error for a load that was canceled by an unload."""
    return Internal(f"failed to load '{name}', no version is available")


def load_many(
    load: Callable[[str], object],
    keys: Sequence[str],
    max_concurrent: int,
    slow_s: float,
    *,
    wait_for_all: bool,
) -> None:
    """Call `load` for each key on its own threads, up to `max_concurrent` at the same time.

    A call that takes longer than `slow_s` no longer counts against that limit. With `wait_for_all`
    this returns when all calls have returned; otherwise it does not wait for slow ones. Raises the
    first error.
    """
    _ConcurrentLoads(load, keys, slow_s).run(max_concurrent, wait_for_all=wait_for_all)


class _ConcurrentLoads:
    """Threads that process a queue of keys. A slow thread is replaced by another one."""

    def __init__(self, load: Callable[[str], object], keys: Sequence[str], slow_s: float) -> None:
        self._load = load
        self._keys = deque(keys)
        self._slow_s = slow_s
        self._since: dict[threading.Thread, float] = {}  # start of each thread's current call
        self._errors: list[BaseException] = []
        self._changed = threading.Condition()

    def run(self, max_concurrent: int, *, wait_for_all: bool) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                counting = [since for since in self._since.values() if now - since < self._slow_s]
                while self._keys and len(counting) < max_concurrent:
                    self._start(now)
                    counting.append(now)
                if not self._keys and not (self._since if wait_for_all else counting):
                    break
                self._changed.wait(min(counting) + self._slow_s - now if counting else None)
        if self._errors:
            raise self._errors[0]

    def _start(self, now: float) -> None:
        key = self._keys.popleft()
        thread = threading.Thread(
            target=self._run, args=(key,), name=f"wait for {key}", daemon=True
        )
        self._since[thread] = now
        thread.start()

    def _run(self, key: str | None) -> None:
        while key is not None:
            error: BaseException | None = None
            try:
                self._load(key)
            except BaseException as raised:
                error = raised
            key = self._next(error)

    def _next(self, error: BaseException | None) -> str | None:
        """Return the next key for the calling thread.

        None if there is none, or if another thread replaced this one.
        """
        thread, now = threading.current_thread(), time.monotonic()
        with self._changed:
            if error is not None:
                self._errors.append(error)
            if self._keys and now - self._since[thread] < self._slow_s:
                self._since[thread] = now
                return self._keys.popleft()
            del self._since[thread]
            self._changed.notify_all()
            return None
