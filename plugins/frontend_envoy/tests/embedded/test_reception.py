from __future__ import annotations

import asyncio

from tritonpy_frontend_envoy.embedded.loops import NextFuture
from tritonpy_frontend_envoy.embedded.patrol import Patrol
from tritonpy_frontend_envoy.embedded.reception import MUCH, Reception, Surroundings, shown_client

GONE = {"type": "http.disconnect"}
END = {"type": "http.request", "body": b"", "more_body": False}


class Pyvoy:
    """pyvoy's `receive`: the parts of a body, then again and again that there is no more, until the client left."""

    def __init__(self, next_future, *parts):
        self.next_future = next_future
        self.messages = [
            {"type": "http.request", "body": part, "more_body": number < len(parts) - 1}
            for number, part in enumerate(parts)
        ]
        self.left = False
        self.asked = 0
        self.asked_often = asyncio.Event()

    def __call__(self):
        self.asked += 1
        if self.asked > 2:
            self.asked_often.set()
        waiter, self.next_future.waiter = self.next_future.waiter, None
        future = waiter if waiter is not None else asyncio.get_running_loop().create_future()
        if self.messages:
            future.set_result(self.messages.pop(0))
        elif self.messages is not None:
            future.set_result(GONE if self.left else END)
        return future


class Never(Pyvoy):
    def __call__(self):
        return asyncio.get_running_loop().create_future()


def surroundings(next_future, stall_s=30.0):
    return Surroundings(Patrol(asyncio.get_running_loop()), next_future, stall_s)


def test_the_parts_of_a_body_come_as_they_are():
    async def read():
        next_future = NextFuture()
        receive = Reception(Pyvoy(next_future, b"one", b"two"), surroundings(next_future))
        return [(await receive())["body"] for _ in range(2)]

    assert asyncio.run(read()) == [b"one", b"two"]


def test_behind_the_body_it_waits_for_the_client_to_leave():
    async def read():
        next_future = NextFuture()
        pyvoy = Pyvoy(next_future, b"one")
        receive = Reception(pyvoy, surroundings(next_future))
        await receive()
        leaving = asyncio.create_task(receive())
        await pyvoy.asked_often.wait()  # and it said that there is no more
        assert not leaving.done()
        pyvoy.left = True
        assert await leaving == GONE
        return await receive()

    assert asyncio.run(asyncio.wait_for(read(), 30)) == GONE


def test_who_waits_no_more_is_not_looked_at():
    async def read():
        next_future = NextFuture()
        pyvoy = Pyvoy(next_future, b"one")
        around = surroundings(next_future)
        receive = Reception(pyvoy, around)
        await receive()
        leaving = asyncio.create_task(receive())
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        return around.patrol

    patrol = asyncio.run(read())
    assert not patrol._young
    assert not patrol._old


def test_a_body_that_stands_still_is_a_client_that_left():
    async def read():
        next_future = NextFuture()
        receive = Reception(Never(next_future), surroundings(next_future, stall_s=0.001))
        return await receive(), receive.stalled

    assert asyncio.run(read()) == (GONE, True)


def test_of_a_large_body_more_has_to_come_before_it_is_asked_for():
    async def run():
        asked, around = asyncio.Event(), Surroundings(None, NextFuture(), 30)
        around.ask_for(MUCH, asked.set)
        at_once = asked.is_set()
        await asyncio.wait_for(asked.wait(), 20)
        return at_once

    assert asyncio.run(run()) is False


def test_what_little_a_body_lacks_is_asked_for_at_once():
    asked = []
    around = Surroundings(None, NextFuture(), 30)
    for missing in (MUCH - 1, 0, -5):
        around.ask_for(missing, lambda: asked.append(1))
    assert asked == [1, 1, 1]


def test_clients_are_shown_by_their_address():
    assert shown_client(("127.0.0.1", 80)) == "127.0.0.1:80"
    assert shown_client(None) == "a Unix socket"
