from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.one_worker import UNHEALTHY, one
from tritonpy import logs
from tritonpy.frontend import LogChanges
from tritonpy.logs import change_logging
from tritonpy.runners.host_policies import HostPolicy
from tritonpy_ipc import Kind
from tritonpy_types.errors import Code, Internal, InvalidArgument
from tritonpy_workers import worker as worker_module


@on_loop
async def test_a_worker_gets_the_start_message_and_reports_its_properties():
    async with one() as it:
        starting = it.start()
        process = await it.launcher.next()
        fields = await process.started(max_open=7, has_ready_check=True)
        await starting
        assert fields == {"version": 1, "kind": "scripted", "instance": "m_0_0"}
        assert (it.context.max_open, it.worker.has_ready_check) == (7, True)
        process.exit(0)
        await eventually(lambda: it.ended)


@on_loop
async def test_a_worker_follows_the_log_settings_until_its_end():
    async with one() as it:
        starting = it.start()
        process = await it.launcher.next()
        await process.started(takes_log_level=True)
        await starting
        found = [(await process.receive(Kind.QUERY)).extras]
        change_logging(LogChanges(verbose=3))
        found.append((await process.receive(Kind.QUERY)).extras)
        assert [each["verb"] for each in found] == ["set_log_level"] * 2
        assert found[1]["arguments"] == {"level": logging.DEBUG - 2}
        process.exit(0)
        await eventually(lambda: it.ended)
        assert it.worker._log_settings_changed not in logs._followers


@on_loop
async def test_a_worker_gets_its_host_policy_and_reports_failures(caplog):
    async with one(HostPolicy((0, 2), 1)) as it:
        starting = it.start()
        process = await it.launcher.next()
        fields = await process.started(unbound="Unable to set NUMA memory policy: not here")
        await starting
        assert fields["host_policy"] == {"cores": [0, 2], "node": 1}
        assert (
            "host policy of instance 'm_0_0': Unable to set NUMA memory policy: not here"
            in caplog.messages
        )
        process.exit(0)
        await eventually(lambda: it.ended)


@on_loop
async def test_the_reported_start_failure_is_the_error():
    async with one() as it:
        starting = it.start()
        process = await it.launcher.next()
        await process.failed("model.py has no class", Code.INVALID_ARG)
        with pytest.raises(InvalidArgument) as failed:
            await starting
        assert failed.value.message == "model.py has no class"
        assert (it.ended, process.killed) == ([], False)


@on_loop
async def test_a_worker_that_failed_and_does_not_end_is_killed(monkeypatch):
    monkeypatch.setattr(worker_module, "_REAP_S", 0.001)
    async with one() as it:
        starting = it.start()
        process = await it.launcher.next()
        await process.receive(Kind.START)
        process.send(Kind.FAILED, extras={"message": "no", "code": 1})
        with pytest.raises(Internal, match=r"^no$"):
            await starting
        assert process.killed


@on_loop
async def test_a_worker_that_dies_without_a_message_fails_the_start_with_its_output():
    async with one() as it:
        starting = it.start()
        process = await it.launcher.next()
        await process.receive(Kind.START)
        process.print("".join(f"line {number}\n" for number in range(30)) + "the last words")
        process.exit(-11)
        with pytest.raises(Internal) as failed:
            await starting
        lines = failed.value.message.splitlines()
        assert lines[:2] == [
            UNHEALTHY.format("it was killed by signal 11 (SIGSEGV)"),
            "Its last output:",
        ]
        assert lines[2:] == [f"line {number}" for number in range(11, 30)] + ["the last words"]
        assert it.ended == []


@on_loop
async def test_a_worker_that_dies_before_it_reads_anything_fails_the_start():
    async with one() as it:
        starting = it.start()
        (await it.launcher.next()).exit(127)
        with pytest.raises(Internal) as failed:
            await starting
        assert failed.value.message == UNHEALTHY.format("it exited with status 127")


@pytest.mark.parametrize("error", [OSError("no such interpreter"), Internal("cannot be started")])
def test_a_launcher_that_raises_fails_the_start(error):
    @on_loop
    async def test():
        async with one() as it:

            def refuse(_instance):
                raise error

            it.launcher.before_launch = refuse
            with pytest.raises(type(error), match=str(error)):
                await it.worker.start()
            assert it.launcher.workers == []

    test()


@on_loop
async def test_a_start_message_that_cannot_be_made_ends_the_process_without_a_wait(monkeypatch):
    monkeypatch.setattr(worker_module, "_REAP_S", 3600)
    async with one() as it:

        def refuse(_instance):
            raise Internal("there is nothing to say")

        it.launcher.before_start = refuse
        with pytest.raises(Internal, match="there is nothing to say"):
            await it.worker.start()
        assert [process.killed for process in it.launcher.workers] == [True]
        assert it.ended == []


@on_loop
async def test_a_start_that_is_cancelled_ends_the_process_without_a_wait(monkeypatch):
    monkeypatch.setattr(worker_module, "_REAP_S", 3600)
    async with one() as it:
        starting = it.start()
        process = await it.launcher.next()
        await process.receive(Kind.START)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert process.killed
        assert it.ended == []


@on_loop
async def test_a_start_that_is_cancelled_while_the_process_is_launched_ends_the_process():
    async with one() as it:
        go, launching = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait(_instance):
            loop.call_soon_threadsafe(launching.set)
            go.wait(10)

        it.launcher.before_launch = wait
        starting = it.start()
        await launching.wait()
        starting.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert [process.killed for process in it.launcher.workers] == [True]


@on_loop
async def test_a_start_that_is_cancelled_while_the_launch_fails_is_cancelled():
    async with one() as it:
        go, launching = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def fail(_instance):
            loop.call_soon_threadsafe(launching.set)
            go.wait(10)
            raise OSError("no such interpreter")

        it.launcher.before_launch = fail
        starting = it.start()
        await launching.wait()
        starting.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await starting


@on_loop
async def test_the_end_of_a_running_worker_is_reported_once_with_its_reason():
    async with one() as it:
        process = await it.started()
        assert not it.worker.ending
        process.exit(-9)
        await eventually(lambda: it.ended)
        assert it.worker.ending
        assert [error.message for error in it.ended] == [
            UNHEALTHY.format(
                "it was killed by signal 9 (SIGKILL), possibly because the system was out of memory"
            )
        ]


@on_loop
async def test_a_worker_that_only_closes_its_socket_is_killed(monkeypatch):
    monkeypatch.setattr(worker_module, "_REAP_S", 0.001)
    async with one() as it:
        process = await it.started()
        process.hang_up()
        await eventually(lambda: it.ended)
        assert process.killed


@on_loop
async def test_the_servers_reason_for_killing_it_is_reported():
    async with one() as it:
        await it.started()
        it.worker.kill("it was too slow")
        await eventually(lambda: it.ended)
        assert it.ended[0].message == UNHEALTHY.format("it was too slow")


@on_loop
async def test_a_stopped_worker_exits_without_a_death_report():
    async with one() as it:
        process = await it.started()
        stopping = asyncio.ensure_future(it.worker.stop())
        await process.stop()
        await stopping
        assert (it.ended, process.killed) == ([], False)


@on_loop
async def test_a_worker_that_dies_during_cleanup_counts_as_stopped():
    async with one() as it:
        process = await it.started()
        stopping = asyncio.ensure_future(it.worker.stop())
        await process.receive(Kind.STOP)
        process.exit(-11)
        await stopping
        assert it.ended == []


@on_loop
async def test_a_worker_that_is_dead_can_be_stopped():
    async with one() as it:
        process = await it.started()
        process.exit(1)
        await eventually(lambda: it.ended)
        await it.worker.stop()


@on_loop
async def test_a_worker_that_does_not_finish_is_killed(monkeypatch, caplog):
    monkeypatch.setattr(worker_module, "FINALIZE_LIMIT_S", 0.001)
    async with one() as it:
        process = await it.started()
        await it.worker.stop()
        assert (it.ended, process.killed) == ([], True)
    assert "m_0_0 did not finish within 0.001 s and is killed" in caplog.text


@on_loop
async def test_output_is_logged_with_model_and_instance(caplog):
    caplog.set_level(logging.INFO, "tritonpy.worker")
    async with one() as it:
        process = await it.started()
        process.print("hello\n")
        await eventually(lambda: "hello" in caplog.text)
        (record,) = [record for record in caplog.records if record.message == "hello"]
        assert (record.model, record.version, record.instance) == ("caller", 1, "m_0_0")
        process.exit(0)
        await eventually(lambda: it.ended)


@on_loop
async def test_only_workers_with_a_readiness_check_are_queried():
    async with one() as it:
        process = await it.started(has_ready_check=True)
        for answer in (False, True):
            calling = asyncio.ensure_future(it.worker.is_ready())
            query = await process.receive(Kind.QUERY)
            assert query.extras["verb"] == "is_ready"
            process.send(Kind.QUERY_RESULT, query.words, extras={"value": answer})
            assert await calling is answer
        it.worker.has_ready_check = False
        assert await it.worker.is_ready()
        process.exit(0)
        await eventually(lambda: it.ended)


@on_loop
async def test_the_death_of_a_worker_fails_its_query():
    async with one() as it:
        process = await it.started(has_ready_check=True)
        calling = asyncio.ensure_future(it.worker.is_ready())
        await process.receive(Kind.QUERY)
        process.exit(4)
        with pytest.raises(Internal, match="it exited with status 4"):
            await calling
