from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tritonpy_backend_python.debug.stage import Stage, StageCoroutines


class Run:
    """A stage that the test's thread serves while `act(stage)` runs in another."""

    def __init__(self, act: Callable[[Stage], Any]) -> None:
        self.interrupted = 0
        self.result: Any = None
        stage = Stage(self._interrupt)

        def other() -> None:
            try:
                self.result = act(stage)
            except BaseException as error:
                self.result = error
            finally:
                stage.end()

        before = signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=other)
        thread.start()
        stage.serve()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is before
        assert stage.loop.is_closed()

    def _interrupt(self) -> None:
        self.interrupted += 1


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_functions_run_in_the_main_thread_and_their_results_go_back() -> None:
    assert Run(lambda stage: stage.run(threading.current_thread)).result is threading.main_thread()


def test_what_a_function_raises_goes_back_too() -> None:
    assert isinstance(Run(lambda stage: stage.run(lambda: 1 / 0)).result, ZeroDivisionError)


def test_functions_of_many_threads_run_one_after_the_other() -> None:
    running, most = [0], [0]

    def act() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        running[0] -= 1

    def ask(stage: Stage) -> None:
        threads = [threading.Thread(target=stage.run, args=(act,)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    Run(ask)
    assert (running, most) == ([0], [1])


def test_ctrl_c_interrupts_a_model() -> None:
    def act(stage: Stage) -> None:
        with stage.interruptible():
            ctrl_c()
            while True:
                pass

    run = Run(lambda stage: stage.run(lambda: act(stage)))
    assert isinstance(run.result, KeyboardInterrupt)
    assert run.interrupted == 0


def test_ctrl_c_interrupts_nothing_else() -> None:
    def act(stage: Stage) -> str:
        with stage.interruptible():
            pass
        ctrl_c()
        return "done"

    run = Run(lambda stage: stage.run(lambda: act(stage)))
    assert (run.result, run.interrupted) == ("done", 1)


def test_ctrl_c_while_nothing_runs_is_noticed_at_once() -> None:
    noticed = threading.Event()

    class Noticing(Run):
        def _interrupt(self) -> None:
            super()._interrupt()
            noticed.set()

    def ask(stage: Stage) -> bool:
        stage.run(lambda: None)  # it serves from here on
        ctrl_c()
        return noticed.wait(30)

    run = Noticing(ask)
    assert (run.result, run.interrupted) == (True, 1)


def test_a_debuggers_handler_does_not_outlive_the_model() -> None:
    def act(stage: Stage) -> None:
        with stage.interruptible():
            signal.signal(signal.SIGINT, lambda *_: pytest.fail("the debugger took it"))
        ctrl_c()

    assert Run(lambda stage: stage.run(lambda: act(stage))).interrupted == 1


def test_coroutines_run_in_the_main_thread_while_the_stage_waits() -> None:
    found: list[threading.Thread] = []

    async def wait(event: asyncio.Event) -> threading.Thread:
        await event.wait()
        found.append(threading.current_thread())
        return found[-1]

    def ask(stage: Stage) -> threading.Thread:
        coroutines, event = StageCoroutines(stage), asyncio.Event()
        stage.run(lambda: coroutines.start(wait(event)))
        stage.loop.call_soon_threadsafe(event.set)
        result = stage.run(lambda: coroutines.run(wait(event)))
        while len(found) < 2:
            stage.run(lambda: None)
        stage.run(coroutines.stop)
        return result

    assert Run(ask).result is threading.main_thread()
    assert set(found) == {threading.main_thread()}


def test_coroutines_that_still_run_are_cancelled() -> None:
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    def ask(stage: Stage) -> None:
        coroutines = StageCoroutines(stage)
        stage.run(lambda: coroutines.start(endless()))
        stage.run(lambda: coroutines.run(asyncio.sleep(0)))
        stage.run(coroutines.stop)
        stage.run(coroutines.stop)

    Run(ask)
    assert ended == ["cancelled"]
