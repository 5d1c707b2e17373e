"""Execution of functions in the main thread, one after another, for other threads."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from tritonpy_worker.coroutines import Coroutines

_T = TypeVar("_T")
_Act = Callable[[], None]
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class MainThread:
    """Runs functions in the main thread, which creates this object and calls `serve`.

    Ctrl-C interrupts the model's code. While no model code runs, it calls `interrupted`.
    """

    def __init__(self, interrupted: Callable[[], None]) -> None:
        self.loop = asyncio.new_event_loop()
        self._interrupted = interrupted
        self._acts: asyncio.Queue[_Act | None] = asyncio.Queue()
        self._in_model = False

    def run(self, act: Callable[[], _T]) -> _T:
        """Call `act` in the main thread and return its result, or raise its exception.

        Any other thread may call this; it waits for the result.
        """
        done: Future[_T] = Future()
        self.loop.call_soon_threadsafe(self._acts.put_nowait, lambda: _run_call(act, done))
        return done.result()

    def end(self) -> None:
        """Let `serve` return after all calls submitted so far. Any thread may call this."""
        self.loop.call_soon_threadsafe(self._acts.put_nowait, None)

    def serve(self) -> None:
        """Run submitted functions until `end`. Started coroutines continue in between."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:  # so that a signal wakes the loop, whatever its handler is
            self.loop.add_signal_handler(number, _nothing)
        self._take_signals()
        try:
            while (act := self.loop.run_until_complete(self._acts.get())) is not None:
                act()
        finally:
            for number, handler in before.items():
                self.loop.remove_signal_handler(number)
                signal.signal(number, handler)
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C interrupt the model's code, which runs in this context in the main thread.

        After a debugger's `continue`, the debugger handles Ctrl-C until the end of the context.
        """
        self._in_model = True
        try:
            yield
        finally:
            self._in_model = False
            self._take_signals()

    def _take_signals(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._signalled)

    def _signalled(self, _number: int, _frame: Any) -> None:
        if self._in_model:
            raise KeyboardInterrupt
        self._interrupted()


def _nothing() -> None:
    """Do nothing: the handler set with `signal.signal` handles the signal."""


def _run_call(act: Callable[[], _T], done: Future[_T]) -> None:
    try:
        result = act()
    except BaseException as error:  # for the waiting thread
        done.set_exception(error)
    else:
        done.set_result(result)


class MainThreadCoroutines(Coroutines):
    """Runs a model's coroutines in the main thread. Only the main thread calls the methods."""

    def __init__(self, main_thread: MainThread) -> None:
        super().__init__()
        self._main_thread = main_thread
        self._tasks: set[asyncio.Task[Any]] = set()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._main_thread.loop.run_until_complete(coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = self._main_thread.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            self._main_thread.loop.run_until_complete(asyncio.wait(tasks))
