from __future__ import annotations

import asyncio
import threading

from tritonpy.runners.rings import Rings


def test_without_a_loop_a_ring_is_immediate() -> None:
    rung: list[int] = []
    Rings().soon(lambda: rung.append(1))
    assert rung == [1]


def test_on_the_loop_a_ring_waits_for_the_end_of_the_turn() -> None:
    rings, rung = Rings(), list[str]()

    async def turn() -> None:
        rings.attach(asyncio.get_running_loop())
        rings.soon(lambda: rung.append("first"))
        rings.soon(lambda: rung.append("second"))
        rung.append("read")
        await asyncio.sleep(0)
        assert rung == ["read", "first", "second"]
        rings.soon(lambda: rung.append("next turn"))
        await asyncio.sleep(0)

    asyncio.run(turn())
    assert rung == ["read", "first", "second", "next turn"]


def test_another_thread_rings_at_once() -> None:
    rings, rung = Rings(), list[int]()

    async def turn() -> None:
        rings.attach(asyncio.get_running_loop())
        thread = threading.Thread(target=rings.soon, args=(lambda: rung.append(threading.get_ident()),))
        thread.start()
        thread.join()
        assert rung == [thread.ident]

    asyncio.run(turn())


def test_what_is_due_when_the_loop_goes_is_rung() -> None:
    rings, rung = Rings(), list[int]()

    async def turn() -> None:
        rings.attach(asyncio.get_running_loop())
        rings.soon(lambda: rung.append(1))
        rings.detach()
        assert rung == [1]
        rings.soon(lambda: rung.append(2))
        assert rung == [1, 2]

    asyncio.run(turn())


def test_a_loop_that_does_not_run_is_not_waited_for() -> None:
    rings, rung = Rings(), list[int]()
    with asyncio.Runner() as runner:
        rings.attach(runner.get_loop())
        rings.soon(lambda: rung.append(1))
        assert rung == [1]
