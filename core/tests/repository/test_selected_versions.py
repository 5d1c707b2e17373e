"""Reloading only changed versions, and loading and unloading versions that a request names."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy.repository.local import LocalRepository
from tritonpy_config.config_dict import config_to_dict
from tritonpy_types.errors import InvalidArgument, NotFound, Unavailable

from .agent_plugin import AGENTS, AgentPlugin
from .ensembles import PLUGIN
from .version_backend import error_of, index, write

ALL = "version_policy { all {} }"
SPECIFIC = "version_policy { specific { versions: [1, 2] } }"


@pytest.fixture
def three(model_repository):
    """Write three versions, all of them selected by the policy."""
    for version in (1, 2, 3):
        write(model_repository, "m", 10 * version, version, config=ALL)


@pytest.fixture
def loads(event_log):
    """Return a function that returns the versions loaded since its last call."""
    seen = 0

    def look():
        nonlocal seen
        events = event_log.events("load")
        new, seen = events[seen:], len(events)
        return [version for _, _, version in new]

    return look


@pytest.fixture
def ready(number):
    """Return a function that returns the result of each ready version."""

    def look(server):
        return {
            model.version: number(server, "m", model.version)
            for model in server.engine._table.ready("m")
        }

    return look


class TestReuse:
    def test_an_added_version_leaves_the_others_untouched(
        self, serve, model_repository, loads, ready
    ):
        for version in (1, 2):
            write(model_repository, "m", 10 * version, version, config=ALL)
        with serve(control={"load": ["m"]}) as server:
            before = server.engine._table.ready("m")
            assert loads() == [1, 2]
            write(model_repository, "m", 30, 3)
            server.engine.load_model("m")
            assert loads() == [3]
            assert ready(server) == {1: 10, 2: 20, 3: 30}
            assert server.engine._table.ready("m")[:2] == before
            assert server.engine._table.find("m").version == 3

    def test_a_removed_version_leaves_the_others_untouched(
        self, serve, model_repository, three, loads, ready, event_log
    ):
        with serve(control={"load": ["m"]}) as server:
            loads()
            write(model_repository, "m", 30, 3, config=SPECIFIC)
            server.engine.load_model("m")
            assert loads() == []
            assert ready(server) == {1: 10, 2: 20}
            event_log.wait_for_handles(("m", 1), ("m", 2))

    def test_only_versions_with_changed_files_are_reloaded(
        self, serve, model_repository, three, loads, ready, event_log
    ):
        with serve(control={"load": ["m"]}) as server:
            loads()
            write(model_repository, "m", 21, 2)
            server.engine.load_model("m")
            assert loads() == [2]
            assert ready(server) == {1: 10, 2: 21, 3: 30}
            write(model_repository, "m", 11, 1)
            server.engine.load_model("m")
            assert loads() == [1]
            assert ready(server) == {1: 11, 2: 21, 3: 30}
            event_log.wait_for_handles(("m", 1), ("m", 2), ("m", 3))
        assert event_log.open_handles == []

    @pytest.mark.parametrize(
        "change",
        [
            lambda repository: write(
                repository, "m", 30, 3, config=ALL + 'metric_tags { key: "a" value: "b" }'
            ),
            lambda repository: repository.add("m", ALL, files={"labels.txt": "new"}),
        ],
        ids=["another key", "a file beside the versions"],
    )
    def test_changes_that_affect_all_versions_reload_all(
        self, serve, model_repository, three, loads, change
    ):
        with serve(control={"load": ["m"]}) as server:
            loads()
            change(model_repository)
            server.engine.load_model("m")
            assert loads() == [1, 2, 3]

    def test_kept_versions_get_new_instance_groups_when_another_version_is_loaded(
        self, serve, model_repository, loads
    ):
        for version in (1, 2):
            write(model_repository, "m", version, version, config=ALL)
        with serve(control={"load": ["m"]}) as server:
            loads()
            write(
                model_repository,
                "m",
                3,
                3,
                config=ALL + "instance_group { count: 2 kind: KIND_CPU }",
            )
            server.engine.load_model("m")
            assert loads() == [3]
            assert [len(model.runner._instances) for model in server.engine._table.ready("m")] == [
                2,
                2,
                2,
            ]
            assert [
                model.config.instance_group[0].count for model in server.engine._table.ready("m")
            ] == [2, 2, 2]

    def test_a_new_version_that_fails_changes_nothing(
        self, serve, model_repository, three, ready, loads
    ):
        with serve(control={"load": ["m"]}) as server:
            loads()
            write(
                model_repository,
                "m",
                "cannot be loaded",
                4,
                config=ALL + "instance_group { count: 2 kind: KIND_CPU }",
            )
            error = error_of(server.engine.load_model, "m")
            assert error.message == (
                "load failed for model 'm': version 4 is at UNAVAILABLE state: Internal: ValueError: no weights;\n"
            )
            assert ready(server) == {1: 10, 2: 20, 3: 30}
            assert [len(model.runner._instances) for model in server.engine._table.ready("m")] == [
                1,
                1,
                1,
            ]
            assert loads() == [4]
            write(model_repository, "m", 40, 4)
            server.engine.load_model("m")
            assert loads() == [4]
            assert [len(model.runner._instances) for model in server.engine._table.ready("m")] == [
                2,
                2,
                2,
                2,
            ]

    def test_models_with_agents_are_always_reloaded(self, serve, model_repository, loads):
        for version in (1, 2):
            write(model_repository, "m", version, version, config=ALL + AGENTS % "")
        with serve(AgentPlugin(), control={"load": ["m"]}) as server:
            loads()
            write(model_repository, "m", 3, 3)
            server.engine.load_model("m")
            assert loads() == [1, 2, 3]

    def test_a_changed_version_policy_in_a_request_reloads_no_version(
        self, serve, model_repository, three, loads, ready
    ):
        with serve(control={"load": ["m"]}) as server:
            loads()
            server_config = config_to_dict(server.engine.model_config("m"))
            server_config["version_policy"] = {"specific": {"versions": [1, 3]}}
            server.engine.load_model("m", json.dumps(server_config))
            assert (loads(), ready(server)) == ([], {1: 10, 3: 30})
            server.engine.load_model(
                "m", json.dumps(server_config | {"version_policy": {"all": {}}})
            )
            assert (loads(), ready(server)) == ([2], {1: 10, 2: 20, 3: 30})

    def test_polls_load_the_new_version_alone(self, serve, model_repository, three, loads, ready):
        with serve(mode="poll", control={"interval_s": 3600}) as server:
            loads()
            write(model_repository, "m", 40, 4)
            server._repository.poll()
            assert (loads(), ready(server)) == ([4], {1: 10, 2: 20, 3: 30, 4: 40})

    def test_files_are_released_when_nothing_is_loaded_from_them(
        self, serve, model_repository, three, monkeypatch, event_log
    ):
        released = []
        monkeypatch.setattr(
            LocalRepository, "release", lambda repository, path: released.append(path)
        )
        with serve(control={"load": ["m"]}) as server:
            for version in (1, 2):
                write(model_repository, "m", 5, version)
                server.engine.load_model("m")
                event_log.wait_for_handles(("m", 1), ("m", 2), ("m", 3))
            assert server._repository._drainer.wait(10)
            assert released == []  # version 3 is still loaded from the first listing
            write(model_repository, "m", 5, 3)
            server.engine.load_model("m")
            assert server._repository._drainer.wait(10)
            assert len(released) == 1
        assert len(released) == 4


class TestNamedVersions:
    def test_a_load_adds_a_version_to_those_that_serve(self, serve, model_repository, loads, ready):
        for version in (1, 2, 3):
            write(model_repository, "m", 10 * version, version)
        with serve(control={"load": ["m"]}) as server:
            assert (loads(), ready(server)) == ([3], {3: 30})
            server.engine.load_model("m", versions=[1])
            assert (loads(), ready(server)) == ([1], {1: 10, 3: 30})
            server.engine.load_model("m", versions=[2, 1])
            assert (loads(), ready(server)) == ([2], {1: 10, 2: 20, 3: 30})

    def test_a_model_of_which_nothing_serves_begins_with_the_named_ones(
        self, serve, model_repository, three, loads, ready
    ):
        with serve() as server:
            server.engine.load_model("m", versions=[2])
            assert (loads(), ready(server)) == ([2], {2: 20})
            assert index(server) == [("m", "2", "READY", "")]

    def test_a_named_version_is_reloaded_if_its_files_changed_and_others_are_untouched(
        self, serve, model_repository, three, loads, ready
    ):
        with serve(control={"load": ["m"]}) as server:
            loads()
            for version in (1, 2, 3):
                write(model_repository, "m", 11 * version, version)
            server.engine.load_model("m", versions=[2])
            assert (loads(), ready(server)) == ([2], {1: 10, 2: 22, 3: 30})
            server.engine.load_model("m")
            assert (loads(), ready(server)) == ([1, 3], {1: 11, 2: 22, 3: 33})

    def test_unloading_a_version_frees_it_and_the_index_says_so(
        self, serve, model_repository, three, ready, event_log
    ):
        with serve(control={"load": ["m"]}) as server:
            server.engine.unload_model("m", versions=[3])
            event_log.wait_for_handles(("m", 1), ("m", 2))
            assert server._repository._drainer.wait(10)
            assert index(server) == [
                ("m", "1", "READY", ""),
                ("m", "2", "READY", ""),
                ("m", "3", "UNAVAILABLE", "unloaded"),
            ]
            assert ready(server) == {1: 10, 2: 20}
            assert server.engine._table.find("m").version == 2
            assert type(error_of(server.engine.model_config, "m", 3)) is Unavailable
            assert server.engine.is_ready()

    def test_the_next_plain_load_follows_the_policy_again(
        self, serve, model_repository, three, loads, ready
    ):
        with serve(control={"load": ["m"]}) as server:
            loads()
            server.engine.unload_model("m", versions=[3, 1])
            assert ready(server) == {2: 20}
            server.engine.load_model("m")
            assert (loads(), ready(server)) == ([1, 3], {1: 10, 2: 20, 3: 30})

    def test_a_named_version_wins_over_the_policy_until_then(
        self, serve, model_repository, loads, ready
    ):
        for version in (1, 2, 3):
            write(model_repository, "m", 10 * version, version, config=SPECIFIC)
        with serve(control={"load": ["m"]}) as server:
            server.engine.load_model("m", versions=[3])
            assert ready(server) == {1: 10, 2: 20, 3: 30}
            server.engine.load_model("m")
            assert ready(server) == {1: 10, 2: 20}
            assert loads() == [1, 2, 3]

    def test_without_its_last_version_the_model_is_unloaded(
        self, serve, model_repository, three, event_log
    ):
        with serve(control={"load": ["m"]}) as server:
            server.engine.unload_model("m", versions=[1, 2])
            server.engine.unload_model("m", versions=[3, 9])
            event_log.wait_for_handles()
            assert type(error_of(server.engine.model_config, "m")) is NotFound

    def test_unloading_versions_that_do_not_serve_does_nothing(
        self, serve, model_repository, three, ready
    ):
        with serve(control={"load": ["m"]}) as server:
            server.engine.unload_model("m", versions=[7])
            server.engine.unload_model("missing", versions=[1])
            assert len(ready(server)) == 3

    def test_a_missing_version_is_rejected_and_the_others_keep_serving(
        self, serve, model_repository, three, ready
    ):
        with serve(control={"load": ["m"]}) as server:
            error = error_of(lambda: server.engine.load_model("m", versions=[1, 9]))
            assert type(error) is InvalidArgument
            assert (
                error.message
                == "load failed for model 'm': model 'm' has no version 9 in its folder\n"
            )
            assert ready(server) == {1: 10, 2: 20, 3: 30}

    def test_a_version_that_fails_reports_why_and_the_others_keep_serving(
        self, serve, model_repository, three, ready
    ):
        with serve(control={"load": ["m"]}) as server:
            server.engine.unload_model("m", versions=[2])
            write(model_repository, "m", "cannot be loaded", 2)
            assert (
                "no weights"
                in error_of(lambda: server.engine.load_model("m", versions=[2])).message
            )
            assert ready(server) == {1: 10, 3: 30}
            assert ("m", "2", "UNAVAILABLE", "Internal: ValueError: no weights") in index(server)

    def test_loads_and_unloads_of_different_versions_at_once_all_take_effect(
        self, serve, model_repository, three, ready, event_log
    ):
        with serve(control={"load": ["m"]}) as server, ThreadPoolExecutor(6) as pool:
            for _ in range(10):
                away = [
                    pool.submit(server.engine.unload_model, "m", versions=[version])
                    for version in (1, 2)
                ]
                for each in away:
                    each.result()
                assert ready(server) == {3: 30}
                back = [
                    pool.submit(server.engine.load_model, "m", versions=[version])
                    for version in (2, 1)
                ]
                for each in back:
                    each.result()
                assert ready(server) == {1: 10, 2: 20, 3: 30}
            event_log.wait_for_handles(("m", 1), ("m", 2), ("m", 3))

    def test_versions_of_an_ensemble_can_be_unloaded_and_loaded(
        self, serve, model_repository, three
    ):
        step = 'step { model_name: "m" model_version: -1 input_map { key: "IN" value: "A" } output_map { key: "OUT" value: "B" } }'
        tensors = 'input { name: "A" data_type: TYPE_INT32 dims: 1 } output { name: "B" data_type: TYPE_INT32 dims: 1 }'
        config = f'platform: "ensemble" {tensors} ensemble_scheduling {{ {step} }} {ALL}'
        model_repository.add("e", config, versions={1: {}, 2: {}})

        def versions(server):
            return [model.version for model in server.engine._table.ready("e")]

        with serve(PLUGIN, control={"load": ["e"]}) as server:
            assert versions(server) == [1, 2]
            server.engine.unload_model("e", versions=[2])
            assert versions(server) == [1]
            server.engine.load_model("e", versions=[2])
            assert versions(server) == [1, 2]
            server.engine.unload_model("e", versions=[1])
            server.engine.unload_model("m", versions=[1])
            assert versions(server) == [2]
            server.engine.load_model("e")
            assert versions(server) == [1, 2]
            server.engine.unload_model("e", unload_dependents=True, versions=[1, 2])
            assert versions(server) == []
            assert server.engine._table.ready("m") == []
