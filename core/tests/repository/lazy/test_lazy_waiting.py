from __future__ import annotations

from core.tests.toys.waiting import wait_until
from tritonpy_types.errors import Cancelled, TritonError, Unavailable

from ...toys.hoard import MIB, memory_config
from ...toys.serving import ask, numbers
from ..version_backend import error_of, index
from .conftest import memory_report, model_report
from .lazy_requests import add_models, error_in, retry_request


def test_with_first_request_refuse_clients_retry_and_the_model_is_kept_for_them(
    serve, model_repository, infer, recorder, hoard
):
    add_models(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB", "first_request": "refuse", "retry_s": 2}) as server:
        error = error_of(ask, server.engine, recorder, "a", [1])
        assert isinstance(error, Unavailable)
        assert error.retry_after == "2"
        wait_until(lambda: index(server)[0][2] == "READY")
        error_of(ask, server.engine, recorder, "b", [1])
        wait_until(lambda: "idle" in model_report(server, "b").get("reason", ""))
        assert hoard.held == {"a": MIB}, "a client that retries finds it loaded"
        assert infer(server, "a") == 2
        wait_until(lambda: index(server)[1][2] == "READY")
        assert hoard.held == {"b": MIB}
        assert memory_report(server)["refusals"] == 2


def test_a_failed_load_fails_all_waiting_requests_and_is_not_retried_for_each(
    serve, model_repository, recorder, infer, hoard
):
    add_models(model_repository, "a")
    hoard.broken.add("a")
    with serve(memory={"retry_s": 60}) as server:
        hoard.shut("load a")
        requests = [ask(server.engine, recorder, "a", [number]) for number in range(5)]
        hoard.open("load a")
        for request in requests:
            error = error_in(recorder, request)
            assert isinstance(error, Unavailable)
            assert "a is broken" in error.message
        wait_until(lambda: not server.engine.is_model_ready("a"))
        for _ in range(20):
            error = error_of(ask, server.engine, recorder, "a", [1])
            assert "a is broken" in error.message
            assert int(error.retry_after) > 1
        assert hoard.loads == ["a"]
        assert "a is broken" in index(server)[0][3]
        assert server.engine.is_ready()


def test_a_failed_load_is_retried_later(serve, model_repository, recorder, hoard):
    add_models(model_repository, "a")
    hoard.broken.add("a")
    with serve(memory={"retry_s": 0.01}) as server:
        error_in(recorder, ask(server.engine, recorder, "a", [1]))
        hoard.broken.clear()
        (responses,) = recorder.wait(retry_request(server, recorder, "a", 3), timeout_s=20)
        assert numbers(responses) == [[6]]
        assert server.engine.is_model_ready("a")


def test_two_models_that_need_the_whole_budget_are_loaded_in_turn(
    serve, model_repository, recorder, hoard
):
    model_repository.add("a", memory_config(memory_bytes="2MiB", size=2 * MIB))
    model_repository.add("b", memory_config(memory_bytes="2MiB", size=2 * MIB))
    with serve(memory={"budget": "2MiB"}) as server:
        requests = [
            ask(server.engine, recorder, "ab"[number % 2], [number]) for number in range(40)
        ]
        responses = recorder.wait(*requests, timeout_s=20)
        assert [numbers(each) for each in responses] == [[[2 * number]] for number in range(40)]
        assert hoard.most == 2 * MIB
        assert len(hoard.loads) <= 40


def test_unloading_a_lazy_model_rejects_its_waiting_requests(
    serve, model_repository, recorder, hoard
):
    add_models(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, recorder, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = ask(server.engine, recorder, "b", [2])
        wait_until(lambda: "reason" in model_report(server, "b"))
        server.engine.unload_model("b")
        assert "was unloaded" in error_in(recorder, waiting).message
        assert isinstance(error_of(ask, server.engine, recorder, "b", [1]), TritonError)
        hoard.open("a")
        recorder.wait(busy)
        assert hoard.loads == ["a"]


def test_a_stopping_server_rejects_waiting_requests(serve, model_repository, recorder, hoard):
    add_models(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, recorder, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = ask(server.engine, recorder, "b", [2])
        server._repository.stop_loading()
        assert "Server is stopping" in error_in(recorder, waiting).message
        hoard.open("a")
        recorder.wait(busy)
    assert hoard.held == {}


def test_a_cancelled_waiting_request_ends_immediately_and_needs_no_load(
    serve, model_repository, recorder, hoard
):
    add_models(model_repository, "a", "b")
    with serve(memory={"budget": "1MiB"}) as server:
        hoard.shut("a")
        busy = ask(server.engine, recorder, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        waiting = [ask(server.engine, recorder, "b", [2]) for _ in range(5)]
        for request in waiting:
            request.cancel()
            assert isinstance(error_in(recorder, request), Cancelled)
        assert memory_report(server)["waiting_requests"] == 0
        wait_until(lambda: memory_report(server)["waiting_loads"] == 0)
        hoard.open("a")
        recorder.wait(busy)
        assert hoard.loads == ["a"]
        assert server.engine.is_model_ready("b"), "nothing failed"


def test_a_request_whose_deadline_passes_while_it_waits_is_cancelled(
    serve, model_repository, recorder, hoard
):
    from tritonpy_types.clock import now_ns

    add_models(model_repository, "a")
    with serve() as server:
        hoard.shut("load a")
        request = ask(server.engine, recorder, "a", [1], deadline_ns=now_ns() + 50_000_000)
        assert isinstance(error_in(recorder, request), Cancelled)
        hoard.open("load a")


def test_a_request_waits_up_to_the_time_limit(serve, model_repository, recorder, hoard):
    add_models(model_repository, "a")
    with serve(memory={"wait_s": 0.05}) as server:
        hoard.shut("load a")
        error = error_in(recorder, ask(server.engine, recorder, "a", [1]))
        assert "was not loaded within 0.05 s" in error.message
        assert error.retry_after == "1"
        hoard.open("load a")


def test_a_load_waits_for_memory_up_to_the_time_limit(serve, model_repository, recorder, hoard):
    add_models(model_repository, "a", "b")
    with serve(mode="explicit", load=["*"], memory={"budget": "1MiB", "wait_s": 0.1}) as server:
        server.engine.load_model("a")  # by a client, because a request has a short time limit here
        hoard.shut("a")
        busy = ask(server.engine, recorder, "a", [1])
        hoard.wait(lambda: hoard.inside == ["a"])
        error = error_in(recorder, ask(server.engine, recorder, "b", [2]))
        assert "the memory budget is 1.0 MiB, of which 1.0 MiB are held" in error.message
        hoard.open("a")
        recorder.wait(busy)
