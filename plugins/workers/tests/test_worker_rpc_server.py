from __future__ import annotations

import asyncio
import os

import pytest

from plugins.workers.tests.fake_worker import (
    FakeWorker,
    eventually,
    model_context,
    on_loop,
    registry_of,
    worker_of,
)
from tritonpy_ipc import Kind
from tritonpy_metrics import CustomMetrics
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types.errors import Code


def open_descriptors():
    return set(os.listdir("/proc/self/fd"))


@on_loop
async def test_metrics_are_created_and_changed():
    registry = CustomMetrics()
    async with worker_of(ToyEngine([]), metrics=registry) as worker:
        worker.ask(1, "metric_family", name="served", description="requests served", kind="COUNTER")
        family = await worker.reply(1)
        worker.ask(2, "metric", family=family, labels={"a": "b"})
        metric = await worker.reply(2)
        worker.notify("metric_add", metric=metric, value=2)
        worker.notify("metric_add", metric=metric, value=0.5)
        worker.ask(3, "metric_value", metric=metric)
        assert await worker.reply(3) == 2.5
        assert [each.name for each in registry.snapshot()] == ["served"]
    assert registry.snapshot() == [], "a dead worker left a metric"


@on_loop
async def test_an_error_of_a_query_is_its_result_and_the_worker_lives(caplog):
    async with worker_of(ToyEngine([])) as worker:
        worker.ask(1, "metric_family", name="0", description="", kind="GAUGE")
        assert await worker.reply(1) == [Code.INVALID_ARG, "Invalid metric name"]
        worker.ask(2, "load_model", name="nobody")
        assert await worker.reply(2) == [
            Code.INTERNAL,
            "failed to load 'nobody', failed to poll from model repository",
        ]
        worker.notify("metric_family", name="0", description="", kind="GAUGE")
        worker.notify("unload_model", name="nobody")
        await eventually(lambda: caplog.text.count("failed: ") == 2)
        assert "'metric_family' failed: Invalid metric name" in caplog.text
        assert (
            "'unload_model' failed: Request for unknown model: 'nobody' is not found" in caplog.text
        )
        worker.ask(3, "is_model_ready", name="nobody")
        assert await worker.reply(3) is False


@on_loop
async def test_models_are_loaded_and_unloaded():
    async with worker_of(ToyEngine()) as worker:
        for number, (verb, name, value) in enumerate(
            [
                ("is_model_ready", "identity", True),
                ("unload_model", "identity", None),
                ("is_model_ready", "identity", False),
                ("load_model", "identity", None),
                ("is_model_ready", "identity", True),
            ]
        ):
            worker.ask(number, verb, name=name)
            assert await worker.reply(number) == value


@on_loop
async def test_a_slow_query_blocks_no_other():
    class Slow(ToyEngine):
        def load_model(self, name, config=None, files=None, versions=()):
            asyncio.run_coroutine_threadsafe(released.wait(), loop).result()

    loop, released = asyncio.get_running_loop(), asyncio.Event()
    async with worker_of(Slow([])) as worker:
        worker.ask(1, "load_model", name="m")
        worker.ask(2, "is_model_ready", name="m")
        assert await worker.reply(2) is False
        released.set()
        assert await worker.reply(1) is None


@on_loop
async def test_an_unexpected_engine_error_is_hidden_from_the_model(caplog):
    class Broken(ToyEngine):
        def unload_model(self, name, unload_dependents=False, versions=()):
            raise ZeroDivisionError("secret")

    async with worker_of(Broken([])) as worker:
        worker.ask(1, "unload_model", name="m")
        code, text = await worker.reply(1)
    assert code == Code.INTERNAL
    assert text.startswith("unexpected error in the server, see error id")
    assert "secret" in caplog.text


@on_loop
async def test_lines_for_the_log_are_logged(caplog):
    async with worker_of(ToyEngine([])) as worker:
        worker.notify("log", level="WARNING", message="hello", requests=["1", "2"])
        await eventually(lambda: caplog.records)
        (record,) = caplog.records
        assert (record.name, record.levelname, record.getMessage()) == (
            "tritonpy.model",
            "WARNING",
            "hello",
        )
        assert (record.model, record.version, record.instance, record.request_id) == (
            "caller",
            1,
            "caller_0_0",
            "1, 2",
        )


@on_loop
async def test_additional_requests_have_the_returned_execution_number():
    counts = []

    async def more(count):
        counts.append(count)
        return 17 if len(counts) == 1 else None

    async with worker_of(ToyEngine([]), take_more=more) as worker:
        worker.ask(1, "take_more", count=3)
        assert await worker.reply(1) == 17
        worker.ask(2, "take_more", count=1)
        assert await worker.reply(2) is None
    assert counts == [3, 1]


class WorkerGroup:
    """Workers of one model version."""

    def __init__(self, *names):
        worker_registry, model = registry_of(ToyEngine([])), model_context(ToyEngine([]))
        self.workers = [FakeWorker(model, worker_registry, name=name) for name in names]

    async def __aenter__(self):
        return self.workers

    async def __aexit__(self, *_error):
        for worker in self.workers:
            worker.close()


async def content(worker, number):
    """Return the layout and the contents of the block in the result of query `number`."""
    frame = await worker.receive(Kind.QUERY_RESULT)
    assert frame.words == (number,)
    (descriptor,) = frame.take_descriptors()
    data = os.pread(descriptor, 100, 0)
    os.close(descriptor)
    return frame.extras["value"]["layout"], data


def memory(data):
    descriptor = os.memfd_create("share")
    os.write(descriptor, data)
    return descriptor


@on_loop
async def test_one_worker_makes_the_block_that_all_share():
    before = open_descriptors()
    async with WorkerGroup("m_0_0", "m_0_1", "m_0_2") as (maker, second, third):
        maker.ask(1, "share", key="weights")
        assert await maker.reply(1) is None
        second.ask(1, "share", key="weights")
        maker.ask(2, "shared", [memory(b"abc")], key="weights", layout={"w": [3]})
        assert await maker.reply(2) is None
        assert await content(second, 1) == ({"w": [3]}, b"abc")
        maker.close()
        third.ask(1, "share", key="weights")
        assert await content(third, 1) == ({"w": [3]}, b"abc")
    assert open_descriptors() <= before


@on_loop
async def test_after_a_failed_or_dead_maker_the_next_worker_makes_the_block():
    async with WorkerGroup("m_0_0", "m_0_1", "m_0_2") as (fails, dies, makes):
        fails.ask(1, "share", key="k")
        assert await fails.reply(1) is None
        for worker in (dies, makes):
            worker.ask(1, "share", key="k")
            await eventually(lambda worker=worker: worker.session._rpc_server._open)
        fails.ask(2, "shared", key="k")
        assert await fails.reply(2) is None
        assert await dies.reply(1) is None
        dies.close()
        assert await makes.reply(1) is None
        makes.ask(2, "shared", [memory(b"x")], key="k", layout=1)
        assert await makes.reply(2) is None
        fails.ask(3, "share", key="k")
        assert await content(fails, 3) == (1, b"x")


@on_loop
async def test_results_for_a_dead_worker_are_dropped():
    async with WorkerGroup("m_0_0", "m_0_1") as (maker, other):
        before = open_descriptors()
        maker.ask(1, "share", key="k")
        await maker.reply(1)
        other.ask(1, "share", key="k")
        await eventually(lambda: other.session._rpc_server._open)
        other.close()
        maker.ask(2, "shared", [memory(b"x")], key="k")
        await maker.reply(2)
        maker.close()
    assert open_descriptors() <= before


BROKEN = {
    "no verb": {"arguments": {}},
    "no arguments": {"verb": "log"},
    "a verb that is none": {"verb": "sudo", "arguments": {}},
    "a level that is none": {"verb": "log", "arguments": {"level": "LOUD", "message": ""}},
    "a metric that was never made": {"verb": "metric_add", "arguments": {"metric": 1, "value": 1}},
    "a kind that is none": {
        "verb": "metric_family",
        "arguments": {"name": "a", "description": "", "kind": "pie"},
    },
    "a file that is not in base64": {
        "verb": "load_model",
        "arguments": {"name": "m", "files": {"f": "?"}},
    },
    "no request at all": {"verb": "take_more", "arguments": {"count": 0}},
    "a block that was not requested": {"verb": "shared", "arguments": {"key": "k"}},
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("kind", [Kind.QUERY, Kind.NOTIFY])
@on_loop
async def test_an_invalid_query_ends_the_worker(kind, name):
    async with worker_of(ToyEngine([])) as worker:
        worker.send(kind, [1], extras=BROKEN[name])
        assert "it broke the worker protocol" in await worker.until_broken()


@on_loop
async def test_a_query_number_in_flight_may_not_be_reused():
    async with WorkerGroup("m_0_0", "m_0_1") as (maker, other):
        maker.ask(1, "share", key="k")
        await maker.reply(1)
        other.ask(1, "share", key="k")
        other.ask(1, "share", key="k")
        assert "query 1 is already in flight" in await other.until_broken()


@pytest.mark.parametrize(("verb", "count"), [("shared", 2), ("share", 1)])
@on_loop
async def test_unexpected_descriptors_end_the_worker_and_are_closed(verb, count):
    async with worker_of(ToyEngine([])) as worker:
        worker.ask(1, "share", key="k")
        await worker.reply(1)
        before = open_descriptors()
        worker.ask(2, verb, [memory(b"") for _ in range(count)], key="k")
        assert "descriptors" in await worker.until_broken()
        assert open_descriptors() < before
