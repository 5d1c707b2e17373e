from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tritonpy_backend_python.debug.main_thread import MainThread, MainThreadCoroutines


class Run:
    """Serves a `MainThread` in the test's thread while `act(main_thread)` runs in another."""

    def __init__(self, act: Callable[[MainThread], Any]) -> None:
        self.interrupted = 0
        self.result: Any = None
        main_thread = MainThread(self._interrupt)

        def other() -> None:
            try:
                self.result = act(main_thread)
            except BaseException as error:
                self.result = error
            finally:
                main_thread.end()

        before = signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=other)
        thread.start()
        main_thread.serve()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is before
        assert main_thread.loop.is_closed()

    def _interrupt(self) -> None:
        self.interrupted += 1


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_functions_run_in_the_main_thread_and_return_results() -> None:
    assert (
        Run(lambda main_thread: main_thread.run(threading.current_thread)).result
        is threading.main_thread()
    )


def test_exceptions_of_functions_are_raised() -> None:
    assert isinstance(
        Run(lambda main_thread: main_thread.run(lambda: 1 / 0)).result, ZeroDivisionError
    )


def test_functions_of_many_threads_run_sequentially() -> None:
    running, most = [0], [0]

    def act() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        running[0] -= 1

    def query(main_thread: MainThread) -> None:
        threads = [threading.Thread(target=main_thread.run, args=(act,)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    Run(query)
    assert (running, most) == ([0], [1])


def test_ctrl_c_interrupts_a_model() -> None:
    def act(main_thread: MainThread) -> None:
        with main_thread.interruptible():
            ctrl_c()
            while True:
                pass

    run = Run(lambda main_thread: main_thread.run(lambda: act(main_thread)))
    assert isinstance(run.result, KeyboardInterrupt)
    assert run.interrupted == 0


def test_ctrl_c_outside_of_the_model_calls_the_handler() -> None:
    def act(main_thread: MainThread) -> str:
        with main_thread.interruptible():
            pass
        ctrl_c()
        return "done"

    run = Run(lambda main_thread: main_thread.run(lambda: act(main_thread)))
    assert (run.result, run.interrupted) == ("done", 1)


def test_ctrl_c_while_idle_calls_the_handler_immediately() -> None:
    noticed = threading.Event()

    class Noticing(Run):
        def _interrupt(self) -> None:
            super()._interrupt()
            noticed.set()

    def query(main_thread: MainThread) -> bool:
        main_thread.run(lambda: None)  # wait until it serves
        ctrl_c()
        return noticed.wait(30)

    run = Noticing(query)
    assert (run.result, run.interrupted) == (True, 1)


def test_a_debuggers_handler_does_not_outlive_the_model() -> None:
    def act(main_thread: MainThread) -> None:
        with main_thread.interruptible():
            signal.signal(signal.SIGINT, lambda *_: pytest.fail("the debugger's handler ran"))
        ctrl_c()

    assert Run(lambda main_thread: main_thread.run(lambda: act(main_thread))).interrupted == 1


def test_coroutines_run_while_the_main_thread_waits() -> None:
    found: list[threading.Thread] = []

    async def wait(event: asyncio.Event) -> threading.Thread:
        await event.wait()
        found.append(threading.current_thread())
        return found[-1]

    def query(main_thread: MainThread) -> threading.Thread:
        coroutines, event = MainThreadCoroutines(main_thread), asyncio.Event()
        main_thread.run(lambda: coroutines.start(wait(event)))
        main_thread.loop.call_soon_threadsafe(event.set)
        result = main_thread.run(lambda: coroutines.run(wait(event)))
        while len(found) < 2:
            main_thread.run(lambda: None)
        main_thread.run(coroutines.stop)
        return result

    assert Run(query).result is threading.main_thread()
    assert set(found) == {threading.main_thread()}


def test_running_coroutines_are_cancelled_at_the_end() -> None:
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    def query(main_thread: MainThread) -> None:
        coroutines = MainThreadCoroutines(main_thread)
        main_thread.run(lambda: coroutines.start(endless()))
        main_thread.run(lambda: coroutines.run(asyncio.sleep(0)))
        main_thread.run(coroutines.stop)
        main_thread.run(coroutines.stop)

    Run(query)
    assert ended == ["cancelled"]
