from __future__ import annotations

import pytest

from tritonpy.hookspecs import hookimpl
from tritonpy.plugins import install_command
from tritonpy_types.errors import InvalidArgument, NotFound, StartupError

from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, config_of, numbers, request_of
from .agent_plugin import AGENTS, AgentPlugin
from .ensembles import PLUGIN, ensemble_config, write_ensemble
from .version_backend import error_of, index, write

NO_VERSION = "Request for unknown model: 'e' has no available versions"
FLOATS = "input { name: 'IN' data_type: TYPE_FP32 dims: 1 } output { name: 'OUT' data_type: TYPE_FP32 dims: 1 }"


@pytest.fixture
def ensembles(serve, model_repository):
    """Serve m (returns 1), n (returns 2), e over m and n, and f over e."""
    write(model_repository, "m", 1)
    write(model_repository, "n", 2)
    write_ensemble(model_repository, "e", "m", "n")
    write_ensemble(model_repository, "f", "e")
    return lambda *plugins, **settings: serve(PLUGIN, *plugins, **settings)


def states(server):
    return {name: state or "-" for name, _, state, _ in index(server)}


def unloaded(server, *names):
    assert server._repository._drainer.wait(10)
    return {(name, state, reason) for name, _, state, reason in index(server) if name in names}


class TestLoad:
    @pytest.mark.parametrize("mode", ["none", "poll"])
    def test_at_the_start_members_are_loaded_before_ensembles(self, ensembles, number, mode):
        with ensembles(mode=mode) as server:
            assert (number(server, "e"), number(server, "f")) == (2, 2)

    def test_the_index_shows_why_an_ensemble_that_a_poll_found_changed_serves_as_before(
        self, ensembles, model_repository
    ):
        with ensembles(mode="poll", control={"interval_s": 3600}) as server:
            write_ensemble(model_repository, "e", "m", "missing")
            server._repository.poll()
            ((_, _, state, reason),) = [line for line in index(server) if line[0] == "e"]
            assert state == "READY"
            assert reason.startswith(
                "still serves the previous load; the last load failed: load failed for model 'e'"
            )

    def test_loading_an_ensemble_loads_its_members(self, ensembles, number):
        with ensembles() as server:
            server.engine.load_model("f")
            assert number(server, "f") == 2
            assert states(server) == dict.fromkeys("efmn", "READY")

    def test_ensembles_named_at_the_start_load_their_members(self, ensembles, number):
        with ensembles(control={"load": ["f"]}) as server:
            assert number(server, "f") == 2

    def test_an_ensemble_needs_no_backend_and_its_loads_call_hooks(self, ensembles):
        events = []

        class Hooks:
            @hookimpl
            def tritonpy_model_loaded(self, name, version):
                events.append(("loaded", name, version))

            @hookimpl
            def tritonpy_model_unloaded(self, name, version):
                events.append(("unloaded", name, version))

        with ensembles(Hooks()) as server:
            server.engine.load_model("e")
            assert ("loaded", "e", 1) in events
            server.engine.unload_model("e")
            assert server._repository._drainer.wait(10)
            assert events[-1] == ("unloaded", "e", 1)

    def test_a_changed_member_is_reloaded_with_its_ensemble(
        self, ensembles, model_repository, number
    ):
        with ensembles() as server:
            server.engine.load_model("e")
            write(model_repository, "n", 3)
            server.engine.load_model("e")
            assert number(server, "e") == 3

    def test_the_server_does_not_start_if_an_ensemble_cannot_serve(
        self, ensembles, model_repository, caplog
    ):
        write_ensemble(model_repository, "g", "missing")
        with (
            pytest.raises(StartupError, match="failed to load all models: g"),
            ensembles(mode="none"),
        ):
            pass
        text = "ensemble g contains models that are not available or ambiguous: missing"
        assert text in caplog.messages

    def test_without_the_plugin_the_error_has_an_install_command(self, serve, model_repository):
        write(model_repository, "m", 1)
        write_ensemble(model_repository, "e", "m")
        with serve() as server:
            assert (
                install_command("tritonpy-ensemble")
                in error_of(server.engine.load_model, "e").message
            )

    def test_an_invalid_ensemble_configuration_is_rejected_immediately(
        self, ensembles, model_repository, event_log
    ):
        write_ensemble(model_repository, "g")
        with ensembles() as server:
            error = error_of(server.engine.load_model, "g")
        assert error.message.startswith(
            "failed to load 'g', failed to poll from model repository: "
        )
        assert error.message.endswith("must specify 'step' for ensemble 'g'")


class TestMembers:
    def test_unloading_a_member_stops_its_ensembles_until_it_is_loaded_again(
        self, ensembles, number
    ):
        with ensembles() as server:
            server.engine.load_model("f")
            server.engine.unload_model("m")
            assert unloaded(server, "m", "e", "f") == {
                (name, "UNAVAILABLE", "unloaded") for name in "mef"
            }
            error = error_of(number, server, "e")
            assert (type(error), error.message) == (NotFound, NO_VERSION)
            assert server.engine.is_ready()
            server.engine.load_model("m")
            assert (number(server, "e"), number(server, "f")) == (2, 2)

    def test_an_ensemble_waits_for_a_member_that_is_loaded_later(
        self, ensembles, model_repository, number
    ):
        write_ensemble(model_repository, "g", "late")
        with ensembles() as server:
            error = error_of(server.engine.load_model, "g")
            text = "ensemble g contains models that are not available or ambiguous: late"
            assert (type(error), error.message) == (
                InvalidArgument,
                f"load failed for model 'g': {text}\n",
            )
            assert ("g", "", "UNAVAILABLE", text) in index(server)
            write(model_repository, "late", 5)
            server.engine.load_model("late")
            assert number(server, "g") == 5

    def test_an_unloaded_ensemble_does_not_start_with_its_member(self, ensembles, model_repository):
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
            assert (
                error_of(server.engine.load_model, "e").message
                == f"load failed for model 'e': {text}\n"
            )
            higher = f"ensemble 'f' depends on 'e' which is not valid. Model 'e' failed with error: {text}"
            assert (
                error_of(server.engine.load_model, "f").message
                == f"load failed for model 'f': {higher}\n"
            )
            write(model_repository, "n", 4)
            server.engine.load_model("n")
            assert number(server, "f") == 4

    def test_a_member_that_fails_to_reload_changes_nothing(
        self, ensembles, model_repository, number
    ):
        with ensembles() as server:
            server.engine.load_model("e")
            write(model_repository, "n", "cannot be loaded")
            error_of(server.engine.load_model, "n")
            assert number(server, "e") == 2

    def test_an_incompatible_reload_of_a_member_stops_the_ensemble(
        self, ensembles, model_repository, number
    ):
        with ensembles() as server:
            server.engine.load_model("f")
            write(model_repository, "m", 1, config=f'backend: "version_reporter" {FLOATS}')
            server.engine.load_model("m")
            assert [
                error_of(number, server, name).message.endswith("no available versions")
                for name in "ef"
            ] == [
                True,
                True,
            ]
            message = error_of(server.engine.load_model, "e").message
            assert (
                'step[0].input_map["IN"]: in ensemble e, ensemble tensor IN: inconsistent data type'
                in message
            )
            write(model_repository, "m", 1, config="")
            server.engine.load_model("m")
            assert number(server, "f") == 2

    def test_an_ensemble_stops_when_its_members_version_is_removed(
        self, ensembles, model_repository, number
    ):
        write(model_repository, "m", 1, version=2, config="version_policy { all {} }")
        write_ensemble(model_repository, "g", "m", version=1)
        with ensembles() as server:
            server.engine.load_model("g")
            assert number(server, "g") == 1
            model_repository.remove("m", 1)
            server.engine.load_model("m")
            text = "ensemble 'g' depends on 'm' whose required version 1 is not loaded."
            assert (
                error_of(server.engine.load_model, "g").message
                == f"load failed for model 'g': {text}\n"
            )

    def test_an_ensemble_is_rebuilt_only_when_its_own_member_changes(
        self, ensembles, model_repository
    ):
        with ensembles() as server:
            server.engine.load_model("f")
            server.engine.load_model("m")
            table = server._repository._table
            before = {name: table.find(name) for name in "efmn"}
            write(model_repository, "n", 3)
            server.engine.load_model("n")
            assert {name for name in "efmn" if table.find(name) is not before[name]} == {
                "e",
                "f",
                "n",
            }

    def test_decoupled_members_make_it_decoupled(self, ensembles, model_repository):
        write(model_repository, "m", 1, config="model_transaction_policy { decoupled: true }")
        with ensembles() as server:
            server.engine.load_model("f")
            assert all(
                server.engine.model_config(name).model_transaction_policy.decoupled for name in "ef"
            )

    def test_outputs_without_labels_have_those_of_the_step_that_writes_them(
        self, ensembles, model_repository
    ):
        folder = model_repository.add(
            "n",
            "backend: 'version_reporter' input { name: 'IN' data_type: TYPE_INT32 dims: 1 } "
            "output { name: 'OUT' data_type: TYPE_INT32 dims: 1 label_filename: 'labels.txt' }",
            versions={1: {"model.txt": "2"}},
        )
        (folder / "labels.txt").write_text("zero\none\n")
        with ensembles() as server:
            server.engine.load_model("f")
            assert server._repository._table.find("f").labels == {"OUT": ["zero", "one"]}


class TestChanges:
    def test_a_failed_change_keeps_the_previous_ensemble(self, ensembles, model_repository, number):
        with ensembles() as server:
            server.engine.load_model("e")
            write_ensemble(model_repository, "e", "missing")
            text = "ensemble e contains models that are not available or ambiguous: missing"
            assert (
                error_of(server.engine.load_model, "e").message
                == f"load failed for model 'e': {text}\n"
            )
            assert number(server, "e") == 2
            server.engine.unload_model("n")
            server.engine.load_model("n")
            assert number(server, "e") == 2
            write_ensemble(model_repository, "e", "m")
            server.engine.load_model("e")
            assert number(server, "e") == 1

    def test_a_cycle_is_rejected_and_the_ensembles_keep_serving(
        self, ensembles, model_repository, number
    ):
        with ensembles() as server:
            server.engine.load_model("f")
            write_ensemble(model_repository, "e", "f")
            text = "circular dependency between ensembles: e -> ... -> f -> e"
            assert (
                error_of(server.engine.load_model, "e").message
                == f"load failed for model 'e': {text}\n"
            )
            assert (number(server, "e"), number(server, "f")) == (2, 2)

    def test_an_ensemble_can_become_a_model_and_vice_versa(
        self, ensembles, model_repository, number
    ):
        with ensembles() as server:
            server.engine.load_model("f")
            write(model_repository, "e", 7, config='backend: "version_reporter"')
            server.engine.load_model("e")
            assert (number(server, "e"), number(server, "f")) == (7, 7)
            write_ensemble(model_repository, "e", "m")
            server.engine.load_model("e")
            assert (number(server, "e"), number(server, "f")) == (1, 1)

    def test_a_clients_configuration_of_a_member_is_kept(self, ensembles, number):
        with ensembles() as server:
            server.engine.load_model(
                "m", '{"backend": "version_reporter", "parameters": {"a": {"string_value": "b"}}}'
            )
            server.engine.load_model("e")
            assert server.engine.model_config("m").parameters["a"].string_value == "b"

    def test_agents_are_called_once_per_load_of_an_ensemble(self, serve, model_repository):
        write(model_repository, "m", 1)
        write(model_repository, "e", config=ensemble_config("m") + AGENTS % "")
        plugin = AgentPlugin()
        with serve(PLUGIN, plugin) as server:
            server.engine.load_model("e")
            for number in (2, 3):
                write(model_repository, "m", number)
                server.engine.load_model("m")
            server.engine.unload_model("m")
            assert [action for agent, action in plugin.calls if agent == "first"] == [
                "LOAD",
                "LOAD_COMPLETE",
            ]
            server.engine.unload_model("e")
            assert server._repository._drainer.wait(10)
        assert [action for agent, action in plugin.calls if agent == "first"] == [
            "LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE"
        ]  # fmt: skip

    def test_agents_of_an_ensemble_that_never_served_get_load_fail(self, serve, model_repository):
        write(model_repository, "e", config=ensemble_config("missing") + AGENTS % "")
        plugin = AgentPlugin()
        with serve(PLUGIN, plugin) as server:
            error_of(server.engine.load_model, "e")
            assert [action for agent, action in plugin.calls if agent == "first"] == ["LOAD"]
            server.engine.unload_model("e")
        assert [action for agent, action in plugin.calls if agent == "first"] == [
            "LOAD",
            "LOAD_FAIL",
        ]


class TestUnload:
    def test_members_stay_loaded_without_unload_dependents(self, ensembles):
        with ensembles() as server:
            server.engine.load_model("f")
            server.engine.unload_model("f")
            assert states(server)["m"] == "READY"
            server.engine.load_model("f")
            server.engine.unload_model("f", unload_dependents=True)
            assert unloaded(server, *"fenm") == {
                (name, "UNAVAILABLE", "unloaded") for name in "fenm"
            }

    @pytest.mark.parametrize("first", [True, False])
    def test_members_that_were_requested_stay_loaded(self, ensembles, first):
        with ensembles() as server:
            for name in ("m", "e") if first else ("e", "m"):
                server.engine.load_model(name)
            server.engine.unload_model("e", unload_dependents=True)
            assert [states(server)[name] == "READY" for name in "mn"] == [True, False]

    def test_members_of_another_ensemble_stay_loaded(self, ensembles, model_repository):
        write_ensemble(model_repository, "g", "m")
        with ensembles() as server:
            server.engine.load_model("e")
            server.engine.load_model("g")
            server.engine.unload_model("e", unload_dependents=True)
            assert [states(server)[name] == "READY" for name in "gmn"] == [True, True, False]


class TestPoll:
    def test_changed_and_removed_members_are_followed(self, ensembles, model_repository, number):
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

    def test_an_ensemble_and_its_member_can_be_added_and_removed_together(
        self, ensembles, model_repository, number
    ):
        with ensembles(mode="poll", control={"interval_s": 3600}) as server:
            write_ensemble(model_repository, "a", "z")
            write(model_repository, "z", 9)
            server._repository.poll()
            assert number(server, "a") == 9
            model_repository.remove("a")
            model_repository.remove("z")
            server._repository.poll()
            assert unloaded(server, "a", "z") == {
                ("a", "UNAVAILABLE", "unloaded"),
                ("z", "UNAVAILABLE", "unloaded"),
            }


class TestInFlight:
    def test_requests_of_an_ensemble_finish_although_its_members_are_unloaded(
        self, serve, model_repository, recorder
    ):
        gate = Gate()
        model_repository.add("first", config_of("doubler"))
        model_repository.add("last", config_of("doubler"))
        write_ensemble(model_repository, "e", "first", "last")
        with serve(PLUGIN, ToyPlugin({"doubler": gated(gate)})) as server:
            server.engine.load_model("e")
            request = request_of(recorder, "e", [3])
            server.engine.infer(request)
            gate.wait_for(1)
            server.engine.unload_model("last")
            assert (
                error_of(server.engine.infer, request_of(recorder, "e", [3])).message == NO_VERSION
            )
            assert error_of(
                server.engine.infer, request_of(recorder, "last", [3])
            ).message.endswith("'last' has no available versions")
            gate.open()
            assert numbers(*recorder.wait(request)) == [[12]]
            assert unloaded(server, "e", "last") == {
                (name, "UNAVAILABLE", "unloaded") for name in ("e", "last")
            }
        recorder.check(request)

    def test_requests_of_an_ensemble_finish_when_the_server_stops(
        self, serve, model_repository, recorder
    ):
        gate = Gate()
        for name in ("first", "last"):
            model_repository.add(name, config_of("doubler"))
        write_ensemble(model_repository, "e", "first", "last")
        with serve(PLUGIN, ToyPlugin({"doubler": gated(gate)}), mode="none") as server:
            request = request_of(recorder, "e", [3])
            server.engine.infer(request)
            gate.wait_for(1)
            server._repository.stop_loading()
            server._repository._models.unload_all()
            gate.open()
            assert numbers(*recorder.wait(request)) == [[12]]
        recorder.check(request)
