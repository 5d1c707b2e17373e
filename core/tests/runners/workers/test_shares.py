from __future__ import annotations

import asyncio
import os

import pytest

from core.tests.runners.workers.fake_worker import on_loop
from tritonpy.runners.workers.shares import Share, Shares


def descriptor():
    return os.memfd_create("share")


def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@pytest.fixture
def ended():
    return []


@pytest.fixture
def shares(ended):
    return Shares(lambda: ended.append(True))


async def ask_all(shares, *users, key="k"):
    tasks = [asyncio.create_task(shares.get(key, user)) for user in users]
    for _ in users:
        await asyncio.sleep(0)
    return tasks


@on_loop
async def test_the_first_who_asks_makes_it_and_the_others_get_it(shares):
    first, second, third = await ask_all(shares, "a", "b", "c")
    assert first.result() is None
    assert not second.done()
    assert shares.makes("k", "a")
    assert not shares.makes("k", "b")
    share = Share(descriptor(), {"x": 1})
    shares.put("k", share)
    assert [await second, await third, await shares.get("k", "d")] == [share] * 3
    assert not shares.makes("k", "a")
    shares.join()
    shares.leave("a")


@on_loop
async def test_keys_have_nothing_to_do_with_each_other(shares):
    assert await shares.get("one", "a") is None
    assert await shares.get("other", "b") is None
    assert shares.makes("one", "a")
    assert shares.makes("other", "b")


@on_loop
async def test_a_maker_that_fails_passes_the_turn_on(shares):
    _, second, third = await ask_all(shares, "a", "b", "c")
    shares.fail("k")
    assert await second is None
    assert shares.makes("k", "b")
    assert not third.done()
    shares.fail("k")
    assert await third is None
    shares.fail("k")
    assert not shares.makes("k", "c")
    assert await shares.get("k", "d") is None


@on_loop
async def test_a_maker_that_leaves_passes_the_turn_on(shares):
    for _ in range(3):
        shares.join()
    _, second, third = await ask_all(shares, "a", "b", "c")
    second.cancel()
    await asyncio.wait((second,))
    shares.leave("b")
    shares.leave("a")
    assert await third is None
    assert shares.makes("k", "c")


@on_loop
async def test_who_leaves_at_the_moment_of_its_turn_passes_it_on(shares):
    for _ in range(3):
        shares.join()
    _, second, third = await ask_all(shares, "a", "b", "c")
    shares.leave("a")
    second.cancel()
    shares.leave("b")
    assert await third is None
    assert shares.makes("k", "c")


@on_loop
async def test_everything_ends_with_the_last_user(shares, ended):
    numbers = [descriptor(), descriptor()]
    shares.join()
    shares.join()
    for key, number in zip("xy", numbers, strict=True):
        await shares.get(key, "a")
        shares.put(key, Share(number, None))
    shares.leave("a")
    assert all(map(is_open, numbers))
    assert not ended
    shares.leave("b")
    assert not any(map(is_open, numbers))
    assert ended == [True]
