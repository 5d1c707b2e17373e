from __future__ import annotations

import asyncio
import gc
import logging
import threading

import pytest

from tritonpy.api.authenticator import Authenticator
from tritonpy.api.frontend import Frontend
from tritonpy.api.observer import Observer
from tritonpy.engine.lifecycle import ServerState
from tritonpy.hookspecs import hookimpl
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.server.server import build
from tritonpy_config.options import Options
from tritonpy_config.server import InvalidServerConfig, decode_server_config
from tritonpy_testing import RecordingSink
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import PluginError, StartupError, Unavailable

from ..repository.version_backend import EventLog, version_reporter, write
from ..toys.doubler import Gate, gated
from ..toys.serving import SILENT, ToyPlugin, ask, config_of, numbers, toy_plugins


class Everything:
    """Registers a frontend, an observer and event hooks, and records their events."""

    def __init__(self, fails_in=()):
        self.events = events = []
        self.fails_in = fails_in
        self.draining = asyncio.Event()
        self.drained = asyncio.Event()
        self.drained.set()
        plugin = self

        class Port(Frontend):
            class Options(Options, frozen=True):
                taken: bool = False

            async def start(self, engine):
                if self.options.taken:
                    raise StartupError("127.0.0.1:1 is taken")
                events.append("listening")

            async def drain(self):
                plugin.draining.set()
                await plugin.drained.wait()
                events.append("drained")

            async def stop(self):
                events.append("closed")
                if "stop" in plugin.fails_in:
                    raise OSError("stuck")

        class Watcher(Observer):
            def responded(self, request, response, now_ns):
                events.append("answered")

            def close(self):
                events.append("flushed")

        self.port, self.watcher = Port, Watcher

    @hookimpl
    def tritonpy_frontends(self):
        return {"port": self.port, "other": self.port}

    @hookimpl
    def tritonpy_observers(self):
        return {"watcher": self.watcher}

    @hookimpl
    def tritonpy_server_started(self, engine):
        self.record("started", engine.state)

    @hookimpl
    def tritonpy_server_stopping(self, engine):
        self.record("stopping")

    @hookimpl
    def tritonpy_model_loaded(self, name, version, config):
        self.record("loaded", name, version, config.backend)

    @hookimpl
    def tritonpy_model_unloaded(self, name, version, config):
        self.record("unloaded", name, version, config.backend)

    def record(self, event, *details):
        self.events.append((event, *details))
        if event in self.fails_in:
            raise ZeroDivisionError(f"{event} fails")


@pytest.fixture
def event_log():
    return EventLog()


@pytest.fixture
def recorder():
    return RecordingSink()


@pytest.fixture
def make(model_repository, event_log):
    def build_server(plugin=None, served_by=None, **settings):
        raw = {
            "repositories": [{"url": str(model_repository.path)}],
            "frontends": SILENT,
        } | settings
        toys = ToyPlugin({"version_reporter": version_reporter(event_log)} | (served_by or {}))
        return build(decode_server_config(raw), toy_plugins(toys, *([plugin] if plugin else [])))

    return build_server


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    threads, frozen = set(threading.enumerate()), gc.get_freeze_count()
    yield
    assert set(threading.enumerate()) <= threads
    assert gc.get_freeze_count() <= frozen


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.mark.parametrize("schedulers", [{}, {"sequence": DirectScheduler}])
def test_the_sequence_extension_is_listed_if_a_scheduler_serves_it(schedulers):
    server = build(
        decode_server_config({"frontends": SILENT}), toy_plugins(ToyPlugin(schedulers=schedulers))
    )
    assert ("sequence" in server.engine.server_metadata().extensions) == bool(schedulers)


def test_a_server_runs_from_start_to_stop(make, model_repository, recorder, event_log):
    write(model_repository, "m", 5)
    plugin = Everything()
    server = make(plugin, frontends=SILENT | {"port": {}}, observers={"watcher": {}})

    async def live():
        await server.start()
        deadline_ns = now_ns() + 3600 * 10**9  # starts the timer's thread, which must end, too
        request = ask(server.engine, recorder, "m", [0], deadline_ns=deadline_ns)
        (answers,) = await asyncio.to_thread(recorder.wait, request)
        assert await server.drain(10)
        await server.stop()
        return numbers(answers)

    assert server.engine.state is ServerState.INITIALIZING
    assert run(live()) == [[5]]
    assert sorted(map(str, plugin.events[:2])) == [
        "('loaded', 'm', 1, 'version_reporter')",
        "listening",
    ]
    assert plugin.events[2:] == [
        ("started", ServerState.READY), "answered", ("stopping",), "drained", ("unloaded", "m", 1, "version_reporter"), "closed", "flushed",
    ]  # fmt: skip
    assert server.engine.state is ServerState.EXITING
    assert event_log.open_handles == []


def test_a_port_in_use_fails_the_start_and_leaves_nothing_behind(make, model_repository, event_log):
    write(model_repository, "m")
    plugin = Everything()
    server = make(plugin, frontends=SILENT | {"port": {}, "other": {"taken": True}})

    async def live():
        try:
            await server.start()
        finally:
            await server.stop()

    with pytest.raises(StartupError, match=r"127\.0\.0\.1:1 is taken"):
        run(live())
    assert [event for event in plugin.events if event in ("listening", "closed")] == [
        "listening",
        "closed",
    ]
    assert event_log.open_handles == []


def test_a_port_in_use_stops_loading_without_log_lines(make, model_repository, caplog):
    caplog.set_level(logging.INFO)
    loading, failed, loads = threading.Event(), threading.Event(), []

    class Slow(gated(Gate())):
        @classmethod
        def load(cls, model):
            loads.append(model.name)
            loading.set()
            assert failed.wait(10)

    for number in range(3):
        model_repository.add(f"m{number}", config_of("slow"))
    plugin = Everything()

    class Taken(plugin.port):
        async def start(self, engine):
            await asyncio.to_thread(loading.wait, 10)
            asyncio.get_running_loop().call_later(0, failed.set)
            raise StartupError("taken")

    plugin.port = Taken
    server = make(plugin, {"slow": Slow}, frontends=SILENT | {"port": {}}, control={"threads": 1})

    async def live():
        try:
            await server.start()
        finally:
            await server.stop()

    with pytest.raises(StartupError, match="taken"):
        run(live())
    assert loads == ["m0"]
    assert "Server exiting" not in caplog.text
    assert "models:" not in caplog.messages


@pytest.mark.parametrize("exit_on_error", [True, False])
def test_a_failing_model_stops_no_other_model(make, model_repository, recorder, exit_on_error):
    for name, text in (("good", 5), ("bad", "cannot be loaded"), ("worse", "has no instance")):
        write(model_repository, name, text)
    server = make(exit_on_error=exit_on_error)

    async def live():
        try:
            await server.start()
            (answers,) = await asyncio.to_thread(
                recorder.wait, ask(server.engine, recorder, "good", [0])
            )
            return numbers(answers)
        finally:
            await server.stop()

    if exit_on_error:
        with pytest.raises(
            StartupError, match=r"failed to load all models: bad, worse\. .*--exit-on-error=false"
        ):
            run(live())
    else:
        assert run(live()) == [[5]]
    assert sorted(server.failures) == ["bad", "worse"]


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_repository_that_cannot_be_read_fails_the_start(make, tmp_path, kind):
    path = tmp_path / "place"
    if kind == "file":
        path.write_text("x")
    server = make(repositories=[{"url": str(path)}])

    async def live():
        try:
            await server.start()
        finally:
            await server.stop()

    with pytest.raises(StartupError, match=f"model repository '{path}' cannot be read"):
        run(live())


def test_without_exit_on_error_an_unreadable_repository_makes_the_server_not_live(make, tmp_path):
    server = make(repositories=[{"url": str(tmp_path / "nowhere")}], exit_on_error=False)

    async def live():
        await server.start()
        engine = server.engine
        try:
            assert "cannot be read" in server.failure
            assert (engine.is_live(), engine.is_ready()) == (False, False)
            for call in (
                engine.repository_index,
                engine.statistics,
                lambda: engine.is_model_ready("m"),
            ):
                with pytest.raises(Unavailable, match="Server not ready"):
                    call()
        finally:
            assert await server.drain(1)
            await server.stop()

    run(live())


def test_an_empty_repository_is_served_with_a_hint(make, model_repository, caplog):
    server = make()

    async def live():
        await server.start()
        assert server.engine.is_ready()
        await server.stop()

    run(live())
    assert f"no models in {model_repository.path}" in caplog.text


class TestDrain:
    @pytest.fixture
    def gate(self):
        return Gate()

    @pytest.fixture
    def busy(self, make, model_repository, recorder, gate):
        """A server with one request that executes and one that waits."""
        model_repository.add("m", config_of("gated"))
        plugin = Everything()
        server = make(plugin, {"gated": gated(gate)}, frontends=SILENT | {"port": {}})

        async def start():
            await server.start()
            requests = [ask(server.engine, recorder, "m", [value]) for value in (1, 2)]
            await asyncio.to_thread(gate.wait_for, 1)
            return server, plugin, requests

        return start

    def test_requests_in_flight_finish_and_new_ones_are_refused(self, busy, gate, recorder):
        async def live():
            server, plugin, requests = await busy()
            plugin.drained.clear()
            drain = asyncio.ensure_future(server.drain(10))
            await plugin.draining.wait()
            with pytest.raises(Unavailable, match="Server exiting"):
                server.engine.is_ready()
            gate.open()
            plugin.drained.set()
            assert await drain
            with pytest.raises(Unavailable, match="Server is stopping"):
                ask(server.engine, recorder, "m", [3])
            await server.stop()
            return recorder.wait(*requests)

        assert [numbers(answers) for answers in run(live())] == [[[2]], [[4]]]

    def test_the_timeout_ends_waiting_requests(self, busy, gate, recorder, monkeypatch):
        monkeypatch.setattr("tritonpy.repository.draining.GRACE_S", 0.01)

        async def live():
            server, _, (running, waiting) = await busy()
            assert not await server.drain(0.01)
            (answers,) = recorder.wait(waiting)
            gate.open()
            (finished,) = recorder.wait(running)
            monkeypatch.undo()
            await server.stop()
            recorder.check(running, waiting)
            return answers[0].error, numbers(finished)

        error, finished = run(live())
        assert type(error) is Unavailable
        assert error.message == "Exit timeout expired, the request was not run"
        assert finished == [[2]]

    def test_busy_connections_do_not_delay_it(self, busy, gate, caplog):
        async def live():
            server, plugin, _ = await busy()
            gate.open()
            plugin.drained.clear()
            await server.drain(0.01)
            await server.stop()

        run(live())
        assert "some connections were still busy after 0.0 s" in caplog.text


@pytest.mark.parametrize("hook", ["started", "stopping", "loaded", "unloaded", "stop"])
def test_a_failing_plugin_is_logged_and_the_server_continues(
    make, model_repository, event_log, caplog, hook
):
    write(model_repository, "m")
    plugin = Everything(fails_in=[hook])
    server = make(plugin, frontends=SILENT | {"port": {}})

    async def live():
        await server.start()
        assert server.engine.is_ready()
        assert await server.drain(10)
        await server.stop()

    run(live())
    assert ("Port failed to stop" if hook == "stop" else f"{hook} fails") in caplog.text
    assert "closed" in plugin.events
    assert event_log.open_handles == []


class Keys(Authenticator):
    def authenticate(self, headers):
        return None


class Guarded(Everything):
    @hookimpl
    def tritonpy_frontends(self):
        return {"metrics": self.port}

    @hookimpl
    def tritonpy_authenticators(self):
        return {"keys": Keys}


@pytest.mark.parametrize(("opened", "logged"), [(["health"], True), (["health", "metrics"], False)])
def test_a_start_with_authentication_logs_that_metrics_need_credentials(
    make, caplog, opened, logged
):
    caplog.set_level(logging.INFO)
    frontends = SILENT | {"metrics": {}}
    server = make(Guarded(), frontends=frontends, auth={"keys": {}}, access={"open": opened})

    async def live():
        await server.start()
        await server.stop()

    run(live())
    assert ("metrics need credentials" in caplog.text) is logged


def test_a_polled_repository_is_followed(make, model_repository, event_log):
    server = make(control={"mode": "poll", "interval_s": 0.01})

    async def live():
        await server.start()
        write(model_repository, "m")
        await asyncio.to_thread(event_log.wait_for_handles, ("m", 1))
        model_repository.remove("m")
        await asyncio.to_thread(event_log.wait_for_handles)
        await server.stop()

    run(live())


def test_stop_works_without_a_start(make):
    run(make().stop())


class TestBuild:
    def test_a_missing_plugin_is_named(self, make):
        with pytest.raises(
            PluginError, match=r"no plugin provides frontend 'http': .* tritonpy-frontend-http$"
        ):
            make(frontends=SILENT | {"http": {}})

    @pytest.mark.parametrize(
        ("settings", "path"),
        [
            ({"frontends": SILENT | {"port": {"takn": True}}}, r"frontends\.port\.takn"),
            ({"observers": {"watcher": {"x": 1}}}, r"observers\.watcher\.x"),
            ({"backends": {"version_reporter": {"x": 1}}}, r"backends\.version_reporter\.x"),
            ({"repository_options": {"file": {"x": 1}}}, r"repository_options\.file\.x"),
        ],
    )
    def test_wrong_options_of_a_plugin_name_their_key(self, make, settings, path):
        with pytest.raises(InvalidServerConfig, match=path):
            make(Everything(), **settings)

    def test_the_url_scheme_selects_the_plugin(self, make):
        with pytest.raises(PluginError, match="model repository 's3'"):
            make(repositories=[{"url": "s3://bucket/models"}])

    @pytest.mark.parametrize(("mode", "logged"), [("off", True), ("execution_count", False)])
    def test_unused_resources_are_logged(self, make, caplog, mode, logged):
        make(Everything(), rate_limit={"mode": mode, "resources": {"R": 1}})
        assert ("rate_limit.resources has no effect" in caplog.text) is logged

    def test_build_loads_nothing(self, make, model_repository, event_log):
        write(model_repository, "m")
        make(Everything(), frontends=SILENT | {"port": {}})
        assert event_log.events("load") == []
