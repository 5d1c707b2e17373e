from __future__ import annotations

import shutil

import pytest

from tritonpy.errors import InvalidArgument, TritonError, Unavailable
from tritonpy.repository.lazy.lazy_loading import LazyLoading

from ...toys.hoard import MIB, hoarding
from ...toys.serving import ask, config_of, numbers
from ..teller import error_of, index
from .asking import ask_again, error_in, one_mib, wait_for
from .conftest import told


def test_a_reload_that_does_not_fit_beside_what_serves_is_refused_with_the_numbers(
    serve, model_repository, answered, hoard
):
    model_repository.add("a", hoarding(memory_bytes="2MiB", size=2 * MIB))
    with serve(mode="explicit", load=["a"], memory={"budget": "3MiB"}) as server:
        answered(server, "a")
        model_repository.add("a", hoarding(memory_bytes="2MiB", size=2 * MIB, other="yes"))
        error = error_of(server.engine.load_model, "a")
        assert isinstance(error, InvalidArgument)
        assert "it needs 2.0 MiB, and the memory budget is 3.0 MiB, of which 2.0 MiB are held" in error.message
        assert answered(server, "a") == 2
        assert hoard.held == {"a": 2 * MIB}
        model_repository.add("a", hoarding(memory_bytes="1MiB", size=MIB))
        server.engine.load_model("a")
        hoard.wait(lambda: hoard.held == {"a": MIB})


def test_a_reload_has_idle_models_make_room(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "2MiB"}) as server:
        answered(server, "a")
        answered(server, "b")
        one_mib(model_repository, "a", other="yes")
        server.engine.load_model("a")
        hoard.wait(lambda: hoard.held == {"a": MIB})
        assert hoard.most == 2 * MIB


def test_further_instances_for_which_there_is_no_room_are_refused_and_what_serves_goes_on(
    serve, model_repository, answered, hoard
):
    model_repository.add("a", hoarding(size=MIB, each=MIB))
    with serve(mode="explicit", load=["a"], memory={"budget": "3MiB", "lazy": []}) as server:
        assert hoard.held == {"a": 2 * MIB}
        model_repository.add("a", hoarding(size=MIB, each=MIB, instances=3))
        error = error_of(server.engine.load_model, "a")
        assert "4.0 MiB" in error.message
        hoard.wait(lambda: hoard.held == {"a": 2 * MIB})
        assert answered(server, "a") == 2
        assert told(server)["held"] == {"all": 2 * MIB, "cpu": 2 * MIB}
        model_repository.add("a", hoarding(size=MIB, each=MIB, instances=2))
        server.engine.load_model("a")
        assert told(server)["held"] == {"all": 3 * MIB, "cpu": 3 * MIB}


def test_a_client_loads_over_the_budget_where_idle_models_can_go_and_is_refused_where_they_are_in_use(
    serve, model_repository, answered, witness, hoard
):
    one_mib(model_repository, "a", "b", "c")
    with serve(mode="explicit", load=["a", "b", "c"], memory={"budget": "1MiB"}) as server:
        answered(server, "a")
        server.engine.load_model("b")
        assert hoard.held == {"b": MIB}
        hoard.shut("b")
        busy = ask(server.engine, witness, "b", [1])
        hoard.wait(lambda: hoard.inside == ["b"])
        error = error_of(server.engine.load_model, "c")
        assert "the memory budget is 1.0 MiB, of which 1.0 MiB are held" in error.message
        hoard.open("b")
        witness.wait(busy)


def test_models_that_are_not_lazy_never_make_room_and_fail_where_there_is_none(serve, model_repository, hoard):
    one_mib(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB", "lazy": []}, control={"threads": 1}, exit_on_error=False) as server:
        assert list(server.failures) == ["b"]
        assert "by models that cannot" in server.failures["b"].message
        assert hoard.held == {"a": MIB}


def test_files_that_vanished_are_the_reason_that_the_request_hears(serve, model_repository, witness, answered):
    one_mib(model_repository, "a")
    with serve(memory={"retry_s": 0.01}) as server:
        shutil.rmtree(model_repository.path / "a")
        error = error_in(witness, ask(server.engine, witness, "a", [1]))
        assert "'a' is in no model repository any more" in error.message
        one_mib(model_repository, "a")
        (answers,) = witness.wait(ask_again(server, witness, "a"), timeout_s=20)
        assert numbers(answers) == [[2]]


def test_an_eviction_in_the_moment_in_which_a_request_comes_does_not_happen(
    serve, model_repository, witness, hoard, answered, monkeypatch
):
    one_mib(model_repository, "a", "b")
    refused = []
    evict = LazyLoading.evict

    with serve(memory={"budget": "1MiB"}) as server:
        answered(server, "a")
        hoard.shut("a")
        late = []

        def evict_late(self, key):
            if key == "a" and not late:  # it was idle when it was chosen
                late.append(ask(server.engine, witness, "a", [1]))
                refused.append(evict(self, key))
                hoard.open("a")
                return refused[-1]
            return evict(self, key)

        monkeypatch.setattr(
            server._repository._models.memory.room, "_evict", evict_late.__get__(server._repository._lazy)
        )
        assert answered(server, "b") == 2
        assert refused == [False]
        (answers,) = witness.wait(*late)
        assert numbers(answers) == [[2]]


def test_a_model_that_grows_while_it_serves_has_idle_ones_go(
    serve, model_repository, witness, answered, hoard, monkeypatch
):
    monkeypatch.setattr("tritonpy.repository.budget.growth.LOOK_S", 0.01)
    monkeypatch.setattr("tritonpy.runners.memory_report.REFRESH_NS", 0)
    one_mib(model_repository, "a", "b")
    with serve(memory={"budget": "2MiB"}) as server:
        answered(server, "b")
        answered(server, "a")
        hoard.shut("a")
        busy = ask(server.engine, witness, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        hoard.grown["a"] = MIB
        hoard.wait(lambda: "b" not in hoard.held)
        hoard.open("a")
        witness.wait(busy)


def test_what_the_files_do_not_tell_is_known_after_the_load_that_the_question_began(serve, model_repository, hoard):
    from .completing import completing

    model_repository.add("a", 'backend: "completing"')
    with serve(backends={"completing": completing(hoard)}) as server:
        error = error_of(server.engine.model_metadata, "a")
        assert isinstance(error, Unavailable)
        assert error.retry_after == "1"
        hoard.wait(lambda: hoard.loads == ["a"])
        wait_for(lambda: index(server)[0][2] == "READY")
        assert [tensor.name for tensor in server.engine.model_metadata("a").inputs] == ["IN"]


def test_several_versions_come_and_go_together(serve, model_repository, answered, hoard):
    model_repository.add("a", hoarding(memory_bytes="2MiB", more="version_policy { all {} }"), versions={1: {}, 2: {}})
    one_mib(model_repository, "b")
    with serve(memory={"budget": "2MiB"}) as server:
        assert server.engine.model_metadata("a").versions == ["1", "2"]
        assert answered(server, "a", 3, model_version=1) == 6
        assert hoard.held == {"a": 2 * MIB}
        assert answered(server, "b") == 2
        assert hoard.held == {"b": MIB}
        assert answered(server, "a", 3) == 6


def test_polls_list_what_is_new_and_what_changed_and_forget_what_is_gone(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a")
    with serve(mode="poll", control={"interval_s": 3600}) as server:
        poll = server._repository.poll
        one_mib(model_repository, "b")
        poll()
        assert [line[0] for line in index(server)] == ["a", "b"]
        assert hoard.loads == []
        model_repository.add("b", config_of("hoarder", datatype="TYPE_INT64"))
        poll()
        assert server.engine.model_metadata("b").inputs[0].datatype == "INT64"
        assert hoard.loads == []
        answered(server, "a")
        one_mib(model_repository, "a", other="yes")
        poll()
        assert hoard.loads == ["a", "a"], "what is loaded is replaced"
        shutil.rmtree(model_repository.path / "b")
        poll()
        assert isinstance(error_of(server.engine.model_metadata, "b"), TritonError)


def test_repositories_with_namespaces_have_lazy_models_of_one_name(serve, model_repository, tmp_path, answered, hoard):
    from tritonpy.testing import ModelRepository

    other = ModelRepository(tmp_path / "other")
    one_mib(model_repository, "a", "c")
    one_mib(other, "a")
    urls = [{"url": str(model_repository.path)}, {"url": str(other.path)}]
    with serve(repositories=urls, model_namespacing=True, memory={"budget": "1MiB"}) as server:
        assert answered(server, "c") == 2
        assert answered(server, f"{other.path}::a") == 2
        assert len(hoard.held) == 1
        assert "namespace" in error_of(server.engine.model_metadata, "a").message
        assert answered(server, f"{model_repository.path}::a") == 2


def test_a_model_that_was_given_another_configuration_comes_back_with_it(serve, model_repository, answered, hoard):
    import json

    from tritonpy import config_to_dict

    one_mib(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "1MiB"}) as server:
        config = config_to_dict(server.engine.model_config("a"))
        config["max_batch_size"] = 0
        config["parameters"]["mark"] = {"string_value": "given"}
        server.engine.load_model("a", json.dumps(config))
        for name in "ba":
            answered(server, name)
        assert server.engine.model_config("a").parameters["mark"].string_value == "given"


@pytest.mark.parametrize("mode", ["explicit"])
def test_what_a_client_unloaded_is_not_loaded_by_a_request(serve, model_repository, witness, answered, mode):
    one_mib(model_repository, "a")
    with serve(mode=mode, load=["a"]) as server:
        answered(server, "a")
        server.engine.unload_model("a")
        assert isinstance(error_of(ask, server.engine, witness, "a", [1]), TritonError)
        server.engine.load_model("a")
        assert answered(server, "a") == 2
