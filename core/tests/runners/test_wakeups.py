from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from tritonpy.runners.wakeups import Wakeups
from tritonpy_types import InferRequest, InferResponse
from tritonpy_types.request import LoopSink


def test_without_a_loop_callbacks_run_immediately() -> None:
    woken: list[int] = []
    Wakeups().soon(lambda: woken.append(1))
    assert woken == [1]


def test_on_the_loop_callbacks_wait_for_the_end_of_the_iteration() -> None:
    wakeups, woken = Wakeups(), list[str]()

    async def turn() -> None:
        wakeups.attach(asyncio.get_running_loop())
        wakeups.soon(lambda: woken.append("first"))
        wakeups.soon(lambda: woken.append("second"))
        woken.append("read")
        await asyncio.sleep(0)
        assert woken == ["read", "first", "second"]
        wakeups.soon(lambda: woken.append("next turn"))
        await asyncio.sleep(0)

    asyncio.run(turn())
    assert woken == ["read", "first", "second", "next turn"]


def test_callbacks_of_another_thread_run_immediately() -> None:
    wakeups, woken = Wakeups(), list[int]()

    async def turn() -> None:
        wakeups.attach(asyncio.get_running_loop())
        thread = threading.Thread(
            target=wakeups.soon, args=(lambda: woken.append(threading.get_ident()),)
        )
        thread.start()
        thread.join()
        assert woken == [thread.ident]

    asyncio.run(turn())


def test_detach_runs_pending_callbacks() -> None:
    wakeups, woken = Wakeups(), list[int]()

    async def turn() -> None:
        wakeups.attach(asyncio.get_running_loop())
        wakeups.soon(lambda: woken.append(1))
        wakeups.detach()
        assert woken == [1]
        wakeups.soon(lambda: woken.append(2))
        assert woken == [1, 2]

    asyncio.run(turn())


def test_callbacks_do_not_wait_for_a_stopped_loop() -> None:
    wakeups, woken = Wakeups(), list[int]()
    with asyncio.Runner() as runner:
        wakeups.attach(runner.get_loop())
        wakeups.soon(lambda: woken.append(1))
        assert woken == [1]


def on_a_loop(act: Callable[[Wakeups], None]) -> list[str]:
    """Run `act` on a loop and return the errors that the loop reported."""
    complaints: list[str] = []

    async def turn() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(str(context["exception"])))
        wakeups = Wakeups()
        wakeups.attach(loop)
        act(wakeups)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(turn())
    return complaints


def test_callbacks_added_by_a_callback_run_in_the_same_iteration() -> None:
    seen: list[str] = []

    def wake(wakeups: Wakeups) -> None:
        def first() -> None:
            wakeups.soon(lambda: seen.append("brought about"))
            seen.append("first")

        wakeups.soon(first)
        wakeups.soon(lambda: seen.append("second"))
        asyncio.get_running_loop().call_soon(lambda: seen.append("next"))

    assert on_a_loop(wake) == []
    assert seen == ["first", "second", "brought about", "next"]


def test_a_raising_callback_prevents_no_other() -> None:
    seen: list[str] = []

    def wake(wakeups: Wakeups) -> None:
        def fail() -> None:
            wakeups.soon(lambda: seen.append("brought about"))
            raise ValueError("a broken bell")

        wakeups.soon(fail)
        wakeups.soon(lambda: seen.append("behind"))
        asyncio.get_running_loop().call_later(0, lambda: wakeups.soon(lambda: seen.append("later")))

    assert on_a_loop(wake) == ["a broken bell"]
    assert seen == ["behind", "brought about", "later"]


def test_every_callback_may_raise() -> None:
    def wake(wakeups: Wakeups) -> None:
        def fail() -> None:
            raise ValueError("a broken bell")

        for _ in range(3):
            wakeups.soon(fail)

    assert on_a_loop(wake) == ["a broken bell"] * 3


def test_the_loop_is_known_while_it_is_attached() -> None:
    async def turn() -> None:
        wakeups, loop = Wakeups(), asyncio.get_running_loop()
        assert wakeups.loop is None
        wakeups.attach(loop)
        assert wakeups.loop is loop
        wakeups.detach()
        assert wakeups.loop is None

    asyncio.run(turn())


def test_the_loop_reads_its_sockets_before_a_callback_of_the_next_iteration() -> None:
    wakeups, woken = Wakeups(), list[str]()

    async def turns() -> None:
        loop = asyncio.get_running_loop()
        wakeups.attach(loop)

        def first() -> None:
            woken.append("this")
            assert wakeups.in_next_iteration(lambda: woken.append("next"))
            loop.call_soon(woken.append, "read")

        wakeups.soon(first)
        for _ in range(4):
            await asyncio.sleep(0)

    asyncio.run(turns())
    assert woken == ["this", "read", "next"]


def test_without_a_loop_there_is_no_next_iteration() -> None:
    assert not Wakeups().in_next_iteration(lambda: None)


def test_detach_runs_callbacks_of_the_next_iteration() -> None:
    wakeups, woken = Wakeups(), list[int]()

    async def turn() -> None:
        wakeups.attach(asyncio.get_running_loop())
        wakeups.in_next_iteration(lambda: woken.append(1))
        wakeups.detach()
        assert woken == [1]

    asyncio.run(turn())


def test_responses_of_a_callback_are_delivered_before_the_loop_goes_on() -> None:
    wakeups, events = Wakeups(), list[str]()

    async def turn(*, attached: bool) -> None:
        loop = asyncio.get_running_loop()
        sink = LoopSink(loop, lambda _request, _response: events.append("delivered"))
        request = InferRequest("m", {}, sink)
        if attached:
            wakeups.attach(loop)
        schedule = wakeups.soon if attached else loop.call_soon
        schedule(lambda: sink.put(request, InferResponse(())))
        loop.call_soon(events.append, "next")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if attached:
            wakeups.detach()

    asyncio.run(turn(attached=True))
    assert events == ["delivered", "next"]
    events.clear()
    asyncio.run(turn(attached=False))
    assert events == ["next", "delivered"]


def test_a_detached_loop_delivers_responses_itself() -> None:
    wakeups, events = Wakeups(), list[str]()

    async def turn() -> None:
        loop = asyncio.get_running_loop()
        sink = LoopSink(loop, lambda _request, _response: events.append("delivered"))
        wakeups.attach(loop)
        wakeups.detach()
        sink.put(InferRequest("m", {}, sink), InferResponse(()))
        assert events == []
        await asyncio.sleep(0)

    asyncio.run(turn())
    assert events == ["delivered"]
