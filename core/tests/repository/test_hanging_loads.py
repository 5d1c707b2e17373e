from __future__ import annotations

import threading

import pytest

from tritonpy_types.errors import Internal, InvalidArgument

from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, config_of
from .test_load_attempts import in_thread, wait_until
from .version_backend import error_of, index, write


class Hanging:
    """A backend whose loads hang until the test ends, except for models whose names start with "good"."""

    def __init__(self):
        self.release = threading.Event()
        self.loading: list[str] = []
        self.unloaded: list[str] = []
        outer = self

        class HangingBackend(gated(Gate())):
            @classmethod
            def load(cls, model):
                outer.loading.append(model.name)
                if not model.name.startswith("good"):
                    outer.release.wait(30)
                return model.name

            @classmethod
            def unload(cls, shared):
                outer.unloaded.append(shared)

        self.plugin = ToyPlugin({"hanging": HangingBackend})


@pytest.fixture
def hanging():
    backend = Hanging()
    yield backend
    backend.release.set()


def test_loads_that_hang_do_not_delay_another_one(serve, model_repository, hanging):
    for number in range(31):
        model_repository.add(f"m{number}", config_of("hanging"))
    model_repository.add("good", config_of("hanging"))
    with serve(hanging.plugin) as server:
        calls = [in_thread(server.engine.load_model, f"m{number}") for number in range(31)]
        wait_until(lambda: len(hanging.loading) == 31)
        server.engine.load_model("good")
        assert ("good", "1", "READY", "") in index(server)
        assert ("m7", "1", "LOADING", "") in index(server)
        for number in range(31):
            server.engine.unload_model(f"m{number}")
        for thread, _ in calls:
            thread.join(10)
    assert {type(error) for _, errors in calls for error in errors} == {Internal}


def test_an_unload_cancels_a_load_with_tritons_error(serve, model_repository, hanging, caplog):
    model_repository.add("m", config_of("hanging"))
    with serve(hanging.plugin) as server:
        thread, errors = in_thread(server.engine.load_model, "m")
        wait_until(lambda: hanging.loading)
        server.engine.unload_model("m")
        thread.join(10)
        assert index(server) == [("m", "1", "UNAVAILABLE", "unloaded")]
        assert server.engine.is_ready()
        hanging.release.set()
        wait_until(lambda: hanging.unloaded)
        assert index(server) == [("m", "1", "UNAVAILABLE", "unloaded")]
        server.engine.load_model("m")
        assert index(server) == [("m", "1", "READY", "")]
    (error,) = errors
    assert (type(error), error.message) == (Internal, "failed to load 'm', no version is available")
    assert (
        "failed to load 'm', no version is available: it was unloaded while it was loading"
        in caplog.messages
    )


def test_a_hanging_reload_is_canceled_by_an_unload_of_all_versions(
    serve, model_repository, hanging, number
):
    write(model_repository, "m", 5)
    with serve(hanging.plugin) as server:
        server.engine.load_model("m")
        write(model_repository, "m", 6, config=config_of("hanging"))
        thread, _ = in_thread(server.engine.load_model, "m")
        wait_until(lambda: hanging.loading)
        assert number(server, "m") == 5
        server.engine.unload_model("m")
        thread.join(10)
        assert "no available versions" in error_of(server.engine.model_metadata, "m").message


def test_a_second_load_waits_for_the_first_and_runs_after_its_unload(
    serve, model_repository, hanging
):
    model_repository.add("m", config_of("hanging"))
    with serve(hanging.plugin) as server:
        first, _ = in_thread(server.engine.load_model, "m")
        wait_until(lambda: len(hanging.loading) == 1)
        second, errors = in_thread(server.engine.load_model, "m")
        lock = server._repository._models._lock_of("m")
        wait_until(lambda: len(lock._waiting) == 1)
        server.engine.unload_model("m")
        first.join(10)
        wait_until(lambda: len(hanging.loading) == 2)
        hanging.release.set()
        second.join(10)
        assert errors == []
        assert index(server) == [("m", "1", "READY", "")]


def test_a_load_timeout_fails_the_load_and_names_itself_in_the_index(
    serve, model_repository, hanging, monkeypatch
):
    monkeypatch.setattr("tritonpy.repository.load_attempts._CANCEL_GRACE_S", 0.01)
    model_repository.add("m", config_of("hanging"))
    with serve(hanging.plugin, control={"load_timeout_s": 0.05}) as server:
        error = error_of(server.engine.load_model, "m")
        ((_, _, state, reason),) = index(server)
    assert type(error) is InvalidArgument
    assert error.message.startswith(
        "load failed for model 'm': the load took longer than the limit of 0.05 s"
    )
    assert state == "UNAVAILABLE"
    assert "the load took longer than the limit of 0.05 s" in reason


def test_a_stop_does_not_wait_for_a_hanging_load(serve, model_repository, hanging):
    model_repository.add("m", config_of("hanging"))
    with serve(hanging.plugin) as server:
        thread, errors = in_thread(server.engine.load_model, "m")
        wait_until(lambda: hanging.loading)
        assert server._repository.stop(10)
        thread.join(10)
    assert [error.message for error in errors] == ["load failed for model 'm': Server exiting\n"]


class TestPolling:
    @pytest.fixture(autouse=True)
    def _soon_slow(self, monkeypatch):
        monkeypatch.setattr("tritonpy.repository.manager.SLOW_S", 0.05)
        monkeypatch.setattr("tritonpy.repository.load_attempts.SLOW_S", 0.05)

    def test_a_hanging_model_does_not_delay_polls(self, serve, model_repository, hanging):
        with serve(hanging.plugin, mode="poll", control={"interval_s": 3600}) as server:
            model_repository.add("m", config_of("hanging"))
            server._repository.poll()
            assert hanging.loading == ["m"]
            model_repository.add("good", config_of("hanging"))
            server._repository.poll()
            assert ("good", "1", "READY", "") in index(server)
            assert hanging.loading == ["m", "good"]

    def test_a_hanging_model_is_loaded_again_when_its_files_change(
        self, serve, model_repository, hanging, number
    ):
        with serve(hanging.plugin, mode="poll", control={"interval_s": 3600}) as server:
            write(model_repository, "m", 1, config=config_of("hanging"))
            server._repository.poll()
            server._repository._models._threads.slow_s = 0.0
            write(model_repository, "m", 7, config='backend: "version_reporter"')
            server._repository.poll()
            assert number(server, "m") == 7

    def test_a_hanging_load_is_canceled_when_its_files_are_removed(
        self, serve, model_repository, hanging
    ):
        with serve(hanging.plugin, mode="poll", control={"interval_s": 3600}) as server:
            model_repository.add("m", config_of("hanging"))
            server._repository.poll()
            model_repository.remove("m")
            server._repository.poll()
            assert [line[2] for line in index(server)] == ["UNAVAILABLE"]
