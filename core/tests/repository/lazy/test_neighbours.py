"""Lazy models that others use: members of ensembles, models that models call, and sequences."""

from __future__ import annotations

import numpy as np

from tritonpy.api.backend import Backend
from tritonpy.errors import TritonError, Unavailable
from tritonpy.repository.table import LAZY
from tritonpy.types import Batch, InferRequest, InferResponse, SequenceInfo, Tensor

from ...toys.calling import Caller
from ...toys.hoard import MIB, parameters
from ...toys.pinned import CONFIG as SEQUENCES
from ...toys.pinned import Accumulate, PinnedScheduler
from ...toys.serving import ask, config_of, numbers
from ..teller import error_of, index
from .conftest import model, told
from .test_lazy_loading import error_in, one_mib, wait_for

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


def test_a_lazy_ensemble_is_loaded_with_its_members_and_goes_with_them(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a", "b", "c", "d")
    model_repository.add("e", PIPE.format("a", "b", ""))
    with serve(memory={"budget": "2MiB"}) as server:
        assert [tensor.name for tensor in server.engine.model_metadata("e").inputs] == ["IN"]
        assert answered(server, "e", 3) == 12
        assert sorted(hoard.held) == ["a", "b"]
        assert answered(server, "c") == 2
        assert ("e", "1", "UNAVAILABLE", LAZY) in index(server)
        assert len(hoard.held) == 2
        assert answered(server, "d") == 2
        assert answered(server, "e", 3) == 12
        assert hoard.most == 2 * MIB


def test_a_member_of_a_loaded_ensemble_that_is_not_lazy_never_makes_room(
    serve, model_repository, answered, witness, hoard
):
    one_mib(model_repository, "a", "b", "c")
    model_repository.add("e", PIPE.format("a", "b", parameters(lazy="false")))
    with serve(memory={"budget": "2MiB"}) as server:
        assert sorted(hoard.held) == ["a", "b"], "it was loaded at the start, and they with it"
        error = error_in(witness, ask(server.engine, witness, "c", [1]))
        assert "2.0 MiB by models that cannot" in error.message
        assert answered(server, "e", 1) == 4


def test_the_members_of_an_ensemble_in_use_never_make_room(serve, model_repository, witness, hoard):
    one_mib(model_repository, "a", "b", "c")
    model_repository.add("e", PIPE.format("a", "b", ""))
    with serve(memory={"budget": "2MiB"}) as server:
        hoard.shut("b")
        busy = ask(server.engine, witness, "e", [1])
        hoard.wait(lambda: hoard.inside == ["b"])
        waiting = ask(server.engine, witness, "c", [1])
        wait_for(lambda: "reason" in model(server, "c"))
        assert sorted(hoard.held) == ["a", "b"], "a is idle by now, and the ensemble stands on it"
        hoard.open("b")
        assert [numbers(each) for each in witness.wait(busy, waiting, timeout_s=20)] == [[[4]], [[2]]]


def test_two_ensembles_that_each_need_all_the_room_are_loaded_one_after_the_other(
    serve, model_repository, witness, hoard
):
    one_mib(model_repository, "a", "b", "c", "d")
    model_repository.add("e", PIPE.format("a", "b", ""))
    model_repository.add("f", PIPE.format("c", "d", ""))
    with serve(memory={"budget": "2MiB"}) as server:
        requests = [ask(server.engine, witness, "ef"[number % 2], [number]) for number in range(20)]
        answers = witness.wait(*requests, timeout_s=20)
        assert [numbers(each) for each in answers] == [[[4 * number]] for number in range(20)]
        assert hoard.most == 2 * MIB


def test_an_ensemble_for_which_there_is_no_room_is_refused_and_wants_nothing_any_more(
    serve, model_repository, witness, answered, hoard
):
    one_mib(model_repository, "a", "b")
    model_repository.add("e", PIPE.format("a", "b", ""))
    with serve(memory={"budget": "1MiB", "wait_s": 1, "retry_s": 0.01}) as server:
        error = error_in(witness, ask(server.engine, witness, "e", [1]))
        assert isinstance(error, Unavailable)
        assert "the memory budget is 1.0 MiB" in error.message
        assert answered(server, "b") == 2, "the member that had been loaded made room"
        assert hoard.held == {"b": MIB}


def test_what_only_a_lazy_ensemble_stands_on_comes_and_goes_with_it(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a", "b", "c")
    model_repository.add("e", PIPE.format("a", "b", parameters(lazy="true")))
    with serve(mode="explicit", load=["e", "c"], memory={"lazy": ["c"], "budget": "2MiB"}) as server:
        assert answered(server, "e", 1) == 4
        assert answered(server, "c") == 2
        assert hoard.most == 2 * MIB


def test_a_model_that_calls_a_cold_one_has_it_loaded(serve, model_repository, answered, hoard):
    one_mib(model_repository, "a")
    model_repository.add("caller", config_of("caller", more=parameters(memory_bytes="1MiB")))
    with serve(backends={"caller": Caller}, memory={"budget": "2MiB"}) as server:
        assert answered(server, "caller", 3, parameters={"calls": "a"}) == 7
        assert hoard.loads == ["a"]


def test_a_model_that_holds_the_room_for_the_one_that_it_calls_is_told_so_at_once(
    serve, model_repository, witness, answered, hoard
):
    one_mib(model_repository, "a")
    model_repository.add("caller", config_of("caller", more=parameters(memory_bytes="1MiB")))
    with serve(backends={"caller": Caller}, memory={"budget": "1MiB"}) as server:
        error = error_in(witness, ask(server.engine, witness, "caller", [3], parameters={"calls": "a"}))
        assert "the memory budget is 1.0 MiB" in error.message
        assert hoard.loads == []
        assert told(server)["waiting_requests"] == 0


class Live(PinnedScheduler):
    """Says that its sequences live."""

    def is_live(self):
        return bool(self._places)


def test_a_model_with_live_sequences_never_makes_room_and_its_first_requests_keep_their_order(
    serve, model_repository, witness, hoard
):
    one_mib(model_repository, "b")
    model_repository.add("s", SEQUENCES + parameters(memory_bytes="1MiB"))
    plugins = {"backends": {"accumulate": Accumulate}, "schedulers": {"sequence": Live}}
    with serve(memory={"budget": "1MiB"}, **plugins) as server:

        def send(value, **flags):
            array = np.array([[value]], np.int32)
            sequence = SequenceInfo(7, **flags)
            request = InferRequest("s", {"IN": Tensor.from_numpy("IN", array)}, witness.sink, sequence=sequence)
            server.engine.infer(request)
            return request

        requests = [send(1, start=True), send(10), send(100)]
        assert [numbers(each) for each in witness.wait(*requests, timeout_s=20)] == [[[1]], [[11]], [[111]]]
        waiting = ask(server.engine, witness, "b", [1])
        wait_for(lambda: "reason" in model(server, "b"))
        assert hoard.held == {}
        assert [numbers(each) for each in witness.wait(send(1000, end=True))] == [[[1111]]]
        assert [numbers(each) for each in witness.wait(waiting, timeout_s=20)] == [[[2]]]


def test_a_decoupled_model_that_is_not_loaded_refuses_callers_that_take_one_answer(
    serve, model_repository, witness, hoard
):
    class Twice(Backend):
        def execute(self, batch: Batch) -> None:
            for request in batch.requests:
                for _ in range(2):
                    request.respond(InferResponse([Tensor.from_numpy("OUT", np.array([1], np.int32))], final=False))
                request.respond(InferResponse((), empty=True))

    model_repository.add("a", config_of("twice", more="model_transaction_policy { decoupled: true }"))
    with serve(backends={"twice": Twice}) as server:
        error = error_of(ask, server.engine, witness, "a", [1])
        assert isinstance(error, TritonError)
        assert "takes one answer" in error.message
        request = ask(server.engine, witness, "a", [1], accepts_decoupled=True)
        (answers,) = witness.wait(request, timeout_s=20)
        assert len(answers) == 3
