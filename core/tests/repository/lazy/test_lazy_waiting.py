from __future__ import annotations

from tritonpy.errors import Cancelled, TritonError, Unavailable

from ...toys.hoard import MIB, hoarding
from ...toys.serving import ask, numbers
from ..teller import error_of, index
from .asking import ask_again, error_in, one_mib, wait_for
from .conftest import model, told


def test_where_requests_do_not_wait_they_are_told_to_come_again_and_the_model_stays_for_them(
    serve, model_repository, answered, witness, hoard
):
    one_mib(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB", "first_request": "refuse", "retry_s": 2}) as server:
        error = error_of(ask, server.engine, witness, "a", [1])
        assert isinstance(error, Unavailable)
        assert error.retry_after == "2"
        wait_for(lambda: index(server)[0][2] == "READY")
        error_of(ask, server.engine, witness, "b", [1])
        wait_for(lambda: "idle" in model(server, "b").get("reason", ""))
        assert hoard.held == {"a": MIB}, "who was told to come again finds it"
        assert answered(server, "a") == 2
        wait_for(lambda: index(server)[1][2] == "READY")
        assert hoard.held == {"b": MIB}
        assert told(server)["refusals"] == 2


def test_a_load_that_fails_answers_all_who_wait_and_is_not_tried_again_for_each(
    serve, model_repository, witness, answered, hoard
):
    one_mib(model_repository, "a")
    hoard.broken.add("a")
    with serve(memory={"retry_s": 60}) as server:
        hoard.shut("load a")
        requests = [ask(server.engine, witness, "a", [number]) for number in range(5)]
        hoard.open("load a")
        for request in requests:
            error = error_in(witness, request)
            assert isinstance(error, Unavailable)
            assert "a is broken" in error.message
        wait_for(lambda: not server.engine.is_model_ready("a"))
        for _ in range(20):
            error = error_of(ask, server.engine, witness, "a", [1])
            assert "a is broken" in error.message
            assert int(error.retry_after) > 1
        assert hoard.loads == ["a"]
        assert "a is broken" in index(server)[0][3]
        assert server.engine.is_ready()


def test_a_load_that_failed_is_tried_again_later(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a")
    hoard.broken.add("a")
    with serve(memory={"retry_s": 0.01}) as server:
        error_in(witness, ask(server.engine, witness, "a", [1]))
        hoard.broken.clear()
        (answers,) = witness.wait(ask_again(server, witness, "a", 3), timeout_s=20)
        assert numbers(answers) == [[6]]
        assert server.engine.is_model_ready("a")


def test_two_models_that_each_need_all_the_room_are_loaded_by_turns_and_every_request_is_answered(
    serve, model_repository, witness, hoard
):
    model_repository.add("a", hoarding(memory_bytes="2MiB", size=2 * MIB))
    model_repository.add("b", hoarding(memory_bytes="2MiB", size=2 * MIB))
    with serve(memory={"budget": "2MiB"}) as server:
        requests = [ask(server.engine, witness, "ab"[number % 2], [number]) for number in range(40)]
        answers = witness.wait(*requests, timeout_s=20)
        assert [numbers(each) for each in answers] == [[[2 * number]] for number in range(40)]
        assert hoard.most == 2 * MIB
        assert len(hoard.loads) <= 40


def test_a_client_that_unloads_a_model_has_those_refused_that_wait_for_it(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, witness, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = ask(server.engine, witness, "b", [2])
        wait_for(lambda: "reason" in model(server, "b"))
        server.engine.unload_model("b")
        assert "was unloaded" in error_in(witness, waiting).message
        assert isinstance(error_of(ask, server.engine, witness, "b", [1]), TritonError)
        hoard.open("a")
        witness.wait(busy)
        assert hoard.loads == ["a"]


def test_a_server_that_stops_refuses_what_waits(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, witness, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = ask(server.engine, witness, "b", [2])
        server._repository.stop_loading()
        assert "Server is stopping" in error_in(witness, waiting).message
        hoard.open("a")
        witness.wait(busy)
    assert hoard.held == {}


def test_a_request_that_is_cancelled_while_it_waits_is_answered_at_once_and_nothing_is_loaded_for_nobody(
    serve, model_repository, witness, hoard
):
    one_mib(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, witness, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = [ask(server.engine, witness, "b", [2]) for _ in range(5)]
        for request in waiting:
            request.cancel()
            assert isinstance(error_in(witness, request), Cancelled)
        assert told(server)["waiting_requests"] == 0
        wait_for(lambda: told(server)["waiting_loads"] == 0)
        hoard.open("a")
        witness.wait(busy)
        assert hoard.loads == ["a"]
        assert server.engine.is_model_ready("b"), "nothing failed"


def test_a_request_whose_deadline_passes_while_it_waits_is_cancelled(serve, model_repository, witness, hoard):
    from tritonpy.clock import now_ns

    one_mib(model_repository, "a")
    with serve() as server:
        hoard.shut("load a")
        request = ask(server.engine, witness, "a", [1], deadline_ns=now_ns() + 50_000_000)
        assert isinstance(error_in(witness, request), Cancelled)
        hoard.open("load a")


def test_a_request_waits_no_longer_than_it_may(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a")
    with serve(memory={"wait_s": 0.05}) as server:
        hoard.shut("load a")
        error = error_in(witness, ask(server.engine, witness, "a", [1]))
        assert "was not loaded within 0.05 s" in error.message
        assert error.retry_after == "1"
        hoard.open("load a")


def test_a_load_waits_for_room_no_longer_than_it_may(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "1MiB", "wait_s": 0.1}) as server:
        server.engine.load_model("a")  # by a client: a request would not wait for it for long
        hoard.shut("a")
        busy = ask(server.engine, witness, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        error = error_in(witness, ask(server.engine, witness, "b", [2]))
        assert "the memory budget is 1.0 MiB, of which 1.0 MiB are held" in error.message
        hoard.open("a")
        witness.wait(busy)
