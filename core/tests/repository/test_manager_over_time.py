from __future__ import annotations

import os
import shutil
import threading

import pytest

from tritonpy.api.engine import ModelIndex
from tritonpy.errors import StartupError, Unavailable
from tritonpy.repository.local import LocalRepository
from tritonpy.testing import ModelRepository

from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, config_of
from .agent_plugin import AGENTS, AgentPlugin
from .teller import error_of, index, write

POLL_FAILED = "failed to load '{}', failed to poll from model repository"


class TestPoll:
    @pytest.fixture
    def polled(self, serve):
        return lambda *plugins, **settings: serve(*plugins, mode="poll", control={"interval_s": 3600}, **settings)

    def test_models_and_versions_come_change_and_go(self, polled, model_repository, number, book):
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
            book.wait_for_open(("b", 1))

    def test_nothing_happens_while_nothing_changes(self, polled, model_repository, book):
        write(model_repository, "m")
        with polled() as server:
            for _ in range(3):
                server._repository.poll()
            assert len(book.events("load")) == 1

    def test_a_broken_edit_keeps_the_old_serving_and_is_not_tried_again_before_a_file_changes(
        self, polled, model_repository, number, book
    ):
        write(model_repository, "m", 1)
        with polled() as server:
            write(model_repository, "m", "cannot be loaded")
            for _ in range(3):
                server._repository.poll()
            assert len(book.events("load")) == 2
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
            assert reason.startswith("serves as it was loaded before, the last load failed: ")
            assert {"weights": "no weights", "configuration": "config.pbtxt", "files": "out of reach"}[how] in reason
            write(model_repository, "m", 3, config="")
            server._repository.poll()
            assert index(server) == [("m", "1", "READY", "")]

    def test_the_index_shows_it_no_more_when_the_files_are_as_they_were(self, polled, model_repository):
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

    def test_files_that_could_not_be_had_are_asked_for_by_the_next_poll(
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

    def test_a_repository_that_vanishes_is_an_error_and_what_is_loaded_serves(self, polled, model_repository, number):
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
                assert error.message == "explicit model load / unload is not allowed if polling is enabled"


class TestStart:
    def test_explicit_mode_loads_what_is_named(self, serve, model_repository):
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

    def test_a_named_model_that_is_not_there_fails_the_start_and_says_so(self, serve, caplog):
        with (
            pytest.raises(StartupError, match="failed to load all models: nobody"),
            serve(control={"load": ["nobody"]}),
        ):
            pass
        assert "failed to poll model 'nobody': model not found in any model repository." in caplog.messages

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
        (loaded,) = (line for line in caplog.messages if line.startswith("successfully loaded 'good'"))
        assert loaded.startswith("successfully loaded 'good' in ")
        assert loaded.endswith(("(1 of 2)", "(2 of 2, 1 failed)"))
        assert "failed to load 'bad' version 1: Internal: ValueError: no weights" in caplog.messages
        assert "failed to load 'bad'" in caplog.messages
        (table,) = (record.table for record in caplog.records if hasattr(record, "table"))
        assert [line.split()[1:6:2] for line in table.splitlines()[3:5]] == [
            ["bad", "1", "UNAVAILABLE"], ["good", "1", "READY"],
        ]  # fmt: skip
        assert "ValueError: no weights" in table

    def test_a_failed_load_is_repeated_as_often_as_configured(self, serve, model_repository, book):
        write(model_repository, "m", "cannot be loaded")
        with serve(mode="none", control={"retries": 2}, exit_on_error=False):
            assert len(book.events("load")) == 3


class TestStop:
    def test_nothing_loads_any_more(self, serve, model_repository, book):
        write(model_repository, "m")
        with serve() as server:
            server._repository.stop(10)
            error = error_of(server._repository.load, "m")
        assert error.message == f"{POLL_FAILED.format('m')}: Server exiting"
        assert book.events("load") == []

    def test_what_is_loading_then_is_dropped_when_it_is_done(self, serve, model_repository):
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
            thread = threading.Thread(target=lambda: errors.append(error_of(server._repository.load, "m")))
            thread.start()
            assert loading.wait(10)
            assert server._repository.stop(10)
            thread.join()
            proceed.set()
            assert unloaded.wait(10)
        assert errors[0].message == "load failed for model 'm': Server exiting\n"


class TestAgents:
    def test_they_hear_of_every_step_of_a_load_and_an_unload(self, serve, model_repository):
        write(model_repository, "m", config='backend: "teller"' + AGENTS % "")
        agents = AgentPlugin()
        with serve(agents) as server:
            server.engine.load_model("m")
            assert agents.told == [
                (name, action) for action in ("LOAD", "LOAD_COMPLETE") for name in ("first", "second")
            ]
            agents.told.clear()
            server.engine.unload_model("m")
            assert server._repository._retiring.wait(10)
            assert agents.told == [
                (name, action) for action in ("UNLOAD", "UNLOAD_COMPLETE") for name in ("first", "second")
            ]

    def test_a_reload_completes_before_the_old_one_unloads(self, serve, model_repository):
        write(model_repository, "m", config='backend: "teller"' + AGENTS % "")
        agents = AgentPlugin()
        with serve(agents) as server:
            server.engine.load_model("m")
            agents.told.clear()
            write(model_repository, "m", 2)
            server.engine.load_model("m")
            assert server._repository._retiring.wait(10)
        assert [action for name, action in agents.told if name == "first"][:4] == [
            "LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE",
        ]  # fmt: skip

    def test_the_folder_that_they_leave_is_the_model_s(self, serve, model_repository, tmp_path, number):
        write(model_repository, "m", "sealed", config='backend: "teller"' + AGENTS % "")
        unsealed = ModelRepository(tmp_path / "unsealed")
        write(unsealed, "m", 77, version=3)
        with serve(AgentPlugin(unsealed.path / "m")) as server:
            server.engine.load_model("m")
            assert number(server, "m", 3) == 77

    def test_the_configuration_that_they_leave_is_the_model_s(self, serve, model_repository, tmp_path):
        """What was read to find the agents may have been changed since, or before: they saw what they leave, and nothing else."""
        write(model_repository, "m", config='backend: "teller" max_batch_size: 7 ' + AGENTS % "")
        unsealed = ModelRepository(tmp_path / "unsealed")
        write(unsealed, "m", config='backend: "teller" max_batch_size: 3 ' + AGENTS % "")
        with serve(AgentPlugin(unsealed.path / "m")) as server:
            server.engine.load_model("m")
            assert server.engine.model_config("m", -1).max_batch_size == 3

    def test_a_configuration_that_names_other_agents_in_the_end_is_refused(self, serve, model_repository, tmp_path):
        write(model_repository, "m", config='backend: "teller"' + AGENTS % "")
        unsealed = ModelRepository(tmp_path / "unsealed")
        write(unsealed, "m", config='backend: "teller"' + AGENTS % 'parameters { key: "refuse" value: "no" }')
        agents = AgentPlugin(unsealed.path / "m")
        with serve(agents) as server:
            error = error_of(server.engine.load_model, "m")
        assert "names other repository agents" in error.message
        assert agents.told[-1] == ("second", "LOAD_FAIL")

    @pytest.mark.parametrize("text", ["cannot be loaded", "cannot be completed"])
    def test_a_load_that_fails_is_told(self, serve, model_repository, text):
        write(model_repository, "m", text, config='backend: "teller"' + AGENTS % "")
        agents = AgentPlugin()
        with serve(agents) as server:
            error_of(server.engine.load_model, "m")
        assert agents.told == [(name, action) for action in ("LOAD", "LOAD_FAIL") for name in ("first", "second")]

    def test_one_that_refuses_fails_the_load_with_its_text(self, serve, model_repository):
        refusal = 'parameters { key: "refuse" value: "bad seal" }'
        write(model_repository, "m", config='backend: "teller"' + AGENTS % refusal)
        agents = AgentPlugin()
        with serve(agents) as server:
            error = error_of(server.engine.load_model, "m")
        assert error.message == f"{POLL_FAILED.format('m')}: ValueError: bad seal"
        assert agents.told == [(name, action) for action in ("LOAD", "LOAD_FAIL") for name in ("first", "second")]

    def test_one_that_is_not_installed_fails_the_load(self, serve, model_repository):
        write(model_repository, "m", config='backend: "teller" model_repository_agents { agents { name: "nobody" } }')
        with serve() as server:
            message = error_of(server.engine.load_model, "m").message
        assert message.startswith(POLL_FAILED.format("m"))
        assert "no plugin provides repository agent 'nobody'" in message
