"""Processes without models: their addresses, their life, and what goes wrong with it."""

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

from tritonpy.api.claim import Claim, Claimed
from tritonpy.api.frontend import Frontend
from tritonpy.config.server import decode_server_config
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.errors import StartupError
from tritonpy.frontend_processes import pulse
from tritonpy.frontend_processes.elsewhere import Elsewhere, served_elsewhere
from tritonpy.frontend_processes.fleet import Fleet
from tritonpy.logs import LogChanges, change_logging
from tritonpy.plugins import make_plugin_manager
from tritonpy.server import build
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.tracing.setup import make_tracing

PATIENCE_S = 30


def config_of(**more: Any) -> Any:
    frontends = {"http": {"port": 0}, "grpc": False, "metrics": False}
    return decode_server_config({"frontend_processes": 2, "frontends": {**frontends, **more}})


def fleet_of(config: Any) -> tuple[Fleet, dict[str, Frontend]]:
    plugins = make_plugin_manager()
    fleet = Fleet(config, make_tracing(config.trace, plugins), CustomMetrics())
    plain = build(decode_server_config({"frontends": config.frontends}), plugins).frontends
    return fleet, served_elsewhere(plain, fleet)


@asynccontextmanager
async def running(config: Any, engine: ToyEngine) -> AsyncIterator[tuple[Fleet, dict[str, Frontend]]]:
    fleet, frontends = fleet_of(config)
    for frontend in frontends.values():
        await frontend.start(engine)
    try:
        yield fleet, frontends
    finally:
        for frontend in frontends.values():
            await frontend.stop()


def ask(address: str, path: str) -> int:
    with closing(http.client.HTTPConnection(address, timeout=PATIENCE_S)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - other processes have no event for it
            await asyncio.sleep(0.01)


def test_processes_serve_one_address_until_they_are_stopped() -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (fleet, frontends):
            address = frontends["http"].address()
            pids = [process.pid for process in fleet.processes]
            assert len(set(pids)) == 2
            for _ in range(8):
                assert await asyncio.to_thread(ask, address, "/v2/health/live") == 200
            await frontends["http"].serving()
            await frontends["http"].drain()
        assert not any(map(psutil.pid_exists, pids))
        with pytest.raises(ConnectionRefusedError):
            ask(address, "/v2/health/live")

    with ToyEngine() as toy:
        asyncio.run(scenario())


def test_only_frontends_that_scale_are_served_elsewhere() -> None:
    config = config_of(metrics={"port": 0}, grpc={"port": 0})
    _, frontends = fleet_of(config)
    assert [name for name, frontend in frontends.items() if isinstance(frontend, Elsewhere)] == ["http", "grpc"]


def test_a_process_that_dies_is_started_again_until_the_server_drains(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (fleet, frontends):
            first = fleet.processes[0].pid
            os.kill(first, signal.SIGKILL)
            await until(lambda: fleet.processes[0].pid not in {0, first})
            await until(lambda: "frontend process 0 is started again" in caplog.text)
            await frontends["http"].drain()
            os.kill(fleet.processes[0].pid, signal.SIGKILL)
            await until(lambda: not fleet.processes[0].pid)
        assert caplog.text.count("is started again") == 1

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_process_that_hangs_is_killed_and_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pulse, "PERIOD_S", 1)

    async def scenario() -> None:
        async with running(config_of(), toy) as (fleet, _):
            first, other = (process.pid for process in fleet.processes)
            os.kill(first, signal.SIGSTOP)
            await until(lambda: fleet.processes[0].pid not in {0, first})
            await until(lambda: "frontend process 0 is started again" in caplog.text)
            assert not psutil.pid_exists(first)
            assert fleet.processes[1].pid == other
        assert "frontend process 0 died: it did not answer for 3 s and was killed" in caplog.text

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_process_that_is_started_again_is_told_that_the_server_is_ready(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (fleet, frontends):
            await frontends["http"].serving()
            process, asked = fleet.processes[0], []
            ask_it = process.ask

            async def note(verb: str, arguments: Any) -> None:
                await ask_it(verb, arguments)
                asked.append((verb, arguments))

            monkeypatch.setattr(process, "ask", note)
            os.kill(process.pid, signal.SIGKILL)
            await until(lambda: "frontend process 0 is started again" in caplog.text)
            assert asked == [("serving", {"frontend": "http"})]

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_process_is_started_again_also_when_descriptors_ran_out_meanwhile(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(config_of(), toy) as (fleet, _):
            describe, left = fleet.processes[0]._start_of, [OSError(24, "Too many open files")]

            def fail_once(index: int) -> Any:
                if left:
                    raise left.pop()
                return describe(index)

            monkeypatch.setattr(fleet.processes[0], "_start_of", fail_once)
            os.kill(fleet.processes[0].pid, signal.SIGKILL)
            await until(lambda: "frontend process 0 is started again" in caplog.text)
        assert "frontend process 0 failed to start again" in caplog.text
        assert "Too many open files" in caplog.text

    with ToyEngine() as toy, caplog.at_level("INFO"):
        asyncio.run(scenario())


def test_a_taken_port_is_a_startup_error_and_leaves_nothing() -> None:
    async def scenario() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            fleet, frontends = fleet_of(config_of(http={"port": taken.getsockname()[1]}))
            with pytest.raises(StartupError, match=r"cannot listen for HTTP on 127\.0\.0\.1"):
                await frontends["http"].start(toy)
            assert fleet.processes == []

    with ToyEngine() as toy:
        asyncio.run(scenario())


def test_a_process_that_cannot_start_says_why_and_ends_the_others() -> None:
    class Broken(Frontend):
        scales = True

        async def start(self, engine: object) -> None:
            raise AssertionError("it runs elsewhere")

        def claim(self) -> Claimed:
            return Claimed(Claim("127.0.0.1:1", 1), lambda: closed.append(True))

    async def scenario() -> None:
        fleet, frontends = fleet_of(config_of())
        fleet.serve("unheard", Broken(None, frontends["http"].context))  # type: ignore[attr-defined]
        children = len(psutil.Process().children())
        with pytest.raises(StartupError, match="unheard"):
            await frontends["http"].start(toy)
        assert len(psutil.Process().children()) == children

    closed: list[bool] = []
    with ToyEngine() as toy:
        asyncio.run(scenario())
    assert closed == [True]


def test_a_start_that_is_cancelled_leaves_nothing() -> None:
    async def scenario() -> None:
        fleet, frontends = fleet_of(config_of())
        starting = asyncio.create_task(frontends["http"].start(toy))
        await until(lambda: len(fleet.processes) == 2 and all(process.pid for process in fleet.processes))
        pids = [process.pid for process in fleet.processes]
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
            await asyncio.to_thread(ask, address, "/v2/models/identity/ready")
            assert "identity/ready" not in caplog.text
            change_logging(LogChanges(verbose=1))

            async def told() -> None:
                while caplog.text.count("identity/ready") < 8:
                    await asyncio.to_thread(ask, address, "/v2/models/identity/ready")

            async with asyncio.timeout(PATIENCE_S):
                await told()

    try:
        with ToyEngine() as toy, caplog.at_level(1):
            asyncio.run(scenario())
    finally:
        change_logging(LogChanges(verbose=0))
