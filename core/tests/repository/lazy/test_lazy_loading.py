from __future__ import annotations

import threading

import pytest

from core.tests.toys.waiting import wait_until
from tritonpy.repository.model_table import LAZY
from tritonpy_types.clock import epoch_ms
from tritonpy_types.errors import NotFound, Unavailable

from ...toys.hoard import MIB, memory_config
from ...toys.serving import ask, numbers
from ..version_backend import error_of, index
from .conftest import memory_report, model_report
from .lazy_requests import add_models, error_in, retry_request


def test_a_lazy_model_is_listed_with_metadata_and_not_loaded(serve, model_repository, hoard):
    add_models(model_repository, "a")
    with serve() as server:
        engine = server.engine
        assert index(server) == [("a", "1", "UNAVAILABLE", LAZY)]
        assert index(server, ready=True) == []
        assert engine.is_ready()
        assert engine.is_model_ready("a")
        assert engine.is_model_ready("a", 1)
        assert [tensor.name for tensor in engine.model_metadata("a").inputs] == ["IN"]
        assert engine.model_metadata("a").versions == ["1"]
        assert engine.model_config("a").name == "a"
        assert engine.statistics("a") == []
        assert hoard.loads == []


def test_an_unknown_version_of_a_lazy_model_is_not_found(serve, model_repository, recorder, hoard):
    add_models(model_repository, "a")
    with serve() as server:
        assert isinstance(error_of(server.engine.model_config, "a", 2), NotFound)
        assert isinstance(error_of(server.engine.is_model_ready, "a", 2), NotFound)
        with pytest.raises(NotFound):
            ask(server.engine, recorder, "a", [1], model_version=2)
        assert hoard.loads == []


def test_the_first_request_loads_its_model_and_no_other(serve, model_repository, infer, hoard):
    add_models(model_repository, "a", "b")
    with serve() as server:
        assert infer(server, "a", 4) == 8
        assert index(server, ready=True) == [("a", "1", "READY", "")]
        assert infer(server, "a", 5) == 10
        assert hoard.loads == ["a"]
        assert (memory_report(server)["hits"], memory_report(server)["misses"]) == (1, 1)


def test_a_model_can_be_lazy_without_server_settings(model_repository, serve, infer, hoard):
    add_models(model_repository, "a", lazy="true")
    add_models(model_repository, "b")
    with serve(memory={"lazy": []}) as server:
        assert hoard.loads == ["b"]
        assert infer(server, "a") == 2


def test_a_models_configuration_overrides_the_servers_lazy_patterns(model_repository, serve, hoard):
    add_models(model_repository, "a", lazy="false")
    with serve():
        assert hoard.loads == ["a"]


def test_an_invalid_lazy_parameter_fails_the_load(model_repository, serve):
    add_models(model_repository, "a", lazy="perhaps")
    with serve(exit_on_error=False) as server:
        assert list(server.failures) == ["a"]
        assert "perhaps" in server.failures["a"].message


def test_two_hundred_requests_for_one_lazy_model_wait_for_one_load(
    serve, model_repository, recorder, hoard
):
    add_models(model_repository, "a")
    with serve() as server:
        hoard.shut("load a")
        requests = []
        guard = threading.Lock()

        def client(number):
            request = ask(server.engine, recorder, "a", [number])
            with guard:
                requests.append((number, request))

        clients = [threading.Thread(target=client, args=(number,)) for number in range(200)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        assert memory_report(server)["waiting_requests"] == 200
        hoard.open("load a")
        responses = recorder.wait(*[request for _, request in requests], timeout_s=20)
        assert [numbers(each) for each in responses] == [[[2 * number]] for number, _ in requests]
        assert hoard.loads == ["a"]
        assert (memory_report(server)["misses"], memory_report(server)["waiting_requests"]) == (
            200,
            0,
        )


def test_the_least_recently_used_model_is_evicted(serve, model_repository, infer, hoard):
    add_models(model_repository, "a", "b", "c")
    with serve(memory={"budget": "2MiB"}) as server:
        for name in ("a", "b"):
            infer(server, name)
        now = epoch_ms()
        wait_until(
            lambda: epoch_ms() > now
        )  # times of last use have a resolution of one millisecond
        infer(server, "a")
        infer(server, "c")
        assert sorted(hoard.held) == ["a", "c"]
        assert index(server)[1] == ("b", "1", "UNAVAILABLE", LAZY)
        assert infer(server, "b") == 2
        assert hoard.most == 2 * MIB
        assert model_report(server, "b")["evictions"] == 1


def test_a_model_in_use_is_never_evicted_and_the_request_waits(
    serve, model_repository, recorder, infer, hoard
):
    add_models(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, recorder, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = ask(server.engine, recorder, "b", [2])
        wait_until(
            lambda: "of which 1.0 MiB are held" in model_report(server, "b").get("reason", "")
        )
        assert hoard.held == {"a": MIB}
        hoard.open("a")
        assert [numbers(each) for each in recorder.wait(busy, waiting, timeout_s=20)] == [
            [[2]],
            [[4]],
        ]
        assert hoard.held == {"b": MIB}
        assert hoard.most == MIB


def test_a_pinned_model_is_never_evicted_and_the_request_is_rejected_immediately(
    serve, model_repository, recorder, infer, hoard
):
    add_models(model_repository, "a", pinned="true")
    add_models(model_repository, "b")
    with serve(memory={"budget": "1MiB"}) as server:
        infer(server, "a")
        error = error_in(recorder, ask(server.engine, recorder, "b", [2]))
        assert isinstance(error, Unavailable)
        assert error.retry_after == "1"
        assert "needs 1.0 MiB" in error.message
        assert "1.0 MiB by models that cannot" in error.message
        assert hoard.held == {"a": MIB}


def test_a_model_larger_than_the_budget_is_refused_with_the_numbers(
    serve, model_repository, recorder, hoard
):
    model_repository.add("a", memory_config(memory_bytes="5MiB"))
    with serve(memory={"budget": "2MiB"}) as server:
        error = error_in(recorder, ask(server.engine, recorder, "a", [1]))
        assert (
            "model 'a' could not be loaded: it needs 5.0 MiB, and the memory budget is 2.0 MiB"
            in error.message
        )
        assert hoard.loads == []


def test_a_model_larger_than_the_budget_is_unloaded_and_not_loaded_again(
    serve, model_repository, recorder, hoard
):
    model_repository.add("a", memory_config(size=5 * MIB))
    with serve(memory={"budget": "2MiB", "retry_s": 0.01}) as server:
        for _ in range(2):
            error = error_in(recorder, retry_request(server, recorder, "a"))
            assert "5.0 MiB" in error.message
            assert "2.0 MiB" in error.message
        hoard.wait(lambda: not hoard.held)
        assert hoard.loads == ["a"]
        assert memory_report(server)["held"] == {"all": 0}


def test_a_model_larger_than_estimated_causes_evictions(serve, model_repository, infer, hoard):
    add_models(model_repository, "a", "b")
    model_repository.add("c", memory_config(size=2 * MIB))
    with serve(memory={"budget": "3MiB"}) as server:
        for name in "abc":
            infer(server, name)
        assert sorted(hoard.held) == ["b", "c"]
        assert memory_report(server)["held"] == {"all": 3 * MIB, "cpu": 3 * MIB}


def test_measured_sizes_are_remembered_while_the_model_is_not_loaded(
    serve, model_repository, infer, hoard
):
    model_repository.add("a", memory_config(size=2 * MIB))
    add_models(model_repository, "b", "c")
    with serve(memory={"budget": "2MiB"}) as server:
        for name in "aba":
            infer(server, name)
        infer(server, "b")
        infer(server, "c")
        assert hoard.most == 2 * MIB, "its size was known after the first load"
