from __future__ import annotations

import asyncio
import os

import pytest

from plugins.workers.tests.fake_worker import on_loop
from tritonpy_workers.shared_worker_state import SharedBlock, SharedWorkerState


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
def state(ended):
    return SharedWorkerState(lambda: ended.append(True))


async def ask_all(state, *users, key="k"):
    tasks = [asyncio.create_task(state.get(key, user)) for user in users]
    for _ in users:
        await asyncio.sleep(0)
    return tasks


@on_loop
async def test_the_first_user_makes_the_block_and_the_others_get_it(state):
    first, second, third = await ask_all(state, "a", "b", "c")
    assert first.result() is None
    assert not second.done()
    assert state.is_maker("k", "a")
    assert not state.is_maker("k", "b")
    share = SharedBlock(descriptor(), {"x": 1})
    state.put("k", share)
    assert [await second, await third, await state.get("k", "d")] == [share] * 3
    assert not state.is_maker("k", "a")
    state.join()
    state.release("a")


@on_loop
async def test_keys_are_independent(state):
    assert await state.get("one", "a") is None
    assert await state.get("other", "b") is None
    assert state.is_maker("one", "a")
    assert state.is_maker("other", "b")


@on_loop
async def test_after_a_failed_maker_the_next_user_makes_the_block(state):
    _, second, third = await ask_all(state, "a", "b", "c")
    state.fail("k")
    assert await second is None
    assert state.is_maker("k", "b")
    assert not third.done()
    state.fail("k")
    assert await third is None
    state.fail("k")
    assert not state.is_maker("k", "c")
    assert await state.get("k", "d") is None


@on_loop
async def test_after_a_released_maker_the_next_user_makes_the_block(state):
    for _ in range(3):
        state.join()
    _, second, third = await ask_all(state, "a", "b", "c")
    second.cancel()
    await asyncio.wait((second,))
    state.release("b")
    state.release("a")
    assert await third is None
    assert state.is_maker("k", "c")


@on_loop
async def test_a_user_released_as_it_becomes_the_maker_is_skipped(state):
    for _ in range(3):
        state.join()
    _, second, third = await ask_all(state, "a", "b", "c")
    state.release("a")
    second.cancel()
    state.release("b")
    assert await third is None
    assert state.is_maker("k", "c")


@on_loop
async def test_everything_ends_with_the_last_user(state, ended):
    numbers = [descriptor(), descriptor()]
    state.join()
    state.join()
    for key, number in zip("xy", numbers, strict=True):
        await state.get(key, "a")
        state.put(key, SharedBlock(number, None))
    state.release("a")
    assert all(map(is_open, numbers))
    assert not ended
    state.release("b")
    assert not any(map(is_open, numbers))
    assert ended == [True]
