from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

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


def on_a_loop(act: Callable[[Rings], None]) -> list[str]:
    """Let `act` ring; return what the loop complained of."""
    complaints: list[str] = []

    async def turn() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, said: complaints.append(str(said["exception"])))
        rings = Rings()
        rings.attach(loop)
        act(rings)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(turn())
    return complaints


def test_what_a_ring_brings_about_happens_at_the_same_moment() -> None:
    seen: list[str] = []

    def ring(rings: Rings) -> None:
        def first() -> None:
            rings.soon(lambda: seen.append("brought about"))
            seen.append("first")

        rings.soon(first)
        rings.soon(lambda: seen.append("second"))
        asyncio.get_running_loop().call_soon(lambda: seen.append("next"))

    assert on_a_loop(ring) == []
    assert seen == ["first", "second", "brought about", "next"]


def test_a_ring_that_raises_silences_no_other_neither_now_nor_later() -> None:
    seen: list[str] = []

    def ring(rings: Rings) -> None:
        def fail() -> None:
            rings.soon(lambda: seen.append("brought about"))
            raise ValueError("a broken bell")

        rings.soon(fail)
        rings.soon(lambda: seen.append("behind"))
        asyncio.get_running_loop().call_later(0, lambda: rings.soon(lambda: seen.append("later")))

    assert on_a_loop(ring) == ["a broken bell"]
    assert seen == ["behind", "brought about", "later"]


def test_every_ring_may_raise() -> None:
    def ring(rings: Rings) -> None:
        def fail() -> None:
            raise ValueError("a broken bell")

        for _ in range(3):
            rings.soon(fail)

    assert on_a_loop(ring) == ["a broken bell"] * 3


def test_the_loop_is_known_while_it_is_attached() -> None:
    async def turn() -> None:
        rings, loop = Rings(), asyncio.get_running_loop()
        assert rings.loop is None
        rings.attach(loop)
        assert rings.loop is loop
        rings.detach()
        assert rings.loop is None

    asyncio.run(turn())
