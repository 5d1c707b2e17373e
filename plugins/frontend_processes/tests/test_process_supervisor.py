"""Frontend processes without models: addresses, life cycle, and failures."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import psutil
import pytest

from tritonpy.api.frontend_host import FrontendHostContext
from tritonpy.frontend import Claim, ClaimedAddress, Frontend, LogChanges
from tritonpy.logs import change_logging
from tritonpy.plugins import make_plugin_manager
from tritonpy.server.factories import make_tracing
from tritonpy.server.server import build
from tritonpy_config.server import decode_server_config
from tritonpy_frontend_processes import heartbeat
from tritonpy_frontend_processes.process_supervisor import ProcessSupervisor
from tritonpy_frontend_processes.remote_frontend import FrontendProcesses, RemoteFrontend
from tritonpy_metrics import CustomMetrics
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types.errors import StartupError

WAIT_S = 30


def config_of(**more: Any) -> Any:
    frontends = {"http": {"port": 0}, "grpc": False, "metrics": False}
    return decode_server_config({"frontend_processes": 2, "frontends": {**frontends, **more}})


def supervisor_of(config: Any) -> tuple[ProcessSupervisor, dict[str, Frontend]]:
    plugins = make_plugin_manager()
    host = FrontendProcesses(
        FrontendHostContext(config, make_tracing(config.trace, plugins), CustomMetrics())
    )
    plain = build(decode_server_config({"frontends": config.frontends}), plugins).frontends
    return host.supervisor, host.host(plain)


@asynccontextmanager
async def running(
    config: Any, engine: ToyEngine
) -> AsyncIterator[tuple[ProcessSupervisor, dict[str, Frontend]]]:
    supervisor, frontends = supervisor_of(config)
    for frontend in frontends.values():
        await frontend.start(engine)
    try:
        yield supervisor, frontends
    finally:
        for frontend in frontends.values():
            await frontend.stop()


def call(address: str, path: str) -> int:
    with closing(http.client.HTTPConnection(address, timeout=WAIT_S)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - other processes have no event for it
            await asyncio.sleep(0.01)


def test_processes_serve_one_address_until_they_are_stopped() -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (supervisor, frontends):
            address = frontends["http"].address()
            pids = [process.pid for process in supervisor.processes]
            assert len(set(pids)) == 2
            for _ in range(8):
                assert await asyncio.to_thread(call, address, "/v2/health/live") == 200
            await frontends["http"].serving()
            await frontends["http"].drain()
        assert not any(map(psutil.pid_exists, pids))
        with pytest.raises(ConnectionRefusedError):
            call(address, "/v2/health/live")

    with ToyEngine() as toy:
        asyncio.run(scenario())


def test_only_frontends_that_scale_run_in_processes() -> None:
    config = config_of(metrics={"port": 0}, grpc={"port": 0})
    _, frontends = supervisor_of(config)
    assert [
        name for name, frontend in frontends.items() if isinstance(frontend, RemoteFrontend)
    ] == ["http", "grpc"]


def test_a_process_that_dies_is_restarted_until_the_server_drains(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (supervisor, frontends):
            first = supervisor.processes[0].pid
            os.kill(first, signal.SIGKILL)
            await until(lambda: supervisor.processes[0].pid not in {0, first})
            await until(lambda: "frontend process 0 restarted" in caplog.text)
            await frontends["http"].drain()
            os.kill(supervisor.processes[0].pid, signal.SIGKILL)
            await until(lambda: not supervisor.processes[0].pid)
        assert caplog.text.count("restarted") == 1

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_process_that_hangs_is_killed_and_restarted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeat, "PERIOD_S", 1)

    async def scenario() -> None:
        async with running(config_of(), toy) as (supervisor, _):
            first, other = (process.pid for process in supervisor.processes)
            os.kill(first, signal.SIGSTOP)
            await until(lambda: supervisor.processes[0].pid not in {0, first})
            await until(lambda: "frontend process 0 restarted" in caplog.text)
            assert not psutil.pid_exists(first)
            assert supervisor.processes[1].pid == other
        assert "frontend process 0 died: it did not respond for 3 s and was killed" in caplog.text

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_restarted_process_is_notified_that_the_server_is_ready(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (supervisor, frontends):
            await frontends["http"].serving()
            process, calls = supervisor.processes[0], []
            real_call = process.call

            async def note(verb: str, arguments: Any) -> None:
                await real_call(verb, arguments)
                calls.append((verb, arguments))

            monkeypatch.setattr(process, "call", note)
            os.kill(process.pid, signal.SIGKILL)
            await until(lambda: "frontend process 0 restarted" in caplog.text)
            assert calls == [("serving", {"frontend": "http"})]

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_process_is_restarted_after_a_lack_of_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (supervisor, _):
            describe, left = (
                supervisor.processes[0]._make_start_message,
                [OSError(24, "Too many open files")],
            )

            def fail_once(index: int) -> Any:
                if left:
                    raise left.pop()
                return describe(index)

            monkeypatch.setattr(supervisor.processes[0], "_make_start_message", fail_once)
            os.kill(supervisor.processes[0].pid, signal.SIGKILL)
            await until(lambda: "frontend process 0 restarted" in caplog.text)
        assert "frontend process 0 failed to restart" in caplog.text
        assert "Too many open files" in caplog.text

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_taken_port_is_a_startup_error_and_leaves_nothing() -> None:
    async def scenario() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            supervisor, frontends = supervisor_of(config_of(http={"port": taken.getsockname()[1]}))
            with pytest.raises(StartupError, match=r"cannot listen for HTTP on 127\.0\.0\.1"):
                await frontends["http"].start(toy)
            assert supervisor.processes == []

    with ToyEngine() as toy:
        asyncio.run(scenario())


def test_a_failed_start_is_reported_and_stops_the_other_processes() -> None:
    class Broken(Frontend):
        scales = True

        async def start(self, engine: object) -> None:
            raise AssertionError("the frontend runs in another process")

        def claim(self) -> ClaimedAddress:
            return ClaimedAddress(Claim("127.0.0.1:1", 1), lambda: closed.append(True))

    async def scenario() -> None:
        supervisor, frontends = supervisor_of(config_of())
        supervisor.serve("unheard", Broken(None, frontends["http"].context))  # type: ignore[attr-defined]
        children = len(psutil.Process().children())
        with pytest.raises(StartupError, match="unheard"):
            await frontends["http"].start(toy)
        assert len(psutil.Process().children()) == children

    closed: list[bool] = []
    with ToyEngine() as toy:
        asyncio.run(scenario())
    assert closed == [True]


def test_a_cancelled_start_leaves_nothing() -> None:
    async def scenario() -> None:
        supervisor, frontends = supervisor_of(config_of())
        starting = asyncio.create_task(frontends["http"].start(toy))
        await until(
            lambda: (
                len(supervisor.processes) == 2
                and all(process.pid for process in supervisor.processes)
            )
        )
        pids = [process.pid for process in supervisor.processes]
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not any(map(psutil.pid_exists, pids))

    with ToyEngine() as toy:
        asyncio.run(scenario())


def test_changes_of_the_log_reach_every_process(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (_, frontends):
            address = frontends["http"].address()
            await asyncio.to_thread(call, address, "/v2/models/identity/ready")
            assert "identity/ready" not in caplog.text
            change_logging(LogChanges(verbose=1))

            async def descriptions() -> None:
                while caplog.text.count("identity/ready") < 8:
                    await asyncio.to_thread(call, address, "/v2/models/identity/ready")

            async with asyncio.timeout(WAIT_S):
                await descriptions()

    try:
        with ToyEngine() as toy, caplog.at_level(1):
            asyncio.run(scenario())
    finally:
        change_logging(LogChanges(verbose=0))
