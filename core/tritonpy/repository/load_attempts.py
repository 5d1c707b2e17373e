"""Runs each load on a thread of its own, so that one that hangs blocks neither its caller nor other loads."""

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
from tritonpy.errors import Internal, InvalidArgument, TritonError, Unavailable

log = logging.getLogger("tritonpy.repository")
_T = TypeVar("_T")

SLOW_S = 10.0  # a load that takes longer is reported, and no longer counts against the limits
AT_ONCE = 32  # loads that count
MOST = 256  # threads that load, those of canceled loads included
_END_S = 2.0  # how long a load that timed out may take to react before its thread counts as stuck


class LoadAttempt:
    """One load of one model: it is committed, or it is canceled, and then nothing that it still does takes effect."""

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
        """Seconds since it began."""
        return time.monotonic() - self.started

    def cancel(self, error: TritonError, reason: str = "") -> bool:
        """End the wait for the load with `error`; False when the load was committed or canceled before.

        `reason` is what its versions and the log show, where the text of the error says less.
        """
        with self._lock:
            if self._committed or self.error is not None:
                return False
            self.error = error
        self.cancellation.cancel(reason or error.message.rstrip())
        return True

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Put the result in place in this block; it can no longer be canceled. Raises the error of a canceled load."""
        with self._lock:
            if self.error is not None:
                raise self.error
            self._committed = True
            yield

    def record(self, write: Callable[[], object]) -> None:
        """Call `write`, which notes how far the load is, unless the load is canceled."""
        with self._lock:
            if self.error is None:
                write()


class ModelLock:
    """Held by one operation on a model at a time, first come, first served. An unload goes first and cancels the load that holds it."""

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
        """Hold the lock for an unload: a load that holds it is canceled with `error` for `reason`."""
        self._acquire(None, first=True, canceling=partial(LoadAttempt.cancel, error=error, reason=reason))
        try:
            yield
        finally:
            self.release()

    def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        with self._guard:
            if self._held:
                return False
            self._held = True
            return True

    def release(self) -> None:
        """Hand the lock to the operation that is next."""
        with self._guard:
            if self._waiting:
                granted, self.attempt = self._waiting.popleft()
                granted.set()
            else:
                self._held, self.attempt = False, None

    def _acquire(
        self, attempt: LoadAttempt | None, *, first: bool, canceling: Callable[[LoadAttempt], object] | None = None
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
    """The threads of loads. The caller of `run` waits for the result, for the timeout, or until the load is canceled.

    A thread cannot be stopped from outside: that of a canceled load ends when the load returns. Backends that load in a process kill it.
    """

    def __init__(
        self, timeout_s: float = 0.0, *, at_once: int = AT_ONCE, most: int = MOST, slow_s: float = SLOW_S
    ) -> None:
        self.slow_s = slow_s
        self._timeout_s = timeout_s
        self._at_once = at_once
        self._most = most
        self._running: dict[LoadAttempt, float] = {}
        self._threads: WeakSet[threading.Thread] = WeakSet()
        self._changed = threading.Condition()

    def run(self, attempt: LoadAttempt, work: Callable[[], _T]) -> _T:
        """Return what `work` returns. Raises what it raises, or the error that the load was canceled with."""
        outcome: Future[_T] = Future()
        with attempt.cancellation.calling(self._notify):
            self._admit(attempt)
            name = f"load {attempt.key}"
            thread = threading.Thread(target=self._run, args=(attempt, work, outcome), name=name, daemon=True)
            thread.start()
            with self._changed:
                self._threads.add(thread)
            self._wait(attempt, outcome)
        if attempt.error is not None:
            raise attempt.error
        return outcome.result()

    def join(self, timeout_s: float) -> None:
        """Wait for the threads of all loads, but no longer than `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _admit(self, attempt: LoadAttempt) -> None:
        with self._changed:
            while attempt.error is None:
                if len(self._running) >= self._most:
                    raise Unavailable(
                        f"model '{attempt.key}' is not loaded: {len(self._running)} loads are in progress or stuck. "
                        "Unload the models that hang, or restart the server"
                    )
                now = time.monotonic()
                counting = [since for each, since in self._running.items() if self._counts(each, now - since)]
                if len(counting) < self._at_once:
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
            log.info("the canceled load of '%s' ended after %.1f s, its result is dropped", attempt.key, attempt.age_s)

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
        text = f"load failed for model '{attempt.key}': the load took longer than the limit of {self._timeout_s:g} s (--model-load-timeout-secs)"
        if not attempt.cancel(InvalidArgument(f"{text}\n")):
            return
        wait((outcome,), _END_S)
        if not outcome.done():
            attempt.error = InvalidArgument(
                f"{text}. The thread that loads it cannot be stopped: it keeps its memory until the load returns, or the server restarts\n"
            )

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


def unloaded_while_loading(name: str) -> TritonError:
    """Return Triton's error for a load that an unload overtook."""
    return Internal(f"failed to load '{name}', no version is available")


def load_batch(
    load: Callable[[str], object], keys: Sequence[str], at_once: int, slow_s: float, *, settle: bool
) -> None:
    """Call `load` for each key on threads that may wait, `at_once` at the same time.

    One that takes longer than `slow_s` no longer counts. With `settle` this returns when all returned, otherwise it waits for the slow ones no longer.
    """
    _Batch(load, keys, slow_s).run(at_once, settle=settle)


class _Batch:
    """Threads that take one key after the other. Where one is slow, another one goes on with the keys in its place."""

    def __init__(self, load: Callable[[str], object], keys: Sequence[str], slow_s: float) -> None:
        self._load = load
        self._keys = deque(keys)
        self._slow_s = slow_s
        self._since: dict[threading.Thread, float] = {}  # since when each thread is at its key
        self._errors: list[BaseException] = []
        self._changed = threading.Condition()

    def run(self, at_once: int, *, settle: bool) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                counting = [since for since in self._since.values() if now - since < self._slow_s]
                while self._keys and len(counting) < at_once:
                    self._start(now)
                    counting.append(now)
                if not self._keys and not (self._since if settle else counting):
                    break
                self._changed.wait(min(counting) + self._slow_s - now if counting else None)
        if self._errors:
            raise self._errors[0]

    def _start(self, now: float) -> None:
        key = self._keys.popleft()
        thread = threading.Thread(target=self._work, args=(key,), name=f"wait for {key}", daemon=True)
        self._since[thread] = now
        thread.start()

    def _work(self, key: str | None) -> None:
        while key is not None:
            error: BaseException | None = None
            try:
                self._load(key)
            except BaseException as raised:
                error = raised
            key = self._next(error)

    def _next(self, error: BaseException | None) -> str | None:
        """Return the next key for the calling thread, None if there is none, or where another thread took its place."""
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
