from __future__ import annotations

import os
import shutil
import threading

import pytest

from tritonpy.api.engine import ModelIndex
from tritonpy.repository.local import LocalRepository
from tritonpy_testing import ModelRepository
from tritonpy_types.errors import StartupError, Unavailable

from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, config_of
from .agent_plugin import AGENTS, AgentPlugin
from .version_backend import error_of, index, write

POLL_FAILED = "failed to load '{}', failed to poll from model repository"


class TestPoll:
    @pytest.fixture
    def polled(self, serve):
        return lambda *plugins, **settings: serve(
            *plugins, mode="poll", control={"interval_s": 3600}, **settings
        )

    def test_added_changed_and_removed_models_and_versions_are_followed(
        self, polled, model_repository, number, event_log
    ):
        write(model_repository, "a", 1)
        with polled() as server:
            write(model_repository, "b", 2)
            server._repository.poll()
            assert number(server, "b") == 2
            write(model_repository, "b", 3)
            server._repository.poll()
            assert number(server, "b") == 3
            write(model_repository, "b", 4, version=2)
            server._repository.poll()
            assert number(server, "b") == 4
            model_repository.remove("b", 2)
            server._repository.poll()
            assert number(server, "b") == 3
            write(model_repository, "b", 3, config="max_batch_size: 8")
            server._repository.poll()
            assert server.engine.model_config("b").max_batch_size == 8
            model_repository.remove("a")
            server._repository.poll()
            assert "no available versions" in error_of(server.engine.model_metadata, "a").message
            event_log.wait_for_handles(("b", 1))

    def test_nothing_happens_while_nothing_changes(self, polled, model_repository, event_log):
        write(model_repository, "m")
        with polled() as server:
            for _ in range(3):
                server._repository.poll()
            assert len(event_log.events("load")) == 1

    def test_a_broken_edit_keeps_the_old_serving_and_is_not_tried_again_before_a_file_changes(
        self, polled, model_repository, number, event_log
    ):
        write(model_repository, "m", 1)
        with polled() as server:
            write(model_repository, "m", "cannot be loaded")
            for _ in range(3):
                server._repository.poll()
            assert len(event_log.events("load")) == 2
            assert number(server, "m") == 1
            write(model_repository, "m", 1, config="not a configuration")
            for _ in range(3):
                server._repository.poll()
            assert number(server, "m") == 1
            write(model_repository, "m", 2, config="")
            server._repository.poll()
            assert number(server, "m") == 2

    @pytest.mark.parametrize("how", ["weights", "configuration", "files"])
    def test_the_index_shows_why_the_last_load_failed_until_one_succeeds(
        self, polled, model_repository, how, monkeypatch
    ):
        def away(*_):
            raise Unavailable("out of reach")

        write(model_repository, "m", 1)
        with polled() as server:
            assert index(server) == [("m", "1", "READY", "")]
            write(model_repository, "m", "cannot be loaded" if how == "weights" else 2)
            if how == "configuration":
                write(model_repository, "m", 2, config="not a configuration")
            with monkeypatch.context() as patch:
                if how == "files":
                    patch.setattr(LocalRepository, "localize", away)
                server._repository.poll()
            ((_, _, state, reason),) = index(server)
            assert state == "READY"
            assert reason.startswith("still serves the previous load; the last load failed: ")
            assert {
                "weights": "no weights",
                "configuration": "config.pbtxt",
                "files": "out of reach",
            }[how] in reason
            write(model_repository, "m", 3, config="")
            server._repository.poll()
            assert index(server) == [("m", "1", "READY", "")]

    def test_the_reason_disappears_when_the_files_are_restored(self, polled, model_repository):
        write(model_repository, "m", 1)
        with polled() as server:
            file = model_repository.path / "m" / "1" / "model.txt"
            was, times = file.read_text(), os.stat(file)
            write(model_repository, "m", "cannot be loaded")
            server._repository.poll()
            assert index(server)[0][3] != ""
            file.write_text(was)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            server._repository.poll()
            assert index(server) == [("m", "1", "READY", "")]

    def test_unavailable_files_are_fetched_by_the_next_poll(
        self, polled, model_repository, number, monkeypatch
    ):
        def away(*_):
            raise Unavailable("out of reach")

        write(model_repository, "m", 1)
        with polled() as server:
            write(model_repository, "m", 2)
            with monkeypatch.context() as patch:
                patch.setattr(LocalRepository, "localize", away)
                server._repository.poll()
                assert number(server, "m") == 1
            server._repository.poll()
            assert number(server, "m") == 2

    def test_a_missing_repository_is_an_error_and_loaded_models_keep_serving(
        self, polled, model_repository, number
    ):
        write(model_repository, "m", 1)
        with polled() as server:
            shutil.rmtree(model_repository.path)
            assert type(error_of(server._repository.poll)) is Unavailable
            assert number(server, "m") == 1

    def test_clients_may_not_load(self, polled, model_repository):
        write(model_repository, "m")
        with polled() as server:
            for call in (server.engine.load_model, server.engine.unload_model):
                error = error_of(call, "m")
                assert type(error) is Unavailable
                assert (
                    error.message
                    == "explicit model load / unload is not allowed if polling is enabled"
                )


class TestStart:
    def test_explicit_mode_loads_the_named_models(self, serve, model_repository):
        for name in ("a", "b", "c"):
            write(model_repository, name)
        with serve(control={"load": ["a", "c"]}) as server:
            assert [line[0] for line in index(server, ready=True)] == ["a", "c"]
            assert server.engine.repository_index()[1] == ModelIndex("b")

    def test_explicit_mode_may_load_everything(self, serve, model_repository):
        for name in ("a", "b"):
            write(model_repository, name)
        with serve(control={"load": ["*"]}) as server:
            assert [line[0] for line in index(server, ready=True)] == ["a", "b"]

    def test_a_missing_named_model_fails_the_start(self, serve, caplog):
        with (
            pytest.raises(StartupError, match="failed to load all models: missing"),
            serve(control={"load": ["missing"]}),
        ):
            pass
        assert (
            "failed to poll model 'missing': model not found in any model repository."
            in caplog.messages
        )

    def test_four_models_load_at_once(self, serve, model_repository):
        barrier, lock, at_once, most = threading.Barrier(4), threading.Lock(), [], []

        class Meeting(gated(Gate())):
            @classmethod
            def load(cls, model):
                with lock:
                    at_once.append(model.name)
                    most.append(len(at_once))
                barrier.wait(10)
                with lock:
                    at_once.remove(model.name)

        for number in range(8):
            model_repository.add(f"m{number}", config_of("meeting"))
        with serve(ToyPlugin({"meeting": Meeting}), mode="none") as server:
            assert len(index(server, ready=True)) == 8
        assert max(most) == 4

    def test_each_model_has_a_line_and_all_a_table(self, serve, model_repository, caplog):
        caplog.set_level("INFO", "tritonpy")
        write(model_repository, "good")
        write(model_repository, "bad", "cannot be loaded")
        with serve(mode="none", exit_on_error=False):
            pass
        (loaded,) = (
            line for line in caplog.messages if line.startswith("successfully loaded 'good'")
        )
        assert loaded.startswith("successfully loaded 'good' in ")
        assert loaded.endswith(("(1 of 2)", "(2 of 2, 1 failed)"))
        assert "failed to load 'bad' version 1: Internal: ValueError: no weights" in caplog.messages
        assert "failed to load 'bad'" in caplog.messages
        (table,) = (record.table for record in caplog.records if hasattr(record, "table"))
        assert [line.split()[1:6:2] for line in table.splitlines()[3:5]] == [
            ["bad", "1", "UNAVAILABLE"], ["good", "1", "READY"],
        ]  # fmt: skip
        assert "ValueError: no weights" in table

    def test_a_failed_load_is_repeated_as_often_as_configured(
        self, serve, model_repository, event_log
    ):
        write(model_repository, "m", "cannot be loaded")
        with serve(mode="none", control={"retries": 2}, exit_on_error=False):
            assert len(event_log.events("load")) == 3


class TestStop:
    def test_loads_are_rejected_after_the_stop(self, serve, model_repository, event_log):
        write(model_repository, "m")
        with serve() as server:
            server._repository.stop(10)
            error = error_of(server._repository.load, "m")
        assert error.message == f"{POLL_FAILED.format('m')}: Server exiting"
        assert event_log.events("load") == []

    def test_a_load_in_progress_is_discarded_when_it_ends(self, serve, model_repository):
        loading, proceed, unloaded = threading.Event(), threading.Event(), threading.Event()

        class Slow(gated(Gate())):
            @classmethod
            def load(cls, model):
                loading.set()
                assert proceed.wait(10)

            @classmethod
            def unload(cls, shared):
                unloaded.set()

        model_repository.add("m", config_of("slow"))
        errors = []
        with serve(ToyPlugin({"slow": Slow})) as server:
            thread = threading.Thread(
                target=lambda: errors.append(error_of(server._repository.load, "m"))
            )
            thread.start()
            assert loading.wait(10)
            assert server._repository.stop(10)
            thread.join()
            proceed.set()
            assert unloaded.wait(10)
        assert errors[0].message == "load failed for model 'm': Server exiting\n"


class TestAgents:
    def test_agents_are_called_for_each_step_of_a_load_and_an_unload(self, serve, model_repository):
        write(model_repository, "m", config='backend: "version_reporter"' + AGENTS % "")
        agents = AgentPlugin()
        with serve(agents) as server:
            server.engine.load_model("m")
            assert agents.calls == [
                (name, action)
                for action in ("LOAD", "LOAD_COMPLETE")
                for name in ("first", "second")
            ]
            agents.calls.clear()
            server.engine.unload_model("m")
            assert server._repository._drainer.wait(10)
            assert agents.calls == [
                (name, action)
                for action in ("UNLOAD", "UNLOAD_COMPLETE")
                for name in ("first", "second")
            ]

    def test_a_reload_completes_before_the_old_one_unloads(self, serve, model_repository):
        write(model_repository, "m", config='backend: "version_reporter"' + AGENTS % "")
        agents = AgentPlugin()
        with serve(agents) as server:
            server.engine.load_model("m")
            agents.calls.clear()
            write(model_repository, "m", 2)
            server.engine.load_model("m")
            assert server._repository._drainer.wait(10)
        assert [action for name, action in agents.calls if name == "first"][:4] == [
            "LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE",
        ]  # fmt: skip

    def test_the_folder_returned_by_agents_is_used(self, serve, model_repository, tmp_path, number):
        write(model_repository, "m", "sealed", config='backend: "version_reporter"' + AGENTS % "")
        unsealed = ModelRepository(tmp_path / "unsealed")
        write(unsealed, "m", 77, version=3)
        with serve(AgentPlugin(unsealed.path / "m")) as server:
            server.engine.load_model("m")
            assert number(server, "m", 3) == 77

    def test_the_configuration_returned_by_agents_is_used(self, serve, model_repository, tmp_path):
        """The configuration used to find the agents may differ from the one they return."""
        write(
            model_repository,
            "m",
            config='backend: "version_reporter" max_batch_size: 7 ' + AGENTS % "",
        )
        unsealed = ModelRepository(tmp_path / "unsealed")
        write(unsealed, "m", config='backend: "version_reporter" max_batch_size: 3 ' + AGENTS % "")
        with serve(AgentPlugin(unsealed.path / "m")) as server:
            server.engine.load_model("m")
            assert server.engine.model_config("m", -1).max_batch_size == 3

    def test_a_configuration_that_names_other_agents_in_the_end_is_refused(
        self, serve, model_repository, tmp_path
    ):
        write(model_repository, "m", config='backend: "version_reporter"' + AGENTS % "")
        unsealed = ModelRepository(tmp_path / "unsealed")
        write(
            unsealed,
            "m",
            config='backend: "version_reporter"'
            + AGENTS % 'parameters { key: "refuse" value: "no" }',
        )
        agents = AgentPlugin(unsealed.path / "m")
        with serve(agents) as server:
            error = error_of(server.engine.load_model, "m")
        assert "names other repository agents" in error.message
        assert agents.calls[-1] == ("second", "LOAD_FAIL")

    @pytest.mark.parametrize("text", ["cannot be loaded", "cannot be completed"])
    def test_agents_are_called_for_a_failed_load(self, serve, model_repository, text):
        write(model_repository, "m", text, config='backend: "version_reporter"' + AGENTS % "")
        agents = AgentPlugin()
        with serve(agents) as server:
            error_of(server.engine.load_model, "m")
        assert agents.calls == [
            (name, action) for action in ("LOAD", "LOAD_FAIL") for name in ("first", "second")
        ]

    def test_an_agent_that_raises_fails_the_load_with_its_text(self, serve, model_repository):
        refusal = 'parameters { key: "refuse" value: "bad seal" }'
        write(model_repository, "m", config='backend: "version_reporter"' + AGENTS % refusal)
        agents = AgentPlugin()
        with serve(agents) as server:
            error = error_of(server.engine.load_model, "m")
        assert error.message == f"{POLL_FAILED.format('m')}: ValueError: bad seal"
        assert agents.calls == [
            (name, action) for action in ("LOAD", "LOAD_FAIL") for name in ("first", "second")
        ]

    def test_a_missing_agent_fails_the_load(self, serve, model_repository):
        write(
            model_repository,
            "m",
            config='backend: "version_reporter" model_repository_agents { agents { name: "missing" } }',
        )
        with serve() as server:
            message = error_of(server.engine.load_model, "m").message
        assert message.startswith(POLL_FAILED.format("m"))
        assert "no plugin provides repository agent 'missing'" in message
