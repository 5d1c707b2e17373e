from __future__ import annotations

import asyncio
import gc
import logging
import threading

import pytest

from tritonpy.api.authenticator import Authenticator
from tritonpy.api.frontend import Frontend
from tritonpy.api.observer import Observer
from tritonpy.api.options import Options
from tritonpy.clock import now_ns
from tritonpy.config.server import InvalidServerConfig, decode_server_config
from tritonpy.direct import DirectScheduler
from tritonpy.engine.lifecycle import ServerState
from tritonpy.errors import PluginError, StartupError, Unavailable
from tritonpy.hookspecs import hookimpl
from tritonpy.server import build
from tritonpy.testing import Witness

from .repository.teller import Book, teller, write
from .toys.doubler import Gate, gated
from .toys.serving import SILENT, ToyPlugin, ask, config_of, numbers, toy_plugins


class Everything:
    """Registers a frontend, an observer and event hooks; notes what it hears."""

    def __init__(self, fails_in=()):
        self.heard = heard = []
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
                heard.append("listening")

            async def drain(self):
                plugin.draining.set()
                await plugin.drained.wait()
                heard.append("drained")

            async def stop(self):
                heard.append("closed")
                if "stop" in plugin.fails_in:
                    raise OSError("stuck")

        class Watcher(Observer):
            def answered(self, request, response, now_ns):
                heard.append("answered")

            def close(self):
                heard.append("flushed")

        self.port, self.watcher = Port, Watcher

    @hookimpl
    def tritonpy_frontends(self):
        return {"port": self.port, "other": self.port}

    @hookimpl
    def tritonpy_observers(self):
        return {"watcher": self.watcher}

    @hookimpl
    def tritonpy_server_started(self, engine):
        self.hear("started", engine.state)

    @hookimpl
    def tritonpy_server_stopping(self, engine):
        self.hear("stopping")

    @hookimpl
    def tritonpy_model_loaded(self, name, version, config):
        self.hear("loaded", name, version, config.backend)

    @hookimpl
    def tritonpy_model_unloaded(self, name, version, config):
        self.hear("unloaded", name, version, config.backend)

    def hear(self, event, *details):
        self.heard.append((event, *details))
        if event in self.fails_in:
            raise ZeroDivisionError(f"{event} fails")


@pytest.fixture
def book():
    return Book()


@pytest.fixture
def witness():
    return Witness()


@pytest.fixture
def make(model_repository, book):
    def build_server(plugin=None, served_by=None, **settings):
        raw = {"repositories": [{"url": str(model_repository.path)}], "frontends": SILENT} | settings
        toys = ToyPlugin({"teller": teller(book)} | (served_by or {}))
        return build(decode_server_config(raw), toy_plugins(toys, *([plugin] if plugin else [])))

    return build_server


@pytest.fixture(autouse=True)
def nothing_stays():
    threads, frozen = set(threading.enumerate()), gc.get_freeze_count()
    yield
    assert set(threading.enumerate()) <= threads
    assert gc.get_freeze_count() <= frozen


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.mark.parametrize("schedulers", [{}, {"sequence": DirectScheduler}])
def test_the_extension_sequence_is_listed_where_a_scheduler_serves_it(schedulers):
    server = build(decode_server_config({"frontends": SILENT}), toy_plugins(ToyPlugin(schedulers=schedulers)))
    assert ("sequence" in server.engine.server_metadata().extensions) == bool(schedulers)


def test_a_server_lives_from_start_to_stop(make, model_repository, witness, book):
    write(model_repository, "m", 5)
    plugin = Everything()
    server = make(plugin, frontends=SILENT | {"port": {}}, observers={"watcher": {}})

    async def live():
        await server.start()
        deadline_ns = now_ns() + 3600 * 10**9  # starts the timer's thread, which must not stay either
        request = ask(server.engine, witness, "m", [0], deadline_ns=deadline_ns)
        (answers,) = await asyncio.to_thread(witness.wait, request)
        assert await server.drain(10)
        await server.stop()
        return numbers(answers)

    assert server.engine.state is ServerState.INITIALIZING
    assert run(live()) == [[5]]
    assert sorted(map(str, plugin.heard[:2])) == ["('loaded', 'm', 1, 'teller')", "listening"]
    assert plugin.heard[2:] == [
        ("started", ServerState.READY), "answered", ("stopping",), "drained", ("unloaded", "m", 1, "teller"), "closed", "flushed",
    ]  # fmt: skip
    assert server.engine.state is ServerState.EXITING
    assert book.open == []


def test_a_taken_port_fails_the_start_and_nothing_stays(make, model_repository, book):
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
    assert [event for event in plugin.heard if event in ("listening", "closed")] == ["listening", "closed"]
    assert book.open == []


def test_when_a_port_is_taken_no_more_models_load_and_nothing_is_told_of_them(make, model_repository, caplog):
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
def test_a_model_that_fails_stops_no_other_but_perhaps_the_server(make, model_repository, witness, exit_on_error):
    for name, text in (("good", 5), ("bad", "cannot be loaded"), ("worse", "has no instance")):
        write(model_repository, name, text)
    server = make(exit_on_error=exit_on_error)

    async def live():
        try:
            await server.start()
            (answers,) = await asyncio.to_thread(witness.wait, ask(server.engine, witness, "good", [0]))
            return numbers(answers)
        finally:
            await server.stop()

    if exit_on_error:
        with pytest.raises(StartupError, match=r"failed to load all models: bad, worse\. .*--exit-on-error=false"):
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


def test_a_server_that_does_not_exit_on_errors_stays_up_and_is_not_live_where_a_repository_cannot_be_read(
    make, tmp_path
):
    server = make(repositories=[{"url": str(tmp_path / "nowhere")}], exit_on_error=False)

    async def live():
        await server.start()
        engine = server.engine
        try:
            assert "cannot be read" in server.failure
            assert (engine.is_live(), engine.is_ready()) == (False, False)
            for call in (engine.repository_index, engine.statistics, lambda: engine.is_model_ready("m")):
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
    def busy(self, make, model_repository, witness, gate):
        """A server with one request that executes and one that waits behind it."""
        model_repository.add("m", config_of("gated"))
        plugin = Everything()
        server = make(plugin, {"gated": gated(gate)}, frontends=SILENT | {"port": {}})

        async def start():
            await server.start()
            requests = [ask(server.engine, witness, "m", [value]) for value in (1, 2)]
            await asyncio.to_thread(gate.wait_for, 1)
            return server, plugin, requests

        return start

    def test_live_requests_finish_and_new_ones_are_refused(self, busy, gate, witness):
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
                ask(server.engine, witness, "m", [3])
            await server.stop()
            return witness.wait(*requests)

        assert [numbers(answers) for answers in run(live())] == [[[2]], [[4]]]

    def test_the_time_out_gives_up_those_that_wait(self, busy, gate, witness, monkeypatch):
        monkeypatch.setattr("tritonpy.repository.retiring.GRACE_S", 0.01)

        async def live():
            server, _, (running, waiting) = await busy()
            assert not await server.drain(0.01)
            (answers,) = witness.wait(waiting)
            gate.open()
            (finished,) = witness.wait(running)
            monkeypatch.undo()
            await server.stop()
            witness.check(running, waiting)
            return answers[0].error, numbers(finished)

        error, finished = run(live())
        assert type(error) is Unavailable
        assert error.message == "Exit timeout expired, the request was not run"
        assert finished == [[2]]

    def test_connections_that_stay_busy_do_not_hold_it_up(self, busy, gate, caplog):
        async def live():
            server, plugin, _ = await busy()
            gate.open()
            plugin.drained.clear()
            await server.drain(0.01)
            await server.stop()

        run(live())
        assert "some connections were still busy after 0.0 s" in caplog.text


@pytest.mark.parametrize("hook", ["started", "stopping", "loaded", "unloaded", "stop"])
def test_a_plugin_that_fails_is_logged_and_the_server_goes_on(make, model_repository, book, caplog, hook):
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
    assert "closed" in plugin.heard
    assert book.open == []


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


@pytest.mark.parametrize(("opened", "told"), [(["health"], True), (["health", "metrics"], False)])
def test_a_start_with_authentication_says_that_metrics_need_credentials(make, caplog, opened, told):
    caplog.set_level(logging.INFO)
    frontends = SILENT | {"metrics": {}}
    server = make(Guarded(), frontends=frontends, auth={"keys": {}}, access={"open": opened})

    async def live():
        await server.start()
        await server.stop()

    run(live())
    assert ("metrics need credentials" in caplog.text) is told


def test_a_polled_repository_is_followed(make, model_repository, book):
    server = make(control={"mode": "poll", "interval_s": 0.01})

    async def live():
        await server.start()
        write(model_repository, "m")
        await asyncio.to_thread(book.wait_for_open, ("m", 1))
        model_repository.remove("m")
        await asyncio.to_thread(book.wait_for_open)
        await server.stop()

    run(live())


def test_stop_follows_without_a_start(make):
    run(make().stop())


class TestBuild:
    def test_a_part_that_is_not_installed_is_named(self, make):
        with pytest.raises(PluginError, match=r"no plugin provides frontend 'http': .* tritonpy-frontend-http$"):
            make(frontends=SILENT | {"http": {}})

    @pytest.mark.parametrize(
        ("settings", "path"),
        [
            ({"frontends": SILENT | {"port": {"takn": True}}}, r"frontends\.port\.takn"),
            ({"observers": {"watcher": {"x": 1}}}, r"observers\.watcher\.x"),
            ({"backends": {"teller": {"x": 1}}}, r"backends\.teller\.x"),
            ({"repository_options": {"file": {"x": 1}}}, r"repository_options\.file\.x"),
        ],
    )
    def test_wrong_options_of_a_plugin_name_their_key(self, make, settings, path):
        with pytest.raises(InvalidServerConfig, match=path):
            make(Everything(), **settings)

    def test_a_repository_s_scheme_chooses_the_plugin(self, make):
        with pytest.raises(PluginError, match="model repository 's3'"):
            make(repositories=[{"url": "s3://bucket/models"}])

    @pytest.mark.parametrize(("mode", "told"), [("off", True), ("execution_count", False)])
    def test_resources_that_nobody_looks_at_are_told_of(self, make, caplog, mode, told):
        make(Everything(), rate_limit={"mode": mode, "resources": {"R": 1}})
        assert ("rate_limit.resources has no effect" in caplog.text) is told

    def test_nothing_runs_yet(self, make, model_repository, book):
        write(model_repository, "m")
        make(Everything(), frontends=SILENT | {"port": {}})
        assert book.events("load") == []
