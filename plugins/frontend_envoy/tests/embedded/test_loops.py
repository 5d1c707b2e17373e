from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from tritonpy_frontend_envoy.embedded.loops import ANSWERED, Bridges


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def events():
    return []


@pytest.fixture
def bridges(loop, events):
    before = asyncio.get_event_loop_policy()
    yield Bridges(loop, 2, lambda: events.append("complete"), lambda: events.append("stopped"))
    asyncio.set_event_loop_policy(before)


@pytest.fixture
def bridge(bridges, events):
    """One that runs, because pyvoy has all of its loops."""
    bridge, _ = bridges.new_event_loop(), bridges.new_event_loop()
    events.clear()
    return bridge


def test_pyvoy_gets_as_many_as_there_are_listeners_and_everybody_else_real_ones(bridges, events):
    made = [asyncio.new_event_loop() for _ in range(2)]
    assert events == ["complete"]
    other = asyncio.new_event_loop()
    assert type(other) not in map(type, made)
    other.close()
    for bridge in made:
        asyncio.set_event_loop(bridge)  # pyvoy does it in each of its threads
    asyncio.set_event_loop(None)


def test_calls_from_other_threads_run_on_the_loop_in_their_order_and_in_one_turn(bridge, loop, events):
    thread = threading.Thread(
        target=lambda: [bridge.call_soon_threadsafe(events.append, number) for number in range(3)]
    )
    thread.start()
    thread.join()
    assert events == []
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert events == [0, 1, 2]


def test_a_call_that_fails_is_logged_and_the_others_run(bridge, loop, events, caplog):
    bridge.call_soon_threadsafe(int, "none")
    bridge.call_soon_threadsafe(events.append, 1)
    loop.call_soon(loop.stop)
    with caplog.at_level(logging.ERROR):
        loop.run_forever()
    assert events == [1]
    assert "a call from Envoy failed" in caplog.messages


def test_calls_after_the_end_of_the_loop_run_at_once(bridge, loop, events):
    loop.close()
    bridge.call_soon_threadsafe(events.append, 1)
    assert events == [1]


def test_the_one_that_waits_takes_the_place_of_the_next_future_alone(bridge, bridges):
    waiter = object()
    bridges.next_future.waiter = waiter
    assert bridge.create_future() is waiter
    assert isinstance(bridge.create_future(), asyncio.Future)


def test_what_is_answered_needs_no_task(bridge):
    assert bridge.create_task(ANSWERED) is ANSWERED
    assert ANSWERED.add_done_callback(print) is None


def test_the_rest_begins_on_the_loop_and_gets_a_task_where_it_needs_one(bridge, loop):
    ended = loop.create_future()
    begun_by = []

    async def work():
        return 1

    def begin():
        begun_by.append(threading.current_thread())
        return work()

    def add():
        bridge.create_task(begin).add_done_callback(ended.set_result)
        bridge.create_task(lambda: begin().close() or ANSWERED).add_done_callback(print)

    thread = threading.Thread(target=add)
    thread.start()
    thread.join()
    assert begun_by == []
    assert loop.run_until_complete(ended).result() == 1
    assert begun_by == [threading.current_thread()] * 2


class AppExecutor:
    """What pyvoy calls its callable that gives a head to the application."""

    def __init__(self, begun, error=None):
        self.begun = begun
        self.error = error

    def __call__(self):
        self.begun.append(threading.current_thread())
        if self.error is not None:
            raise self.error


def test_a_head_is_taken_in_pyvoys_own_thread(bridge, loop, events):
    thread = threading.Thread(target=bridge.call_soon_threadsafe, args=(AppExecutor(events),))
    thread.start()
    thread.join()
    assert events == [thread]


def test_pyvoys_thread_outlives_a_head_that_fails(bridge, loop, events, caplog):
    with caplog.at_level(logging.ERROR):
        bridge.call_soon_threadsafe(AppExecutor(events, OSError("no")))
    assert "a call from Envoy failed" in caplog.messages
    bridge.call_soon_threadsafe(AppExecutor(events))
    assert len(events) == 2


def test_each_thread_has_a_next_future_of_its_own(bridge, bridges):
    waiter = Waiter()
    bridges.next_future.waiter = waiter
    others = []
    thread = threading.Thread(target=lambda: others.append(bridge.create_future()))
    thread.start()
    thread.join()
    assert isinstance(others[0], asyncio.Future)
    assert bridge.create_future() is waiter


def test_an_envoy_that_ends_before_it_has_asked_for_all_loops_is_let_go(bridges, events):
    bridge = bridges.new_event_loop()
    thread = threading.Thread(target=bridge.run_forever)
    thread.start()
    bridge.call_soon_threadsafe(bridge.stop)
    thread.join(30)
    assert not thread.is_alive()
    assert events == []


def test_a_result_that_nobody_waits_for_any_more_is_dropped(bridge, loop, caplog):
    future, seen = bridge.create_future(), []
    future.cancel()
    bridge.call_soon_threadsafe(future.set_result, "late")
    bridge.call_soon_threadsafe(seen.append, "next")
    loop.run_until_complete(asyncio.sleep(0))
    assert seen == ["next"]
    assert caplog.records == []


def test_pyvoys_thread_is_held_until_the_end(bridge, bridges, events):
    thread = threading.Thread(target=bridge.run_forever)
    thread.start()
    bridge.stop()
    assert events == ["stopped"]
    assert thread.is_alive()
    bridges.end()
    thread.join(30)
    assert not thread.is_alive()


def test_the_coroutines_with_which_pyvoy_ends_its_loops_are_dropped(bridge):
    bridge.run_until_complete(bridge.shutdown_asyncgens())
    bridge.run_until_complete(bridge.shutdown_default_executor(300))
    bridge.close()


class AtHand:
    """What pyvoy's `receive` returns for a request that has no body."""

    def __await__(self):
        return self

    def __next__(self):
        raise StopIteration({"type": "http.request"})


class Waiter:
    def __init__(self):
        self.results = []

    def set_result(self, result):
        self.results.append(result)


def test_who_waits_gets_what_pyvoy_has_at_hand_and_takes_no_other_future(bridge, bridges):
    waiter = Waiter()
    bridges.next_future.receive(AtHand, waiter)
    assert waiter.results == [{"type": "http.request"}]
    assert isinstance(bridge.create_future(), asyncio.Future)


def test_who_asks_gets_what_pyvoy_has_at_hand_as_the_answer(bridge, bridges):
    waiter = Waiter()
    assert bridges.next_future.ask(AtHand, waiter) == {"type": "http.request"}
    assert bridges.next_future.ask(bridge.create_future, waiter) is None
    assert waiter.results == []


def test_who_waits_is_what_pyvoy_makes_of_its_future(bridge, bridges):
    waiter = Waiter()
    futures = []
    bridges.next_future.receive(lambda: futures.append(bridge.create_future()), waiter)
    assert futures == [waiter]
    assert waiter.results == []


def run_once(loop):
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_who_wants_to_know_is_told_of_calls_that_run_together(bridges, bridge, loop, events):
    bridges.rounds.begin, bridges.rounds.end = lambda: events.append("begin"), lambda: events.append("end")
    for number in range(2):
        bridge.call_soon_threadsafe(events.append, number)
    run_once(loop)
    assert events == ["begin", 0, 1, "end"]
    bridge.call_soon_threadsafe(events.append, 2)
    run_once(loop)
    assert events == ["begin", 0, 1, "end", 2]


def test_the_end_of_a_round_is_told_though_a_call_fails(bridges, bridge, loop, events, caplog):
    bridges.rounds.end = lambda: events.append("end")
    bridge.call_soon_threadsafe(events.index, "not there")
    bridge.call_soon_threadsafe(events.append, 1)
    run_once(loop)
    assert events == [1, "end"]
    assert "a call from Envoy failed" in caplog.text
