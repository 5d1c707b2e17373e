from __future__ import annotations

import shutil

import pytest

from core.tests.toys.waiting import wait_until
from tritonpy_residency.policy import LruPolicy
from tritonpy_types.errors import InvalidArgument, TritonError, Unavailable

from ...toys.hoard import MIB, memory_config
from ...toys.serving import ask, config_of, numbers
from ..version_backend import error_of, index
from .conftest import memory_report
from .lazy_requests import add_models, error_in, retry_request


def test_a_reload_that_does_not_fit_next_to_the_serving_version_is_rejected(
    serve, model_repository, infer, hoard
):
    model_repository.add("a", memory_config(memory_bytes="2MiB", size=2 * MIB))
    with serve(mode="explicit", load=["a"], memory={"budget": "3MiB"}) as server:
        infer(server, "a")
        model_repository.add("a", memory_config(memory_bytes="2MiB", size=2 * MIB, other="yes"))
        error = error_of(server.engine.load_model, "a")
        assert isinstance(error, InvalidArgument)
        assert (
            "it needs 2.0 MiB, and the memory budget is 3.0 MiB, of which 2.0 MiB are held"
            in error.message
        )
        assert infer(server, "a") == 2
        assert hoard.held == {"a": 2 * MIB}
        model_repository.add("a", memory_config(memory_bytes="1MiB", size=MIB))
        server.engine.load_model("a")
        hoard.wait(lambda: hoard.held == {"a": MIB})


def test_a_reload_evicts_idle_models(serve, model_repository, infer, hoard):
    add_models(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "2MiB"}) as server:
        infer(server, "a")
        infer(server, "b")
        add_models(model_repository, "a", other="yes")
        server.engine.load_model("a")
        hoard.wait(lambda: hoard.held == {"a": MIB})
        assert hoard.most == 2 * MIB


def test_instances_that_do_not_fit_are_rejected_and_the_model_keeps_serving(
    serve, model_repository, infer, hoard
):
    model_repository.add("a", memory_config(size=MIB, each=MIB))
    with serve(mode="explicit", load=["a"], memory={"budget": "3MiB", "lazy": []}) as server:
        assert hoard.held == {"a": 2 * MIB}
        model_repository.add("a", memory_config(size=MIB, each=MIB, instances=3))
        error = error_of(server.engine.load_model, "a")
        assert "4.0 MiB" in error.message
        hoard.wait(lambda: hoard.held == {"a": 2 * MIB})
        assert infer(server, "a") == 2
        assert memory_report(server)["held"] == {"all": 2 * MIB, "cpu": 2 * MIB}
        model_repository.add("a", memory_config(size=MIB, each=MIB, instances=2))
        server.engine.load_model("a")
        assert memory_report(server)["held"] == {"all": 3 * MIB, "cpu": 3 * MIB}


def test_a_clients_load_evicts_idle_models_and_is_rejected_if_they_are_in_use(
    serve, model_repository, infer, recorder, hoard
):
    add_models(model_repository, "a", "b", "c")
    with serve(mode="explicit", load=["a", "b", "c"], memory={"budget": "1MiB"}) as server:
        infer(server, "a")
        server.engine.load_model("b")
        assert hoard.held == {"b": MIB}
        hoard.shut("b")
        busy = ask(server.engine, recorder, "b", [1])
        hoard.wait(lambda: hoard.inside == ["b"])
        error = error_of(server.engine.load_model, "c")
        assert "the memory budget is 1.0 MiB, of which 1.0 MiB are held" in error.message
        hoard.open("b")
        recorder.wait(busy)


def test_models_that_are_not_lazy_are_never_evicted_and_fail_if_they_do_not_fit(
    serve, model_repository, hoard
):
    add_models(model_repository, "a", "b")
    with serve(
        memory={"budget": "1MiB", "lazy": []}, control={"threads": 1}, exit_on_error=False
    ) as server:
        assert list(server.failures) == ["b"]
        assert "by models that cannot" in server.failures["b"].message
        assert hoard.held == {"a": MIB}


def test_a_request_for_a_model_whose_files_vanished_gets_the_reason(
    serve, model_repository, recorder, infer
):
    add_models(model_repository, "a")
    with serve(memory={"retry_s": 0.01}) as server:
        shutil.rmtree(model_repository.path / "a")
        error = error_in(recorder, ask(server.engine, recorder, "a", [1]))
        assert "'a' is no longer in a model repository" in error.message
        add_models(model_repository, "a")
        (responses,) = recorder.wait(retry_request(server, recorder, "a"), timeout_s=20)
        assert numbers(responses) == [[2]]


def test_a_request_that_arrives_during_an_eviction_prevents_it(
    serve, model_repository, recorder, hoard, infer, monkeypatch
):
    add_models(model_repository, "a", "b")
    refused = []
    evict = LruPolicy.evict

    with serve(memory={"budget": "1MiB"}) as server:
        infer(server, "a")
        hoard.shut("a")
        late = []

        def evict_late(self, key):
            if key == "a" and not late:  # the model was idle when it was chosen
                late.append(ask(server.engine, recorder, "a", [1]))
                refused.append(evict(self, key))
                hoard.open("a")
                return refused[-1]
            return evict(self, key)

        monkeypatch.setattr(
            server._repository._models.memory.capacity,
            "_evict",
            evict_late.__get__(server._repository._residency),
        )
        assert infer(server, "b") == 2
        assert refused == [False]
        (responses,) = recorder.wait(*late)
        assert numbers(responses) == [[2]]


def test_a_growing_model_causes_evictions_of_idle_models(
    serve, model_repository, recorder, infer, hoard, monkeypatch
):
    monkeypatch.setattr("tritonpy_residency.memory_budget.MONITOR_INTERVAL_S", 0.01)
    monkeypatch.setattr("tritonpy.runners.memory_report.REFRESH_NS", 0)
    add_models(model_repository, "a", "b")
    with serve(memory={"budget": "2MiB"}) as server:
        infer(server, "b")
        infer(server, "a")
        hoard.shut("a")
        busy = ask(server.engine, recorder, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        hoard.grown["a"] = MIB
        hoard.wait(lambda: "b" not in hoard.held)
        hoard.open("a")
        recorder.wait(busy)


def test_a_metadata_query_loads_a_model_whose_files_define_no_inputs(
    serve, model_repository, hoard
):
    from .completing_backend import completing

    model_repository.add("a", 'backend: "completing"')
    with serve(backends={"completing": completing(hoard)}) as server:
        error = error_of(server.engine.model_metadata, "a")
        assert isinstance(error, Unavailable)
        assert error.retry_after == "1"
        hoard.wait(lambda: hoard.loads == ["a"])
        wait_until(lambda: index(server)[0][2] == "READY")
        assert [tensor.name for tensor in server.engine.model_metadata("a").inputs] == ["IN"]


def test_several_versions_are_loaded_and_evicted_together(serve, model_repository, infer, hoard):
    model_repository.add(
        "a",
        memory_config(memory_bytes="2MiB", more="version_policy { all {} }"),
        versions={1: {}, 2: {}},
    )
    add_models(model_repository, "b")
    with serve(memory={"budget": "2MiB"}) as server:
        assert server.engine.model_metadata("a").versions == ["1", "2"]
        assert infer(server, "a", 3, model_version=1) == 6
        assert hoard.held == {"a": 2 * MIB}
        assert infer(server, "b") == 2
        assert hoard.held == {"b": MIB}
        assert infer(server, "a", 3) == 6


def test_polls_update_the_list_of_lazy_models(serve, model_repository, infer, hoard):
    add_models(model_repository, "a")
    with serve(mode="poll", control={"interval_s": 3600}) as server:
        poll = server._repository.poll
        add_models(model_repository, "b")
        poll()
        assert [line[0] for line in index(server)] == ["a", "b"]
        assert hoard.loads == []
        model_repository.add("b", config_of("hoarder", datatype="TYPE_INT64"))
        poll()
        assert server.engine.model_metadata("b").inputs[0].datatype == "INT64"
        assert hoard.loads == []
        infer(server, "a")
        add_models(model_repository, "a", other="yes")
        poll()
        assert hoard.loads == ["a", "a"], "a loaded model is reloaded"
        shutil.rmtree(model_repository.path / "b")
        poll()
        assert isinstance(error_of(server.engine.model_metadata, "b"), TritonError)


def test_repositories_with_namespaces_have_lazy_models_of_one_name(
    serve, model_repository, tmp_path, infer, hoard
):
    from tritonpy_testing import ModelRepository

    other = ModelRepository(tmp_path / "other")
    add_models(model_repository, "a", "c")
    add_models(other, "a")
    urls = [{"url": str(model_repository.path)}, {"url": str(other.path)}]
    with serve(repositories=urls, model_namespacing=True, memory={"budget": "1MiB"}) as server:
        assert infer(server, "c") == 2
        assert infer(server, f"{other.path}::a") == 2
        assert len(hoard.held) == 1
        assert "namespace" in error_of(server.engine.model_metadata, "a").message
        assert infer(server, f"{model_repository.path}::a") == 2


def test_a_clients_configuration_survives_an_eviction(serve, model_repository, infer, hoard):
    import json

    from tritonpy.config import config_to_dict

    add_models(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "1MiB"}) as server:
        config = config_to_dict(server.engine.model_config("a"))
        config["max_batch_size"] = 0
        config["parameters"]["mark"] = {"string_value": "given"}
        server.engine.load_model("a", json.dumps(config))
        for name in "ba":
            infer(server, name)
        assert server.engine.model_config("a").parameters["mark"].string_value == "given"


@pytest.mark.parametrize("mode", ["explicit"])
def test_a_request_does_not_load_a_model_that_a_client_unloaded(
    serve, model_repository, recorder, infer, mode
):
    add_models(model_repository, "a")
    with serve(mode=mode, load=["a"]) as server:
        infer(server, "a")
        server.engine.unload_model("a")
        assert isinstance(error_of(ask, server.engine, recorder, "a", [1]), TritonError)
        server.engine.load_model("a")
        assert infer(server, "a") == 2
