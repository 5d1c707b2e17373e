from __future__ import annotations

import shutil
import threading

import pytest

from tritonpy.api.engine import ModelIndex
from tritonpy.errors import Internal, InvalidArgument, NotFound, StartupError, TritonError, Unavailable
from tritonpy.repository.overrides import write_override
from tritonpy.testing import ModelRepository

from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, ask, config_of, numbers, request_of
from .agent_plugin import AGENTS, AgentPlugin
from .teller import write

POLL_FAILED = "failed to load '{}', failed to poll from model repository"


@pytest.fixture
def number(witness):
    """Ask a model which file it was loaded from."""

    def get(server, model, version=-1):
        (answers,) = witness.wait(ask(server.engine, witness, model, [0], model_version=version))
        ((value,),) = numbers(answers)
        return value

    return get


def index(server, ready=False):
    return [(line.name, line.version, line.state, line.reason) for line in server.engine.repository_index(ready)]


def error_of(call, *arguments):
    with pytest.raises(TritonError) as failed:
        call(*arguments)
    return failed.value


class TestLoad:
    def test_an_unknown_model(self, serve):
        with serve() as server:
            error = error_of(server.engine.load_model, "nobody")
        assert type(error) is Internal
        assert error.message == POLL_FAILED.format("nobody")

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("", "Model name cannot be empty. Please enter a valid name to deploy."),
            ("../m", "invalid model name '../m', model name must not contain path traversal characters"),
            ("..", "invalid model name '..', model name must not contain path traversal characters"),
            ("a\\b", "invalid model name 'a\\b', model name must not contain path traversal characters"),
        ],
    )
    def test_a_name_that_is_none(self, serve, name, text):
        with serve() as server:
            error = error_of(server.engine.load_model, name)
        assert (type(error), error.message) == (InvalidArgument, text)

    def test_no_version_to_load(self, serve, model_repository):
        write(model_repository, "m", config='backend: "teller" version_policy { specific { versions: 7 } }')
        with serve() as server:
            error = error_of(server.engine.load_model, "m")
            assert error_of(server.engine.model_metadata, "m").message == (
                "Request for unknown model: 'm' has no available versions"
            )
        assert type(error) is InvalidArgument
        assert error.message == (
            "load failed for model 'm': at least one version must be available under the version policy of model 'm'\n"
        )

    def test_a_folder_without_versions(self, serve, model_repository):
        model_repository.add("m", config='backend: "teller"', versions={})
        with serve() as server:
            assert "at least one version" in error_of(server.engine.load_model, "m").message

    def test_a_backend_that_raises(self, serve, model_repository):
        for version, text in ((1, ""), (2, "cannot be loaded")):
            write(model_repository, "m", text, version, 'backend: "teller" version_policy { all {} }')
        with serve() as server:
            error = error_of(server.engine.load_model, "m")
            reason = "Internal: ValueError: no weights"
            assert index(server) == [("m", "1", "UNAVAILABLE", "unloaded"), ("m", "2", "UNAVAILABLE", reason)]
        assert type(error) is InvalidArgument
        assert error.message == f"load failed for model 'm': version 2 is at UNAVAILABLE state: {reason};\n"

    def test_a_folder_called_otherwise_than_its_model(self, serve, model_repository):
        write(model_repository, "m", config='name: "else" backend: "teller"')
        with serve() as server:
            message = error_of(server.engine.load_model, "m").message
        assert "unexpected directory name 'm' for model 'else', directory name must equal model name" in message

    def test_a_model_that_did_not_change_is_left_alone(self, serve, model_repository, book):
        write(model_repository, "m")
        with serve() as server:
            server.engine.load_model("m")
            server.engine.load_model("m")
            assert len(book.events("load")) == 1

    def test_a_failed_load_is_tried_again_when_asked(self, serve, model_repository, number):
        write(model_repository, "m", "cannot be loaded")
        with serve() as server:
            error_of(server.engine.load_model, "m")
            write(model_repository, "m", 5)
            server.engine.load_model("m")
            assert number(server, "m") == 5
            assert index(server) == [("m", "1", "READY", "")]

    def test_loads_of_one_model_at_the_same_time_load_it_once(self, serve, model_repository, book):
        write(model_repository, "m")
        with serve() as server:
            threads = [threading.Thread(target=server.engine.load_model, args=("m",)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(book.events("load")) == 1
            assert index(server) == [("m", "1", "READY", "")]


class TestSeveralRepositories:
    @pytest.fixture
    def other(self, tmp_path):
        return ModelRepository(tmp_path / "other")

    @pytest.fixture
    def both(self, model_repository, other):
        return {"repositories": [{"url": str(model_repository.path)}, {"url": other.path.as_uri()}]}

    def test_models_of_all_are_served(self, serve, model_repository, other, both, number):
        write(model_repository, "a", 1)
        write(other, "b", 2)
        with serve(mode="none", **both) as server:
            assert (number(server, "a"), number(server, "b")) == (1, 2)

    def test_a_model_in_two_of_them_is_refused_and_listed(self, serve, model_repository, other, both):
        for repository in (model_repository, other):
            write(repository, "m")
        with serve(**both) as server:
            why = "model appears in two or more repositories"
            assert error_of(server.engine.load_model, "m").message == f"{POLL_FAILED.format('m')}: {why}"
            assert index(server) == [("m", "", "UNAVAILABLE", why)]
            assert index(server, ready=True) == []

    def test_a_model_that_appears_a_second_time_is_unloaded_by_a_poll(self, serve, model_repository, other, both, caplog):
        caplog.set_level("INFO", "tritonpy")
        write(model_repository, "m")
        with serve(mode="poll", **both) as server:
            write(other, "m")
            server._repository.poll()
            assert error_of(server.engine.model_metadata, "m").message.endswith("has no available versions")
        assert "'m': model appears in two or more repositories" in caplog.messages


class TestOverride:
    CONFIG = '{"backend": "teller", "version_policy": {"specific": {"versions": [1]}}}'

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        folder = tmp_path / "temporary"
        folder.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        return folder

    def test_a_configuration_replaces_the_one_on_disk_until_the_next_plain_load(self, serve, model_repository, number):
        write(model_repository, "m", 10, version=1)
        write(model_repository, "m", 20, version=2)
        with serve() as server:
            server.engine.load_model("m")
            assert number(server, "m") == 20
            server.engine.load_model("m", self.CONFIG)
            assert number(server, "m") == 10
            server.engine.load_model("m")
            assert number(server, "m") == 20

    @pytest.mark.parametrize("config", ['{"backend": 3', '{"backendx": "teller"}', '{"backend": "teller", "max_batch_size": "x"}', "[]"])
    def test_a_broken_one_says_where_and_what_serves_goes_on(self, serve, model_repository, number, config):
        write(model_repository, "m", 10)
        with serve() as server:
            server.engine.load_model("m")
            error = error_of(server.engine.load_model, "m", config)
            assert number(server, "m") == 10
        assert type(error) is Internal
        assert error.message.startswith(POLL_FAILED.format("m") + ": the 'config' parameter of the load request ")

    def test_files_replace_the_folder_until_they_are_unloaded(self, serve, model_repository, number, folder, book):
        write(model_repository, "m", 10)
        with serve() as server:
            server.engine.load_model("m", "{}", {"file:3/model.txt": b"30"})
            assert number(server, "m") == 30
            assert [line[:3] for line in index(server)] == [("m", "3", "READY")]
            assert len(list(folder.iterdir())) == 1
            server.engine.load_model("m")
            assert number(server, "m") == 10
            book.wait_for_open(("m", 1))
        assert list(folder.iterdir()) == []

    def test_files_make_a_model_that_is_on_no_disk(self, serve, number, folder):
        with serve() as server:
            server.engine.load_model("m", "{}", {"file:1/model.txt": b"30"})
            assert number(server, "m") == 30
            assert error_of(server.engine.load_model, "m").message == POLL_FAILED.format("m")
            assert number(server, "m") == 30
            assert [line[:3] for line in index(server)] == [("m", "1", "READY")]
        assert list(folder.iterdir()) == []

    def test_files_need_a_configuration(self, serve):
        with serve() as server:
            error = error_of(server.engine.load_model, "m", None, {"file:1/model.txt": b""})
        assert error.message == "Load parameter 'config' must be specified for model file override"

    @pytest.mark.parametrize("files", [{"file:../1/x": b""}, {"file:1/model.txt": b"cannot be loaded"}, {"file:1/x\0": b""}, {"file:x/model": b""}])
    def test_files_that_do_not_load_leave_nothing(self, serve, files, folder):
        with serve() as server:
            error_of(server.engine.load_model, "m", "{}", files)
        assert list(folder.iterdir()) == []

    def test_write_override_is_what_makes_the_folder(self, folder):
        with write_override("m", {"file:1/x": b""}):
            assert [path.name.startswith("tritonpy-m-") for path in folder.iterdir()] == [True]


class TestUnload:
    def test_an_unloaded_model_is_known_and_gone(self, serve, model_repository, book):
        write(model_repository, "m")
        with serve() as server:
            server.engine.load_model("m")
            server.engine.unload_model("m")
            error = error_of(server.engine.model_metadata, "m")
            book.wait_for_open()
            assert server._repository._retiring.wait(10)
            assert index(server) == [("m", "1", "UNAVAILABLE", "unloaded")]
            assert index(server, ready=True) == []
            assert server.engine.is_ready()
        assert (type(error), error.message) == (NotFound, "Request for unknown model: 'm' has no available versions")

    def test_an_unknown_model_is_no_error_and_leaves_no_trace(self, serve):
        with serve() as server:
            server.engine.unload_model("nobody")
            assert server._repository._locks == {}
            assert index(server) == []

    def test_what_is_in_flight_finishes_and_the_model_can_be_loaded_meanwhile(self, serve, model_repository, witness):
        gate = Gate()
        model_repository.add("m", config_of("gated"))
        with serve(ToyPlugin({"gated": gated(gate)})) as server:
            server.engine.load_model("m")
            request = ask(server.engine, witness, "m", [4])
            gate.wait_for(1)
            server.engine.unload_model("m")
            assert index(server) == [("m", "1", "UNLOADING", "")]
            server.engine.load_model("m")
            assert index(server) == [("m", "1", "READY", "")]
            gate.open()
            (answers,) = witness.wait(request)
            assert numbers(answers) == [[8]]
            assert server._repository._retiring.wait(10)
            assert index(server) == [("m", "1", "READY", "")]


class TestReload:
    ROUNDS = 30

    def test_nobody_notices_it_but_by_the_answer(self, serve, model_repository, witness, number):
        write(model_repository, "m", 0)
        answered, stop = [], threading.Event()

        def ask_on(server):
            while not stop.is_set():
                request = ask(server.engine, witness, "m", [0])
                (answers,) = witness.wait(request)
                answered.append((request, numbers(answers)))

        with serve() as server:
            server.engine.load_model("m")
            threads = [threading.Thread(target=ask_on, args=(server,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                for round_ in range(1, self.ROUNDS + 1):
                    write(model_repository, "m", round_)
                    server.engine.load_model("m")
                    assert [number(server, "m") for _ in range(3)] == [round_] * 3
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            assert server._repository._retiring.wait(10)
        assert len(answered) >= 4
        assert {len(values) for _, values in answered} == {1}
        witness.check(*(request for request, _ in answered))

    def test_one_that_fails_leaves_the_old_version_serving_and_says_why(self, serve, model_repository, number, caplog):
        write(model_repository, "m", 1)
        with serve() as server:
            server.engine.load_model("m")
            write(model_repository, "m", "cannot be loaded")
            error = error_of(server.engine.load_model, "m")
            assert "no weights" in error.message
            assert error.message.rstrip() in caplog.text
            assert number(server, "m") == 1
            assert index(server) == [("m", "1", "READY", "")]

    def test_a_new_version_takes_over_and_the_old_one_is_unloaded(self, serve, model_repository, number, book):
        write(model_repository, "m", 1)
        with serve() as server:
            server.engine.load_model("m")
            write(model_repository, "m", 2, version=2)
            server.engine.load_model("m")
            assert number(server, "m") == 2
            book.wait_for_open(("m", 2))
            assert server._repository._retiring.wait(10)
            assert index(server) == [("m", "1", "UNAVAILABLE", "unloaded"), ("m", "2", "READY", "")]


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
        with pytest.raises(StartupError, match="failed to load all models: nobody"), serve(control={"load": ["nobody"]}):
            pass
        assert POLL_FAILED.format("nobody") in caplog.text

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
        (loaded,) = (line for line in caplog.messages if line.startswith("loaded "))
        assert loaded.startswith("loaded 'good' in ")
        assert loaded.endswith(("(1 of 2)", "(2 of 2, 1 failed)"))
        assert "load failed for model 'bad': version 1 is at UNAVAILABLE state: Internal: ValueError: no weights;" in caplog.messages
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
        loading, proceed, unloaded = threading.Event(), threading.Event(), []

        class Slow(gated(Gate())):
            @classmethod
            def load(cls, model):
                loading.set()
                assert proceed.wait(10)

            @classmethod
            def unload(cls, shared):
                unloaded.append(True)

        model_repository.add("m", config_of("slow"))
        errors = []
        with serve(ToyPlugin({"slow": Slow})) as server:
            thread = threading.Thread(target=lambda: errors.append(error_of(server._repository.load, "m")))
            thread.start()
            assert loading.wait(10)
            assert server._repository.stop(10)
            proceed.set()
            thread.join()
        assert errors[0].message == "load failed for model 'm': Server exiting\n"
        assert unloaded == [True]


class TestAgents:
    def test_they_hear_of_every_step_of_a_load_and_an_unload(self, serve, model_repository):
        write(model_repository, "m", config='backend: "teller"' + AGENTS % "")
        agents = AgentPlugin()
        with serve(agents) as server:
            server.engine.load_model("m")
            assert agents.told == [(name, action) for action in ("LOAD", "LOAD_COMPLETE") for name in ("first", "second")]
            agents.told.clear()
            server.engine.unload_model("m")
            assert server._repository._retiring.wait(10)
            assert agents.told == [(name, action) for action in ("UNLOAD", "UNLOAD_COMPLETE") for name in ("first", "second")]

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


def test_a_request_that_comes_while_its_version_is_replaced_goes_to_the_new_one(serve, model_repository, witness, number):
    write(model_repository, "m", 1)
    with serve() as server:
        server.engine.load_model("m")
        old = server.engine._table.find("m")
        write(model_repository, "m", 2)
        find = server.engine._table.find
        handed_over = []

        def find_late(name, version):
            if not handed_over:
                handed_over.append(True)
                server.engine.load_model("m")
                assert server._repository._retiring.wait(10)
                return old
            return find(name, version)

        server.engine._table.find = find_late
        request = request_of(witness, "m", [0])
        server.engine.infer(request)
        (answers,) = witness.wait(request)
        assert numbers(answers) == [[2]]
