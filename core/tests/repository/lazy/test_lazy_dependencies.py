"""Lazy models with dependents: ensembles, calls between models, and sequences."""

from __future__ import annotations

import numpy as np

from core.tests.toys.waiting import wait_until
from tritonpy.api.backend import Backend
from tritonpy.repository.model_table import LAZY
from tritonpy_types import Batch, InferRequest, InferResponse, SequenceInfo, Tensor
from tritonpy_types.errors import TritonError, Unavailable

from ...toys.calling import Caller
from ...toys.hoard import MIB, parameters
from ...toys.pinned import CONFIG as SEQUENCES
from ...toys.pinned import Accumulate, PinnedScheduler
from ...toys.serving import ask, config_of, numbers
from ..version_backend import error_of, index
from .conftest import memory_report, model_report
from .test_lazy_loading import add_models, error_in

PIPE = """
platform: "ensemble"
input {{ name: "IN" data_type: TYPE_INT32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_INT32 dims: 1 }}
ensemble_scheduling {{
  step {{ model_name: "{0}" model_version: -1 input_map {{ key: "IN" value: "IN" }} output_map {{ key: "OUT" value: "between" }} }}
  step {{ model_name: "{1}" model_version: -1 input_map {{ key: "IN" value: "between" }} output_map {{ key: "OUT" value: "OUT" }} }}
}}
{2}
"""


def test_a_lazy_ensemble_is_loaded_and_evicted_with_its_members(
    serve, model_repository, infer, hoard
):
    add_models(model_repository, "a", "b", "c", "d")
    model_repository.add("e", PIPE.format("a", "b", ""))
    with serve(memory={"budget": "2MiB"}) as server:
        assert [tensor.name for tensor in server.engine.model_metadata("e").inputs] == ["IN"]
        assert infer(server, "e", 3) == 12
        assert sorted(hoard.held) == ["a", "b"]
        assert infer(server, "c") == 2
        assert ("e", "1", "UNAVAILABLE", LAZY) in index(server)
        assert len(hoard.held) == 2
        assert infer(server, "d") == 2
        assert infer(server, "e", 3) == 12
        assert hoard.most == 2 * MIB


def test_members_of_an_ensemble_that_is_not_lazy_are_never_evicted(
    serve, model_repository, infer, recorder, hoard
):
    add_models(model_repository, "a", "b", "c")
    model_repository.add("e", PIPE.format("a", "b", parameters(lazy="false")))
    with serve(memory={"budget": "2MiB"}) as server:
        assert sorted(hoard.held) == ["a", "b"], (
            "the ensemble was loaded at the start, with its members"
        )
        error = error_in(recorder, ask(server.engine, recorder, "c", [1]))
        assert "2.0 MiB by models that cannot" in error.message
        assert infer(server, "e", 1) == 4


def test_members_of_an_ensemble_in_use_are_never_evicted(serve, model_repository, recorder, hoard):
    add_models(model_repository, "a", "b", "c")
    model_repository.add("e", PIPE.format("a", "b", ""))
    with serve(memory={"budget": "2MiB"}) as server:
        hoard.shut("b")
        busy = ask(server.engine, recorder, "e", [1])
        hoard.wait(lambda: hoard.inside == ["b"])
        waiting = ask(server.engine, recorder, "c", [1])
        wait_until(lambda: "reason" in model_report(server, "c"))
        assert sorted(hoard.held) == ["a", "b"], "a is idle, but the ensemble needs it"
        hoard.open("b")
        assert [numbers(each) for each in recorder.wait(busy, waiting, timeout_s=20)] == [
            [[4]],
            [[2]],
        ]


def test_two_ensembles_that_need_the_whole_budget_are_loaded_in_turn(
    serve, model_repository, recorder, hoard
):
    add_models(model_repository, "a", "b", "c", "d")
    model_repository.add("e", PIPE.format("a", "b", ""))
    model_repository.add("f", PIPE.format("c", "d", ""))
    with serve(memory={"budget": "2MiB"}) as server:
        requests = [
            ask(server.engine, recorder, "ef"[number % 2], [number]) for number in range(20)
        ]
        responses = recorder.wait(*requests, timeout_s=20)
        assert [numbers(each) for each in responses] == [[[4 * number]] for number in range(20)]
        assert hoard.most == 2 * MIB


def test_an_ensemble_that_does_not_fit_is_rejected_and_frees_its_members(
    serve, model_repository, recorder, infer, hoard
):
    add_models(model_repository, "a", "b")
    model_repository.add("e", PIPE.format("a", "b", ""))
    with serve(memory={"budget": "1MiB", "wait_s": 1, "retry_s": 0.01}) as server:
        error = error_in(recorder, ask(server.engine, recorder, "e", [1]))
        assert isinstance(error, Unavailable)
        assert "the memory budget is 1.0 MiB" in error.message
        assert infer(server, "b") == 2, "the loaded member was evicted"
        assert hoard.held == {"b": MIB}


def test_members_used_only_by_a_lazy_ensemble_are_loaded_and_evicted_with_it(
    serve, model_repository, infer, hoard
):
    add_models(model_repository, "a", "b", "c")
    model_repository.add("e", PIPE.format("a", "b", parameters(lazy="true")))
    with serve(
        mode="explicit", load=["e", "c"], memory={"lazy": ["c"], "budget": "2MiB"}
    ) as server:
        assert infer(server, "e", 1) == 4
        assert infer(server, "c") == 2
        assert hoard.most == 2 * MIB


def test_a_call_from_a_model_loads_a_lazy_model(serve, model_repository, infer, hoard):
    add_models(model_repository, "a")
    model_repository.add("caller", config_of("caller", more=parameters(memory_bytes="1MiB")))
    with serve(backends={"caller": Caller}, memory={"budget": "2MiB"}) as server:
        assert infer(server, "caller", 3, parameters={"calls": "a"}) == 7
        assert hoard.loads == ["a"]


def test_a_call_is_rejected_immediately_if_the_caller_holds_the_needed_memory(
    serve, model_repository, recorder, infer, hoard
):
    add_models(model_repository, "a")
    model_repository.add("caller", config_of("caller", more=parameters(memory_bytes="1MiB")))
    with serve(backends={"caller": Caller}, memory={"budget": "1MiB"}) as server:
        error = error_in(
            recorder, ask(server.engine, recorder, "caller", [3], parameters={"calls": "a"})
        )
        assert "the memory budget is 1.0 MiB" in error.message
        assert hoard.loads == []
        assert memory_report(server)["waiting_requests"] == 0


class Live(PinnedScheduler):
    """A scheduler that reports its sequences as active."""

    def is_live(self):
        return bool(self._slots)


def test_a_model_with_active_sequences_is_never_evicted_and_requests_keep_their_order(
    serve, model_repository, recorder, hoard
):
    add_models(model_repository, "b")
    model_repository.add("s", SEQUENCES + parameters(memory_bytes="1MiB"))
    plugins = {"backends": {"accumulate": Accumulate}, "schedulers": {"sequence": Live}}
    with serve(memory={"budget": "1MiB"}, **plugins) as server:

        def send(value, **flags):
            array = np.array([[value]], np.int32)
            sequence = SequenceInfo(7, **flags)
            request = InferRequest(
                "s", {"IN": Tensor.from_numpy("IN", array)}, recorder.sink, sequence=sequence
            )
            server.engine.infer(request)
            return request

        requests = [send(1, start=True), send(10), send(100)]
        assert [numbers(each) for each in recorder.wait(*requests, timeout_s=20)] == [
            [[1]],
            [[11]],
            [[111]],
        ]
        waiting = ask(server.engine, recorder, "b", [1])
        wait_until(lambda: "reason" in model_report(server, "b"))
        assert hoard.held == {}
        assert [numbers(each) for each in recorder.wait(send(1000, end=True))] == [[[1111]]]
        assert [numbers(each) for each in recorder.wait(waiting, timeout_s=20)] == [[[2]]]


def test_an_unloaded_decoupled_model_rejects_callers_that_take_one_response(
    serve, model_repository, recorder, hoard
):
    class Twice(Backend):
        def execute(self, batch: Batch) -> None:
            for request in batch.requests:
                for _ in range(2):
                    request.respond(
                        InferResponse(
                            [Tensor.from_numpy("OUT", np.array([1], np.int32))], final=False
                        )
                    )
                request.respond(InferResponse((), empty=True))

    model_repository.add(
        "a", config_of("twice", more="model_transaction_policy { decoupled: true }")
    )
    with serve(backends={"twice": Twice}) as server:
        error = error_of(ask, server.engine, recorder, "a", [1])
        assert isinstance(error, TritonError)
        assert "accepts only one response" in error.message
        request = ask(server.engine, recorder, "a", [1], accepts_decoupled=True)
        (responses,) = recorder.wait(request, timeout_s=20)
        assert len(responses) == 3
