"""The main thread, where the functions of other threads run one after the other."""

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


class Stage:
    """Made and served by the main thread. Ctrl-C interrupts the model's code; while none runs it calls `interrupted`."""

    def __init__(self, interrupted: Callable[[], None]) -> None:
        self.loop = asyncio.new_event_loop()
        self._interrupted = interrupted
        self._acts: asyncio.Queue[_Act | None] = asyncio.Queue()
        self._in_model = False

    def run(self, act: Callable[[], _T]) -> _T:
        """Have the main thread call `act`, and wait; from any other thread. Raises what it raises."""
        done: Future[_T] = Future()
        self.loop.call_soon_threadsafe(self._acts.put_nowait, lambda: _perform(act, done))
        return done.result()

    def end(self) -> None:
        """Let `serve` return when everything before is done; from any thread."""
        self.loop.call_soon_threadsafe(self._acts.put_nowait, None)

    def serve(self) -> None:
        """Run what comes until the end. Coroutines that were started go on meanwhile."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:  # so that a signal wakes the loop, however it is handled
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
        """Let Ctrl-C interrupt what is inside: the model's code, in the main thread.

        A debugger that is left to continue in it takes Ctrl-C for itself, until the end of this.
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
    """What a signal means is decided by its handler."""


def _perform(act: Callable[[], _T], done: Future[_T]) -> None:
    try:
        result = act()
    except BaseException as error:  # it is for the thread that waits
        done.set_exception(error)
    else:
        done.set_result(result)


class StageCoroutines(Coroutines):
    """Coroutines of a model in the main thread; its methods are called there."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage
        self._tasks: set[asyncio.Task[Any]] = set()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._stage.loop.run_until_complete(coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = self._stage.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            self._stage.loop.run_until_complete(asyncio.wait(tasks))
