from __future__ import annotations

import asyncio
import errno
import os
import threading

import numpy as np
import pytest

from core.tests.runners.workers.fake_worker import eventually, on_loop
from core.tests.runners.workers.scripted_worker import EMPTY, FINAL, outputs
from core.tests.runners.workers.worker_model import Batching, worker_model
from core.tests.toys.limiter import ResourceLimiter
from tritonpy.direct import DirectScheduler
from tritonpy.errors import Internal, InvalidArgument, Unavailable
from tritonpy.ipc import Kind
from tritonpy.runners.workers import backoff, worker as worker_module

SHORT_NS, LONG_NS = 1_000, 10_000_000
NEEDS_ONE = 'rate_limiter { resources { name: "R" count: 1 } }'


@pytest.fixture(autouse=True)
def _restarts_are_quick(monkeypatch):
    monkeypatch.setattr(backoff, "_FIRST_S", 0.001)


async def turn():
    """Let everything happen that is due."""
    for _ in range(5):
        await asyncio.sleep(0)


@on_loop
async def test_a_request_is_executed_and_answered():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1, 2)
        worker.echo(await worker.one())
        assert await model.values(request) == [[1, 2]]


@on_loop
async def test_large_tensors_travel_in_shared_memory():
    large = np.arange(100_000, dtype=np.int32).reshape(1, -1)
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.send(large)
        worker.echo(await worker.one())
        (values,) = await model.values(request)
        assert values == large.ravel().tolist()


@on_loop
async def test_the_first_executions_come_one_at_a_time():
    async with worker_model() as model:
        (worker,) = await model.start()
        requests = [model.ask(number) for number in range(3)]
        for number in range(3):
            given = await worker.one()
            assert given.rows[0][0].data.tolist() == [[number]]
            await turn()
            assert model.model.waiting == 2 - number
            worker.echo(given, took_ns=LONG_NS)
        assert await model.values(*requests) == [[0], [1], [2]]


@on_loop
async def test_executions_that_are_short_come_many_at_once_where_a_batch_cannot_grow():
    async with worker_model() as model:
        (worker,) = await model.start()
        requests = [model.ask(0)]
        worker.echo(await worker.one(), took_ns=SHORT_NS)
        await model.values(*requests)
        requests += [model.ask(number) for number in range(40)]
        given = await worker.given()
        assert len(given) == 32
        worker.echo(*given, took_ns=SHORT_NS)
        worker.echo(*await worker.given())
        assert await model.values(*requests) == [[0], *[[number] for number in range(40)]]


@on_loop
async def test_a_scheduler_whose_batches_grow_is_asked_for_one_at_a_time_however_short_they_are():
    async with worker_model(scheduler=Batching) as model:
        (worker,) = await model.start()
        first = model.ask(0)
        given = await worker.one()
        rest = [model.ask(number) for number in range(1, 4)]
        await turn()
        worker.echo(given, took_ns=SHORT_NS)
        given = await worker.one()
        assert len(given.numbers) == 3
        late = model.ask(9)
        await turn()
        worker.echo(given, took_ns=SHORT_NS)
        worker.echo(await worker.one())
        assert await model.values(first, *rest, late) == [[0], [1], [2], [3], [9]]


@on_loop
async def test_answers_come_in_any_order_and_of_several_executions_in_one_frame():
    async with worker_model() as model:
        (worker,) = await model.start()
        warm = model.ask(0)
        worker.echo(await worker.one(), took_ns=SHORT_NS)
        await model.values(warm)
        requests = [model.ask(number) for number in range(4)]
        given = await worker.given()
        pairs = [(number, row) for each in given for number, row in zip(each.numbers, each.rows, strict=True)]
        worker.say([(number, FINAL, outputs(row)) for number, row in reversed(pairs[2:])], given[2:])
        worker.say([(number, FINAL, outputs(row)) for number, row in reversed(pairs[:2])], given[:2])
        assert await model.values(*requests) == [[0], [1], [2], [3]]


@on_loop
async def test_an_execution_that_is_over_makes_room_though_its_request_is_not_answered():
    async with worker_model(decoupled=True) as model:
        (worker,) = await model.start()
        slow, quick = (model.ask(number, accepts_decoupled=True) for number in range(2))
        held = await worker.one()
        worker.say([(held.numbers[0], 0, outputs(held.rows[0]))], [held])
        worker.echo(await worker.one())
        assert await model.values(quick) == [[1]]
        assert not slow.answered
        worker.say([(held.numbers[0], 0, outputs(held.rows[0])), (held.numbers[0], FINAL | EMPTY, [])])
        (end,) = await model.answers(slow)
        assert end.empty
        assert len(model.witness.answers(slow)) == 3


@on_loop
async def test_an_answer_after_the_final_one_is_dropped():
    async with worker_model(decoupled=True) as model:
        (worker,) = await model.start()
        request = model.ask(1, accepts_decoupled=True)
        given = await worker.one()
        worker.echo(given)
        await model.values(request)
        worker.say([(given.numbers[0], 0, outputs(given.rows[0])), (given.numbers[0], FINAL | EMPTY, [])])
        other = model.ask(2, accepts_decoupled=True)
        worker.echo(await worker.one())
        assert await model.values(other) == [[2]]


@on_loop
async def test_two_instances_share_what_comes():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        first, second, third = (model.ask(number) for number in range(3))
        given = [await one.one(), await two.one()]
        await turn()
        assert model.model.waiting == 1
        two.echo(given[1])
        two.echo(await two.one())
        one.echo(given[0])
        assert sorted(await model.values(first, second, third)) == [[0], [1], [2]]


@on_loop
async def test_a_request_goes_to_the_instance_that_is_free_however_long_the_other_takes():
    async with worker_model(instances=2) as model:
        busy, free = await model.start()
        blocked = model.ask(0)
        held = await busy.one()
        for number in range(1, 6):
            request = model.ask(number)
            free.echo(await free.one(), took_ns=SHORT_NS)
            assert await model.values(request) == [[number]]
        busy.echo(held)
        await model.values(blocked)


# ---------------------------------------------------------------- death and restart


@on_loop
async def test_the_requests_of_a_worker_that_dies_fail_and_those_that_wait_are_served_by_the_next():
    async with worker_model() as model:
        (worker,) = await model.start()
        lost, waiting = model.ask(1), model.ask(2)
        await worker.one()
        worker.exit(3)
        assert await model.errors(lost) == [
            "Failed to process the request(s) for model 'm_0_0', message: Stub process 'm_0_0' is not healthy: it exited with status 3."
        ]
        again = await model.launcher.next()
        await again.started()
        again.echo(await again.one())
        assert await model.values(waiting) == [[2]]


@on_loop
async def test_requests_that_come_while_a_dead_worker_is_reaped_are_served_by_the_next():
    async with worker_model() as model:
        (worker,) = await model.start()
        reaped = threading.Event()
        worker.wait = lambda _limit: reaped.wait(10) and -11
        worker.hang_up()
        await eventually(lambda: model.runner._instances[0].worker.ending)
        request = model.ask(1)
        await turn()
        assert model.model.waiting == 1
        worker.exit(-11)
        reaped.set()
        again = await model.launcher.next()
        await again.started()
        again.echo(await again.one())
        assert await model.values(request) == [[1]]


@on_loop
async def test_while_a_dead_worker_is_reaped_the_other_instance_serves():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        reaped = threading.Event()
        one.wait = lambda _limit: reaped.wait(10) and -11
        one.hang_up()
        await eventually(lambda: model.runner._instances[0].worker.ending)
        request = model.ask(1)
        two.echo(await two.one())
        assert await model.values(request) == [[1]]
        one.exit(-11)
        reaped.set()
        await (await model.launcher.next()).started()


@on_loop
async def test_an_instance_that_dies_leaves_what_it_was_just_rung_for_to_the_other():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        first, second = model.runner._instances
        await eventually(lambda: first.slot.idle and second.slot.idle)
        withdraw, requests = model.model.dispatcher.withdraw, []

        def ask_before(slot):
            if slot is first.slot and not requests:
                requests.append(model.ask(1))
                assert not slot.idle
            withdraw(slot)

        model.model.dispatcher.withdraw = ask_before
        one.exit(1)
        two.echo(await two.one())
        assert await model.values(*requests) == [[1]]
        await (await model.launcher.next()).started()


@on_loop
async def test_a_worker_that_cannot_start_again_has_requests_refused_until_it_can():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        await (await model.launcher.next()).failed("the weights are gone")
        await eventually(lambda: model.runner._instances[0].broken is not None)
        refused = model.ask(1)
        (error,) = await model.answers(refused)
        assert isinstance(error.error, Unavailable)
        assert error.error.message == (
            "Stub process 'm_0_0' is not healthy: it failed to start again: the weights are gone"
        )
        assert not model.runner.alive()
        again = await model.launcher.next()
        await again.started()
        await eventually(model.runner.alive)
        request = model.ask(2)
        again.echo(await again.one())
        assert await model.values(request) == [[2]]


@on_loop
async def test_what_waits_when_the_restart_fails_is_refused():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        failing = await model.launcher.next()
        waiting = [model.ask(number) for number in range(3)]
        await failing.failed("no luck")
        assert [error.endswith("no luck") for error in await model.errors(*waiting)] == [True] * 3
        await (await model.launcher.next()).started()


@on_loop
async def test_while_another_instance_lives_nothing_is_refused():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        one.exit(1)
        await (await model.launcher.next()).failed("never again")
        await eventually(lambda: model.runner._instances[0].broken is not None)
        requests = [model.ask(number) for number in range(3)]
        for _ in requests:
            two.echo(await two.one())
        assert await model.values(*requests) == [[0], [1], [2]]
        await (await model.launcher.next()).started()


@on_loop
async def test_a_worker_that_dies_young_is_started_again_later_and_later(monkeypatch):
    waits = []

    async def sleep(delay_s):
        waits.append(delay_s)

    async with worker_model() as model:
        (worker,) = await model.start()
        with monkeypatch.context() as patch:
            patch.setattr("tritonpy.runners.workers.instance.asyncio.sleep", sleep)
            for _ in range(4):
                worker.exit(1)
                worker = await asyncio.wait_for(model.launcher._waiting.get(), 10)
                await worker.started()
                await eventually_alive(model)
        assert waits == [0.001, 0.002, 0.004]


async def eventually_alive(model):
    ready = asyncio.Event()

    def look():
        if model.runner.alive():
            ready.set()
        else:
            asyncio.get_running_loop().call_soon(look)

    look()
    await ready.wait()


@on_loop
async def test_a_model_that_is_unloaded_while_its_worker_waits_to_be_started_again_is_gone_at_once(monkeypatch):
    monkeypatch.setattr(backoff, "_FIRST_S", 3600.0)
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        await (await model.launcher.next()).failed("once")
        await eventually(lambda: model.runner._instances[0].broken is not None)


@on_loop
async def test_a_worker_that_is_just_being_started_again_ends_with_the_model():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        again = await model.launcher.next()
        await again.receive(Kind.START)
        await model.unload()
        assert again.killed


# ---------------------------------------------------------------- the end


@on_loop
async def test_a_worker_is_asked_to_stop_after_its_last_answer():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1)
        given = await worker.one()
        closing = model.unload()
        await turn()
        assert worker.frames == []
        worker.echo(given)
        assert await model.values(request) == [[1]]
        await worker.stop()
        await closing
        assert not worker.killed


@on_loop
async def test_a_worker_that_does_not_stop_is_killed(monkeypatch):
    monkeypatch.setattr(worker_module, "FINALIZE_LIMIT_S", 0.001)
    async with worker_model() as model:
        (worker,) = await model.start()
        await model.unload()
        assert worker.killed


# ---------------------------------------------------------------- cancellation


@on_loop
async def test_a_running_request_that_is_cancelled_is_cancelled_at_the_worker():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1)
        given = await worker.one()
        await asyncio.to_thread(request.cancel)
        cancel = await worker.receive(Kind.CANCEL)
        assert list(cancel.words) == given.numbers
        worker.echo(given)
        assert await model.values(request) == [[1]]


@on_loop
async def test_a_waiting_request_that_is_cancelled_never_reaches_the_worker():
    async with worker_model() as model:
        (worker,) = await model.start()
        first, second = model.ask(1), model.ask(2)
        given = await worker.one()
        second.cancel()
        assert await model.errors(second) == ["Request cancelled"]
        worker.echo(given)
        await model.values(first)


# ---------------------------------------------------------------- the rate limiter


@on_loop
async def test_a_rate_limiter_that_says_no_is_waited_for_without_a_thread():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await turn()
        limiter.wait_for_queue(1)
        assert (worker.frames, request.answered) == ([], False)
        await asyncio.to_thread(limiter.release, "other")
        given = await worker.one()
        assert limiter._free["R"] == 0
        worker.echo(given)
        assert await model.values(request) == [[1]]
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.unregister("other")
    assert limiter.needs == {}


@on_loop
async def test_an_instance_that_waits_for_its_turn_does_not_ask_again():
    class Counting(ResourceLimiter):
        asked = 0

        def acquire(self, instance, granted):
            self.asked += 1
            return super().acquire(instance, granted)

    limiter = Counting({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        limiter.asked = 0
        requests = []
        for number in range(3):
            requests.append(model.ask(number))
            model.runner._instances[0].feed()
            await turn()
        assert limiter.asked == 1
        limiter.release("other")
        for _ in requests:
            worker.echo(await worker.one(), took_ns=LONG_NS)
        await model.values(*requests)
        limiter.unregister("other")


@on_loop
async def test_a_grant_that_comes_while_the_model_ends_is_given_back():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await turn()
        request.cancel()
        closing = model.unload()
        await worker.receive(Kind.STOP)
        limiter.release("other")
        await turn()
        worker.exit(0)
        await closing
        assert limiter._free["R"] == 1
        limiter.unregister("other")


@on_loop
async def test_what_one_instance_may_not_execute_now_goes_to_one_that_may():
    class OnlySecond(ResourceLimiter):
        strict = False

        def acquire(self, instance, granted):
            return instance.startswith("m_0_1") or not self.strict

    limiter = OnlySecond({})
    async with worker_model(instances=2, limiter=limiter) as model:
        _, two = await model.start()
        first, second = model.runner._instances
        await eventually(lambda: first.slot.idle and second.slot.idle)
        limiter.strict = True
        for number in range(3):
            request = model.ask(number)
            two.echo(await two.one())
            assert await model.values(request) == [[number]]


@on_loop
async def test_of_two_instances_that_share_a_resource_one_executes_at_a_time():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(instances=2, limiter=limiter, group=NEEDS_ONE) as model:
        workers = await model.start()
        requests = [model.ask(number) for number in range(6)]
        for _ in requests:
            await eventually(lambda: limiter._free["R"] == 0)
            given = [asyncio.ensure_future(worker.one()) for worker in workers]
            done, pending = await asyncio.wait(given, return_when=asyncio.FIRST_COMPLETED)
            assert len(done) == 1
            for each in pending:
                each.cancel()
            await asyncio.wait(given)
            index = next(index for index, each in enumerate(given) if each in done)
            workers[index].echo(given[index].result(), took_ns=LONG_NS)
            await model.values(requests[given[index].result().rows[0][0].data.item()])
        await eventually(lambda: limiter._free["R"] == 1)


@on_loop
async def test_a_grant_to_an_instance_that_died_meanwhile_is_given_back():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await turn()
        worker.exit(1)
        again = await model.launcher.next()
        await asyncio.to_thread(limiter.release, "other")
        await eventually(lambda: limiter._free["R"] == 1)
        await again.started()
        again.echo(await again.one())
        assert await model.values(request) == [[1]]
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.unregister("other")


@on_loop
async def test_an_instance_that_dies_gives_its_permission_back():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        request = model.ask(1)
        await worker.one()
        assert limiter._free["R"] == 0
        worker.exit(1)
        await model.errors(request)
        again = await model.launcher.next()
        assert limiter._free["R"] == 1
        await again.started()


# ---------------------------------------------------------------- what fails


class Moody(DirectScheduler):
    """Raises where the test wants it to."""

    ready_fails = take_fails_after = None

    def ready(self, instance, now_ns):
        if self.ready_fails:
            raise self.ready_fails
        return super().ready(instance, now_ns)

    def take(self, instance, now_ns, limit=1):
        if self.take_fails_after is not None:
            if not self.take_fails_after:
                self.take_fails_after = None
                raise ValueError("cannot be cut")
            self.take_fails_after -= 1
        return super().take(instance, now_ns, limit)


@on_loop
async def test_a_scheduler_that_raises_has_its_requests_answered_and_the_next_ones_served():
    async with worker_model(scheduler=Moody) as model:
        (worker,) = await model.start()
        first = model.ask(1)
        given = await worker.one()
        waiting = [model.ask(number) for number in (2, 3)]
        model.scheduler.ready_fails = ValueError("not today")
        worker.echo(given)
        assert await model.values(first) == [[1]]
        assert all("not today" not in error for error in await model.errors(*waiting))
        model.scheduler.ready_fails = None
        after = model.ask(4)
        worker.echo(await worker.one())
        assert await model.values(after) == [[4]]


@on_loop
async def test_what_was_cut_before_the_scheduler_raised_is_still_executed():
    async with worker_model(scheduler=Moody) as model:
        (worker,) = await model.start()
        warm = model.ask(0)
        worker.echo(await worker.one(), took_ns=SHORT_NS)
        await model.values(warm)
        model.scheduler.take_fails_after = 2
        requests = [model.ask(number) for number in range(4)]
        given = await worker.given()
        assert len(given) == 2
        worker.echo(*given)
        assert await model.values(*requests[:2]) == [[0], [1]]
        assert all(await model.errors(*requests[2:]))


@on_loop
async def test_a_limiter_that_raises_is_asked_again():
    class Broken(ResourceLimiter):
        broken = False

        def acquire(self, instance, granted):
            if self.broken:
                raise ValueError("out of order")
            return super().acquire(instance, granted)

    limiter = Broken({})
    async with worker_model(limiter=limiter) as model:
        (worker,) = await model.start()
        await turn()
        limiter.broken = True
        assert all(await model.errors(model.ask(1)))
        limiter.broken = False
        request = model.ask(2)
        worker.echo(await worker.one())
        assert await model.values(request) == [[2]]


@on_loop
async def test_inputs_without_shared_memory_fail_alone(monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with worker_model() as model:
        (worker,) = await model.start()
        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", full)
            large = model.send(np.zeros((1, 100_000), np.int32))
            small = model.ask(1)
            (error,) = await model.errors(large)
        assert error == "no shared memory for the inputs: [Errno 28] No space left on device"
        worker.echo(await worker.one())
        assert await model.values(small) == [[1]]


@on_loop
async def test_a_request_that_no_frame_can_carry_fails_alone():
    async with worker_model() as model:
        (worker,) = await model.start()
        strange = model.ask(1, parameters={"a": object()})
        plain = model.ask(2)
        assert all("not JSON serializable" in error for error in await model.errors(strange))
        worker.echo(await worker.one())
        assert await model.values(plain) == [[2]]


@on_loop
async def test_an_execution_beyond_the_limit_costs_the_worker_its_life():
    async with worker_model(limit_s=0.001) as model:
        (worker,) = await model.start()
        request = model.ask(1)
        (error,) = await model.errors(request)
        assert error.endswith("is not healthy: an execution took longer than the limit of 0.001 s.")
        assert worker.killed
        await (await model.launcher.next()).started()


@on_loop
async def test_a_worker_within_the_limit_lives(monkeypatch):
    async with worker_model(limit_s=3600.0) as model:
        (worker,) = await model.start()
        for number in range(3):
            request = model.ask(number)
            worker.echo(await worker.one())
            assert await model.values(request) == [[number]]
        model.runner._instances[0]._check_limit()
        assert not worker.killed


# ---------------------------------------------------------------- strings that are walked off the loop


def strings(count, broken=False):
    data = np.array([[b"x" * 10] * count], np.object_)
    return data


@on_loop
async def test_large_strings_are_checked_before_the_worker_sees_them():
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()
        good, bad = model.send(strings(20_000)), model.send(strings(20_000))
        assert good.unchecked_strings
        tensor = bad.inputs["IN"]
        tensor.data = tensor.data.copy()
        tensor.data[:4] = 255
        worker.echo(await worker.one(), took_ns=LONG_NS)
        assert (await model.answers(good))[0].outputs[0].strings() == [b"x" * 10] * 20_000
        (answer,) = await model.answers(bad)
        assert isinstance(answer.error, InvalidArgument)
        other = model.send(strings(1))
        worker.echo(await worker.one())
        assert (await model.answers(other))[0].outputs[0].strings() == [b"x" * 10]


@on_loop
async def test_what_is_being_checked_counts_as_held_and_keeps_the_permission():
    limiter = ResourceLimiter({"R": 1})
    go = threading.Event()
    async with worker_model(datatype="TYPE_STRING", limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        admit = model.model.guards.admit
        object.__setattr__(model.runner._instances[0]._guards, "admit", lambda batch: go.wait(10) and admit(batch))
        large, small = model.send(strings(20_000)), model.send(strings(1))
        await turn()
        assert (limiter._free["R"], model.model.waiting) == (0, 1)
        go.set()
        worker.echo(await worker.one())
        worker.echo(await worker.one())
        await model.answers(large, small)


@on_loop
async def test_a_request_that_is_cancelled_while_it_is_checked_is_cancelled_at_the_worker():
    go = threading.Event()
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()
        admit = model.model.guards.admit
        object.__setattr__(model.runner._instances[0]._guards, "admit", lambda batch: go.wait(10) and admit(batch))
        request = model.send(strings(20_000))
        await turn()
        request.cancel()
        await turn()
        go.set()
        given = await worker.one()
        assert list((await worker.receive(Kind.CANCEL)).words) == given.numbers
        worker.echo(given)
        await model.answers(request)


@on_loop
async def test_a_batch_whose_worker_dies_while_it_is_checked_fails_and_the_next_worker_is_fed():
    go = threading.Event()
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()
        admit = model.model.guards.admit
        object.__setattr__(model.runner._instances[0]._guards, "admit", lambda batch: go.wait(10) and admit(batch))
        request, waiting = model.send(strings(20_000)), model.send(strings(1))
        await turn()
        worker.exit(1)
        again = await model.launcher.next()
        await again.started()
        await eventually(model.runner.alive)
        go.set()
        assert await model.errors(request) == ["the worker of the model ended"]
        again.echo(await again.one())
        await model.answers(waiting)


@on_loop
async def test_a_check_that_raises_fails_its_batch():
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()

        def broken(_batch):
            raise Internal("the check is broken")

        object.__setattr__(model.runner._instances[0]._guards, "admit", broken)
        assert await model.errors(model.send(strings(20_000))) == ["the check is broken"]
        small = model.send(strings(1))
        worker.echo(await worker.one())
        await model.answers(small)
