from __future__ import annotations

import threading

import pytest

from tritonpy.clock import epoch_ms
from tritonpy.errors import NotFound, Unavailable
from tritonpy.repository.table import LAZY

from ...toys.hoard import MIB, hoarding
from ...toys.serving import ask, numbers
from ..teller import error_of, index
from .asking import ask_again, error_in, one_mib, wait_for
from .conftest import model, told


def test_a_lazy_model_is_listed_and_known_and_not_loaded(serve, model_repository, hoard):
    one_mib(model_repository, "a")
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


def test_a_version_that_a_lazy_model_has_not_is_not_there(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a")
    with serve() as server:
        assert isinstance(error_of(server.engine.model_config, "a", 2), NotFound)
        assert isinstance(error_of(server.engine.is_model_ready, "a", 2), NotFound)
        with pytest.raises(NotFound):
            ask(server.engine, witness, "a", [1], model_version=2)
        assert hoard.loads == []


def test_the_first_request_loads_its_model_and_no_other(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a", "b")
    with serve() as server:
        assert answered(server, "a", 4) == 8
        assert index(server, ready=True) == [("a", "1", "READY", "")]
        assert answered(server, "a", 5) == 10
        assert hoard.loads == ["a"]
        assert (told(server)["hits"], told(server)["misses"]) == (1, 1)


def test_a_model_says_itself_that_it_is_lazy_and_the_server_needs_no_word_of_it(
    model_repository, serve, answered, hoard
):
    one_mib(model_repository, "a", lazy="true")
    one_mib(model_repository, "b")
    with serve(memory={"lazy": []}) as server:
        assert hoard.loads == ["b"]
        assert answered(server, "a") == 2


def test_a_model_says_that_it_is_not_lazy_though_the_server_would_have_it(model_repository, serve, hoard):
    one_mib(model_repository, "a", lazy="false")
    with serve():
        assert hoard.loads == ["a"]


def test_a_model_that_says_neither_yes_nor_no_fails_at_the_start(model_repository, serve):
    one_mib(model_repository, "a", lazy="perhaps")
    with serve(exit_on_error=False) as server:
        assert list(server.failures) == ["a"]
        assert "perhaps" in server.failures["a"].message


def test_two_hundred_requests_for_one_cold_model_wait_for_one_load(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a")
    with serve() as server:
        hoard.shut("load a")
        requests = []
        guard = threading.Lock()

        def client(number):
            request = ask(server.engine, witness, "a", [number])
            with guard:
                requests.append((number, request))

        clients = [threading.Thread(target=client, args=(number,)) for number in range(200)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        assert told(server)["waiting_requests"] == 200
        hoard.open("load a")
        answers = witness.wait(*[request for _, request in requests], timeout_s=20)
        assert [numbers(each) for each in answers] == [[[2 * number]] for number, _ in requests]
        assert hoard.loads == ["a"]
        assert (told(server)["misses"], told(server)["waiting_requests"]) == (200, 0)


def test_the_least_recently_used_model_makes_room(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a", "b", "c")
    with serve(memory={"budget": "2MiB"}) as server:
        for name in ("a", "b"):
            answered(server, name)
        now = epoch_ms()
        wait_for(lambda: epoch_ms() > now)  # the time of the last use is counted in milliseconds
        answered(server, "a")
        answered(server, "c")
        assert sorted(hoard.held) == ["a", "c"]
        assert index(server)[1] == ("b", "1", "UNAVAILABLE", LAZY)
        assert answered(server, "b") == 2
        assert hoard.most == 2 * MIB
        assert model(server, "b")["evictions"] == 1


def test_a_model_in_use_never_makes_room_and_the_request_waits_until_it_is_idle(
    serve, model_repository, witness, answered, hoard
):
    one_mib(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, witness, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = ask(server.engine, witness, "b", [2])
        wait_for(lambda: "of which 1.0 MiB are held" in model(server, "b").get("reason", ""))
        assert hoard.held == {"a": MIB}
        hoard.open("a")
        assert [numbers(each) for each in witness.wait(busy, waiting, timeout_s=20)] == [[[2]], [[4]]]
        assert hoard.held == {"b": MIB}
        assert hoard.most == MIB


def test_a_pinned_model_never_makes_room_and_the_request_is_told_so_at_once(
    serve, model_repository, witness, answered, hoard
):
    one_mib(model_repository, "a", pinned="true")
    one_mib(model_repository, "b")
    with serve(memory={"budget": "1MiB"}) as server:
        answered(server, "a")
        error = error_in(witness, ask(server.engine, witness, "b", [2]))
        assert isinstance(error, Unavailable)
        assert error.retry_after == "1"
        assert "needs 1.0 MiB" in error.message
        assert "1.0 MiB by models that cannot" in error.message
        assert hoard.held == {"a": MIB}


def test_a_model_larger_than_the_budget_is_refused_with_the_numbers(serve, model_repository, witness, hoard):
    model_repository.add("a", hoarding(memory_bytes="5MiB"))
    with serve(memory={"budget": "2MiB"}) as server:
        error = error_in(witness, ask(server.engine, witness, "a", [1]))
        assert "model 'a' could not be loaded: it needs 5.0 MiB, and the memory budget is 2.0 MiB" in error.message
        assert hoard.loads == []


def test_a_model_that_turns_out_to_be_too_large_is_unloaded_again_with_the_numbers_and_not_loaded_again(
    serve, model_repository, witness, hoard
):
    model_repository.add("a", hoarding(size=5 * MIB))
    with serve(memory={"budget": "2MiB", "retry_s": 0.01}) as server:
        for _ in range(2):
            error = error_in(witness, ask_again(server, witness, "a"))
            assert "5.0 MiB" in error.message
            assert "2.0 MiB" in error.message
        hoard.wait(lambda: not hoard.held)
        assert hoard.loads == ["a"]
        assert told(server)["held"] == {"all": 0}


def test_a_model_that_turns_out_to_be_large_has_others_make_room(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a", "b")
    model_repository.add("c", hoarding(size=2 * MIB))
    with serve(memory={"budget": "3MiB"}) as server:
        for name in "abc":
            answered(server, name)
        assert sorted(hoard.held) == ["b", "c"]
        assert told(server)["held"] == {"all": 3 * MIB, "cpu": 3 * MIB}


def test_what_was_measured_is_remembered_while_the_model_is_not_loaded(serve, model_repository, answered, hoard):
    model_repository.add("a", hoarding(size=2 * MIB))
    one_mib(model_repository, "b", "c")
    with serve(memory={"budget": "2MiB"}) as server:
        for name in "aba":
            answered(server, name)
        answered(server, "b")
        answered(server, "c")
        assert hoard.most == 2 * MIB, "after the first load it was known what it takes"
