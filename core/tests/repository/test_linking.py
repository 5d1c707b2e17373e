from __future__ import annotations

import pytest

from tritonpy import install_command
from tritonpy.errors import InvalidArgument, NotFound, StartupError
from tritonpy.hookspecs import hookimpl

from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, config_of, numbers, request_of
from .agent_plugin import AGENTS, AgentPlugin
from .standing import PLUGIN, steps, write_ensemble
from .teller import error_of, index, write

NO_VERSION = "Request for unknown model: 'e' has no available versions"
FLOATS = "input { name: 'IN' data_type: TYPE_FP32 dims: 1 } output { name: 'OUT' data_type: TYPE_FP32 dims: 1 }"


@pytest.fixture
def ensembles(serve, model_repository):
    """Serve m (answers 1) and n (answers 2), e over m and n, and f over e."""
    write(model_repository, "m", 1)
    write(model_repository, "n", 2)
    write_ensemble(model_repository, "e", "m", "n")
    write_ensemble(model_repository, "f", "e")
    return lambda *plugins, **settings: serve(PLUGIN, *plugins, **settings)


def states(server):
    return {name: state or "-" for name, _, state, _ in index(server)}


def unloaded(server, *names):
    assert server._repository._retiring.wait(10)
    return {(name, state, reason) for name, _, state, reason in index(server) if name in names}


class TestLoad:
    @pytest.mark.parametrize("mode", ["none", "poll"])
    def test_at_start_members_come_first_whatever_they_are_called(self, ensembles, number, mode):
        with ensembles(mode=mode) as server:
            assert (number(server, "e"), number(server, "f")) == (2, 2)

    def test_the_index_shows_why_an_ensemble_that_a_poll_found_changed_serves_as_before(
        self, ensembles, model_repository
    ):
        with ensembles(mode="poll", control={"interval_s": 3600}) as server:
            write_ensemble(model_repository, "e", "m", "nobody")
            server._repository.poll()
            ((_, _, state, reason),) = [line for line in index(server) if line[0] == "e"]
            assert state == "READY"
            assert reason.startswith("serves as it was loaded before, the last load failed: load failed for model 'e'")

    def test_an_ensemble_brings_what_it_stands_on(self, ensembles, number):
        with ensembles() as server:
            server.engine.load_model("f")
            assert number(server, "f") == 2
            assert states(server) == dict.fromkeys("efmn", "READY")

    def test_those_named_at_the_start_bring_it_too(self, ensembles, number):
        with ensembles(control={"load": ["f"]}) as server:
            assert number(server, "f") == 2

    def test_it_needs_no_backend_and_its_loads_are_told(self, ensembles):
        told = []

        class Hooks:
            @hookimpl
            def tritonpy_model_loaded(self, name, version):
                told.append(("loaded", name, version))

            @hookimpl
            def tritonpy_model_unloaded(self, name, version):
                told.append(("unloaded", name, version))

        with ensembles(Hooks()) as server:
            server.engine.load_model("e")
            assert ("loaded", "e", 1) in told
            server.engine.unload_model("e")
            assert server._repository._retiring.wait(10)
            assert told[-1] == ("unloaded", "e", 1)

    def test_a_changed_member_is_loaded_anew_with_it(self, ensembles, model_repository, number):
        with ensembles() as server:
            server.engine.load_model("e")
            write(model_repository, "n", 3)
            server.engine.load_model("e")
            assert number(server, "e") == 3

    def test_the_server_does_not_start_with_one_that_cannot_serve(self, ensembles, model_repository, caplog):
        write_ensemble(model_repository, "g", "nobody")
        with pytest.raises(StartupError, match="failed to load all models: g"), ensembles(mode="none"):
            pass
        text = "ensemble g contains models that are not available or ambiguous: nobody"
        assert text in caplog.messages

    def test_without_the_plugin_the_error_says_what_to_install(self, serve, model_repository):
        write(model_repository, "m", 1)
        write_ensemble(model_repository, "e", "m")
        with serve() as server:
            assert install_command("tritonpy-ensemble") in error_of(server.engine.load_model, "e").message

    def test_a_configuration_that_is_wrong_by_itself_is_refused_at_once(self, ensembles, model_repository, book):
        write_ensemble(model_repository, "g")
        with ensembles() as server:
            error = error_of(server.engine.load_model, "g")
        assert error.message.startswith("failed to load 'g', failed to poll from model repository: ")
        assert error.message.endswith("must specify 'step' for ensemble 'g'")


class TestMembers:
    def test_a_member_that_goes_takes_the_ensembles_along_and_brings_them_back(self, ensembles, number):
        with ensembles() as server:
            server.engine.load_model("f")
            server.engine.unload_model("m")
            assert unloaded(server, "m", "e", "f") == {(name, "UNAVAILABLE", "unloaded") for name in "mef"}
            error = error_of(number, server, "e")
            assert (type(error), error.message) == (NotFound, NO_VERSION)
            assert server.engine.is_ready()
            server.engine.load_model("m")
            assert (number(server, "e"), number(server, "f")) == (2, 2)

    def test_an_ensemble_waits_for_a_member_that_comes_later(self, ensembles, model_repository, number):
        write_ensemble(model_repository, "g", "late")
        with ensembles() as server:
            error = error_of(server.engine.load_model, "g")
            text = "ensemble g contains models that are not available or ambiguous: late"
            assert (type(error), error.message) == (InvalidArgument, f"load failed for model 'g': {text}\n")
            assert ("g", "", "UNAVAILABLE", text) in index(server)
            write(model_repository, "late", 5)
            server.engine.load_model("late")
            assert number(server, "g") == 5

    def test_one_that_nobody_wants_any_more_does_not_come(self, ensembles, model_repository):
        write_ensemble(model_repository, "g", "late")
        with ensembles() as server:
            error_of(server.engine.load_model, "g")
            server.engine.unload_model("g")
            write(model_repository, "late", 5)
            server.engine.load_model("late")
            assert states(server)["g"] == "-"
            assert server.engine.is_ready()

    def test_a_member_that_fails(self, ensembles, model_repository, number):
        write(model_repository, "n", "cannot be loaded")
        with ensembles() as server:
            failed = "version 1 is at UNAVAILABLE state: Internal: ValueError: no weights;"
            text = f"ensemble 'e' depends on 'n' which has no loaded version. Model 'n' loading failed with error: {failed}"
            assert error_of(server.engine.load_model, "e").message == f"load failed for model 'e': {text}\n"
            higher = f"ensemble 'f' depends on 'e' which is not valid. Model 'e' failed with error: {text}"
            assert error_of(server.engine.load_model, "f").message == f"load failed for model 'f': {higher}\n"
            write(model_repository, "n", 4)
            server.engine.load_model("n")
            assert number(server, "f") == 4

    def test_a_member_that_fails_to_load_anew_changes_nothing(self, ensembles, model_repository, number):
        with ensembles() as server:
            server.engine.load_model("e")
            write(model_repository, "n", "cannot be loaded")
            error_of(server.engine.load_model, "n")
            assert number(server, "e") == 2

    def test_a_member_that_does_not_fit_any_more_takes_it_away(self, ensembles, model_repository, number):
        with ensembles() as server:
            server.engine.load_model("f")
            write(model_repository, "m", 1, config=f'backend: "teller" {FLOATS}')
            server.engine.load_model("m")
            assert [error_of(number, server, name).message.endswith("no available versions") for name in "ef"] == [
                True,
                True,
            ]
            message = error_of(server.engine.load_model, "e").message
            assert 'step[0].input_map["IN"]: in ensemble e, ensemble tensor IN: inconsistent data type' in message
            write(model_repository, "m", 1, config="")
            server.engine.load_model("m")
            assert number(server, "f") == 2

    def test_a_version_of_a_member_that_goes(self, ensembles, model_repository, number):
        write(model_repository, "m", 1, version=2, config="version_policy { all {} }")
        write_ensemble(model_repository, "g", "m", version=1)
        with ensembles() as server:
            server.engine.load_model("g")
            assert number(server, "g") == 1
            model_repository.remove("m", 1)
            server.engine.load_model("m")
            text = "ensemble 'g' depends on 'm' whose required version 1 is not loaded."
            assert error_of(server.engine.load_model, "g").message == f"load failed for model 'g': {text}\n"

    def test_an_ensemble_is_built_anew_with_its_member_alone(self, ensembles, model_repository):
        with ensembles() as server:
            server.engine.load_model("f")
            server.engine.load_model("m")
            table = server._repository._table
            before = {name: table.find(name) for name in "efmn"}
            write(model_repository, "n", 3)
            server.engine.load_model("n")
            assert {name for name in "efmn" if table.find(name) is not before[name]} == {"e", "f", "n"}

    def test_decoupled_members_make_it_decoupled(self, ensembles, model_repository):
        write(model_repository, "m", 1, config="model_transaction_policy { decoupled: true }")
        with ensembles() as server:
            server.engine.load_model("f")
            assert all(server.engine.model_config(name).model_transaction_policy.decoupled for name in "ef")

    def test_outputs_without_labels_have_those_of_the_step_that_writes_them(self, ensembles, model_repository):
        folder = model_repository.add(
            "n",
            "backend: 'teller' input { name: 'IN' data_type: TYPE_INT32 dims: 1 } "
            "output { name: 'OUT' data_type: TYPE_INT32 dims: 1 label_filename: 'labels.txt' }",
            versions={1: {"model.txt": "2"}},
        )
        (folder / "labels.txt").write_text("zero\none\n")
        with ensembles() as server:
            server.engine.load_model("f")
            assert server._repository._table.find("f").labels == {"OUT": ["zero", "one"]}


class TestChanges:
    def test_a_broken_change_leaves_the_old_serving(self, ensembles, model_repository, number):
        with ensembles() as server:
            server.engine.load_model("e")
            write_ensemble(model_repository, "e", "nobody")
            text = "ensemble e contains models that are not available or ambiguous: nobody"
            assert error_of(server.engine.load_model, "e").message == f"load failed for model 'e': {text}\n"
            assert number(server, "e") == 2
            server.engine.unload_model("n")
            server.engine.load_model("n")
            assert number(server, "e") == 2
            write_ensemble(model_repository, "e", "m")
            server.engine.load_model("e")
            assert number(server, "e") == 1

    def test_a_circle_is_refused_and_what_served_serves_on(self, ensembles, model_repository, number):
        with ensembles() as server:
            server.engine.load_model("f")
            write_ensemble(model_repository, "e", "f")
            text = "circular dependency between ensembles: e -> ... -> f -> e"
            assert error_of(server.engine.load_model, "e").message == f"load failed for model 'e': {text}\n"
            assert (number(server, "e"), number(server, "f")) == (2, 2)

    def test_an_ensemble_becomes_a_model_and_a_model_an_ensemble(self, ensembles, model_repository, number):
        with ensembles() as server:
            server.engine.load_model("f")
            write(model_repository, "e", 7, config='backend: "teller"')
            server.engine.load_model("e")
            assert (number(server, "e"), number(server, "f")) == (7, 7)
            write_ensemble(model_repository, "e", "m")
            server.engine.load_model("e")
            assert (number(server, "e"), number(server, "f")) == (1, 1)

    def test_a_clients_configuration_of_a_member_stays(self, ensembles, number):
        with ensembles() as server:
            server.engine.load_model("m", '{"backend": "teller", "parameters": {"a": {"string_value": "b"}}}')
            server.engine.load_model("e")
            assert server.engine.model_config("m").parameters["a"].string_value == "b"

    def test_agents_are_told_once_however_often_it_is_built(self, serve, model_repository):
        write(model_repository, "m", 1)
        write(model_repository, "e", config=steps("m") + AGENTS % "")
        plugin = AgentPlugin()
        with serve(PLUGIN, plugin) as server:
            server.engine.load_model("e")
            for number in (2, 3):
                write(model_repository, "m", number)
                server.engine.load_model("m")
            server.engine.unload_model("m")
            assert [what for who, what in plugin.told if who == "first"] == ["LOAD", "LOAD_COMPLETE"]
            server.engine.unload_model("e")
            assert server._repository._retiring.wait(10)
        assert [what for who, what in plugin.told if who == "first"] == [
            "LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE"
        ]  # fmt: skip

    def test_agents_of_one_that_never_served_are_told_that_it_failed(self, serve, model_repository):
        write(model_repository, "e", config=steps("nobody") + AGENTS % "")
        plugin = AgentPlugin()
        with serve(PLUGIN, plugin) as server:
            error_of(server.engine.load_model, "e")
            assert [what for who, what in plugin.told if who == "first"] == ["LOAD"]
            server.engine.unload_model("e")
        assert [what for who, what in plugin.told if who == "first"] == ["LOAD", "LOAD_FAIL"]


class TestUnload:
    def test_members_stay_unless_they_are_to_go_along(self, ensembles):
        with ensembles() as server:
            server.engine.load_model("f")
            server.engine.unload_model("f")
            assert states(server)["m"] == "READY"
            server.engine.load_model("f")
            server.engine.unload_model("f", unload_dependents=True)
            assert unloaded(server, *"fenm") == {(name, "UNAVAILABLE", "unloaded") for name in "fenm"}

    @pytest.mark.parametrize("first", [True, False])
    def test_what_was_asked_for_stays(self, ensembles, first):
        with ensembles() as server:
            for name in ("m", "e") if first else ("e", "m"):
                server.engine.load_model(name)
            server.engine.unload_model("e", unload_dependents=True)
            assert [states(server)[name] == "READY" for name in "mn"] == [True, False]

    def test_what_another_ensemble_stands_on_stays(self, ensembles, model_repository):
        write_ensemble(model_repository, "g", "m")
        with ensembles() as server:
            server.engine.load_model("e")
            server.engine.load_model("g")
            server.engine.unload_model("e", unload_dependents=True)
            assert [states(server)[name] == "READY" for name in "gmn"] == [True, True, False]


class TestPoll:
    def test_members_that_change_go_and_come(self, ensembles, model_repository, number):
        with ensembles(mode="poll", control={"interval_s": 3600}) as server:
            write(model_repository, "n", 3)
            server._repository.poll()
            assert number(server, "f") == 3
            model_repository.remove("n")
            server._repository.poll()
            assert error_of(number, server, "f").message == NO_VERSION.replace("'e'", "'f'")
            write(model_repository, "n", 4)
            server._repository.poll()
            assert number(server, "f") == 4

    def test_an_ensemble_and_its_member_come_and_go_together(self, ensembles, model_repository, number):
        with ensembles(mode="poll", control={"interval_s": 3600}) as server:
            write_ensemble(model_repository, "a", "z")
            write(model_repository, "z", 9)
            server._repository.poll()
            assert number(server, "a") == 9
            model_repository.remove("a")
            model_repository.remove("z")
            server._repository.poll()
            assert unloaded(server, "a", "z") == {("a", "UNAVAILABLE", "unloaded"), ("z", "UNAVAILABLE", "unloaded")}


class TestInFlight:
    def test_what_an_ensemble_began_is_finished_though_its_members_go(self, serve, model_repository, witness):
        gate = Gate()
        model_repository.add("first", config_of("doubler"))
        model_repository.add("last", config_of("doubler"))
        write_ensemble(model_repository, "e", "first", "last")
        with serve(PLUGIN, ToyPlugin({"doubler": gated(gate)})) as server:
            server.engine.load_model("e")
            request = request_of(witness, "e", [3])
            server.engine.infer(request)
            gate.wait_for(1)
            server.engine.unload_model("last")
            assert error_of(server.engine.infer, request_of(witness, "e", [3])).message == NO_VERSION
            assert error_of(server.engine.infer, request_of(witness, "last", [3])).message.endswith(
                "'last' has no available versions"
            )
            gate.open()
            assert numbers(*witness.wait(request)) == [[12]]
            assert unloaded(server, "e", "last") == {(name, "UNAVAILABLE", "unloaded") for name in ("e", "last")}
        witness.check(request)

    def test_so_it_is_when_the_server_stops(self, serve, model_repository, witness):
        gate = Gate()
        for name in ("first", "last"):
            model_repository.add(name, config_of("doubler"))
        write_ensemble(model_repository, "e", "first", "last")
        with serve(PLUGIN, ToyPlugin({"doubler": gated(gate)}), mode="none") as server:
            request = request_of(witness, "e", [3])
            server.engine.infer(request)
            gate.wait_for(1)
            server._repository.stop_loading()
            server._repository._models.take_out_all()
            gate.open()
            assert numbers(*witness.wait(request)) == [[12]]
        witness.check(request)
