"""A whole server with models in threads: ensembles among models that call, fail, and answer many times."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter

import numpy as np
import pytest

from tritonpy import Backend, CallbackSink, InferRequest, InferResponse, Tensor, hookimpl
from tritonpy.testing import Witness, running_server

from .stage import ints

SILENT = {"http": False, "grpc": False, "metrics": False}
WIDTH = 64


class AddingBackend(Backend):
    """Answers IN + 1; a batch with a -13 in it fails."""

    def infer(self, inputs):
        if (inputs["IN"] == -13).any():
            raise ValueError("thirteen is too many")
        return {"OUT": inputs["IN"] + 1}


class CountingBackend(Backend):
    """Decoupled: answers as often as its input says, from a thread."""

    def execute(self, batch):
        for request in batch.requests:
            threading.Thread(target=self._count, args=(request,), daemon=True).start()

    def _count(self, request):
        for number in range(int(request.inputs["IN"].numpy().ravel()[0])):
            if not request.wait_for_room():
                break
            request.respond(InferResponse([ints("OUT", [[number]])], self.model.name, self.model.version, final=False))
        request.respond(InferResponse((), self.model.name, self.model.version, empty=True))


class CallingBackend(Backend):
    """Asks the model that the parameter `calls` names, and gives its answer back."""

    def execute(self, batch):
        for request in batch.requests:
            done, answers = threading.Event(), []
            sink = CallbackSink(
                lambda _call, response, answers=answers, done=done: (answers.append(response), done.set())
            )
            call = InferRequest(self.model.parameters["calls"], dict(request.inputs), sink, parent=request)
            self.model.engine.infer(call)
            done.wait()
            (answer,) = answers
            if answer.error is not None:
                request.respond(InferResponse.failed(request, answer.error))
            else:
                request.respond(InferResponse([each.view("OUT", each.shape) for each in answer.outputs]))


class Plugin:
    @hookimpl
    def tritonpy_backends(self):
        return {"adding": AddingBackend, "counting": CountingBackend, "calling": CallingBackend}


TENSORS = 'input { name: "IN" data_type: TYPE_INT32 dims: -1 } output { name: "OUT" data_type: TYPE_INT32 dims: -1 }'


def chain(*models, most=0):
    """Return the configuration of an ensemble of models one after the other."""
    names = ["IN", *(f"t{number}" for number in range(1, len(models))), "OUT"]
    steps = " ".join(
        f'step {{ model_name: "{model}" model_version: -1 input_map {{ key: "IN" value: "{read}" }} '
        f'output_map {{ key: "OUT" value: "{made}" }} }}'
        for model, read, made in zip(models, names, names[1:], strict=False)
    )
    limit = f"max_inflight_requests: {most}" if most else ""
    return f'platform: "ensemble" max_batch_size: 4 {TENSORS} ensemble_scheduling {{ {steps} {limit} }}'


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    from tritonpy.testing import ModelRepository

    models = ModelRepository(tmp_path_factory.mktemp("served") / "models")
    decoupled = "model_transaction_policy { decoupled: true }"
    models.add(
        "adding", f'backend: "adding" max_batch_size: 4 {TENSORS} dynamic_batching {{ }} instance_group {{ count: 3 }}'
    )
    models.add("counting", f'backend: "counting" max_batch_size: 4 {TENSORS} {decoupled}')
    models.add("single", f'backend: "adding" max_batch_size: 4 {TENSORS}')
    models.add("singles", chain("single", "single"))
    models.add("more_singles", chain("singles", "single"))
    models.add("two", chain("adding", "adding"))
    models.add("four", chain("two", "two"))
    models.add("few", chain("adding", "adding", most=1))
    models.add("counted", chain("adding", "counting", "two", most=2))
    for name, calls in (("asking", "two"), ("asking_itself", "looped")):
        models.add(
            name,
            f'backend: "calling" max_batch_size: 4 {TENSORS} parameters {{ key: "calls" value {{ string_value: "{calls}" }} }}',
        )
    models.add("asked", chain("asking", "adding"))
    models.add("looped", chain("adding", "asking_itself"))
    with running_server({"repositories": [{"url": str(models.path)}], "frontends": SILENT}, [Plugin()]) as server:
        yield server.engine


@pytest.fixture
def witness():
    return Witness()


def ask(engine, witness, model, *numbers, **fields):
    request = InferRequest(model, {"IN": ints("IN", [list(numbers)])}, witness.sink, **fields)
    engine.infer(request)
    return request


def result(witness, request):
    """Return the numbers of each answer with data."""
    (answers,) = witness.wait(request)
    witness.check(request)
    for answer in answers:
        if answer.error is not None:
            raise answer.error
    return [answer.outputs[0].numpy().ravel().tolist() for answer in answers if not answer.empty]


@pytest.mark.parametrize(("model", "added"), [("two", 2), ("four", 4), ("few", 2), ("asking", 2), ("asked", 3)])
def test_ensembles_within_ensembles_and_calls_give_the_sum_of_their_steps(engine, witness, model, added):
    assert result(witness, ask(engine, witness, model, 1, 2)) == [[1 + added, 2 + added]]


def test_an_ensemble_counts_its_requests_and_the_time_of_its_members(engine, witness):
    (before,) = engine.statistics("four")
    (inner_before,) = engine.statistics("two")
    assert result(witness, ask(engine, witness, "four", 1)) == [[5]]
    (after,) = engine.statistics("four")
    (inner,) = engine.statistics("two")
    assert after.inference_count - before.inference_count == 1
    assert after.execution_count - before.execution_count == 1
    assert after.last_inference > 0
    stats, old = after.inference_stats, before.inference_stats
    assert stats.success.count - old.success.count == stats.queue.count - old.queue.count == 1
    parts = ("compute_input", "compute_infer", "compute_output")
    times = {part: getattr(stats, part).ns - getattr(old, part).ns for part in parts}
    below = {
        part: getattr(inner.inference_stats, part).ns - getattr(inner_before.inference_stats, part).ns for part in parts
    }
    assert times == below
    assert times["compute_infer"] > 0
    assert sum(times.values()) <= stats.success.ns - old.success.ns
    assert [batch.batch_size for batch in after.batch_stats] == [1]
    assert after.response_stats == {}


def test_a_failure_says_the_way_down_to_the_member(engine, witness):
    with pytest.raises(Exception, match="thirteen") as failed:
        result(witness, ask(engine, witness, "four", -14))
    assert failed.value.message == (
        "in ensemble 'four', in ensemble 'two', ValueError: thirteen is too many (step 1, model 'adding': 'OUT' from 't1') "
        "(step 0, model 'two': 't1' from 'IN')"
    )


def test_a_decoupled_member_in_the_middle_answers_in_order(engine, witness):
    request = ask(engine, witness, "counted", 30, accepts_decoupled=True)
    assert result(witness, request) == [[number + 2] for number in range(31)]


def test_a_model_that_its_own_ensemble_would_wait_for_is_refused_and_everybody_is_answered(engine, witness):
    with pytest.raises(Exception, match="the call would wait for ever"):
        result(witness, ask(engine, witness, "looped", 1))
    assert result(witness, ask(engine, witness, "two", 1)) == [[3]]


def test_many_at_once_from_many_threads_are_each_answered_once_and_with_their_own(engine, witness):
    requests = {
        InferRequest(model, {"IN": ints("IN", [[1000 * number]])}, witness.sink, accepts_decoupled=True): (
            added,
            number,
        )
        for number in range(1, WIDTH)
        for model, added in (("two", 2), ("four", 4), ("few", 2), ("asked", 3))
    }
    shares = [list(requests)[start::4] for start in range(4)]

    def send(share):
        for request in share:
            engine.infer(request)

    threads = [threading.Thread(target=send, args=(share,), daemon=True) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    witness.wait(*requests)
    witness.check(*requests)
    for request, (added, number) in requests.items():
        assert result(witness, request) == [[1000 * number + added]]


def test_many_that_are_cancelled_at_any_moment_are_each_answered_once(engine, witness):
    requests = [ask(engine, witness, "four", number) for number in range(WIDTH)]
    streams = [ask(engine, witness, "counted", 50, accepts_decoupled=True) for _ in range(8)]
    for request in [*requests[::2], *streams[::2]]:
        request.cancel()
    answers = witness.wait(*requests, *streams)
    witness.check(*requests, *streams)
    ends = Counter("ok" if each[-1].error is None else each[-1].error.code.name for each in answers)
    assert set(ends) <= {"ok", "CANCELLED"}
    assert ends["ok"] >= (WIDTH + 8) // 2 - 1


def test_nothing_of_a_request_is_left_when_it_was_answered(engine, witness):
    data = np.arange(4, dtype=np.int32).reshape(1, 4)
    watched = weakref.ref(data)
    sink = CallbackSink(lambda _request, _response: done.set())
    done = threading.Event()
    gc.collect()
    request = InferRequest("more_singles", {"IN": Tensor("IN", "INT32", (1, 4), data)}, sink)
    engine.infer(request)
    assert done.wait(60)
    alive = weakref.ref(request)
    del request, data
    assert _gone(watched)
    assert _gone(alive)


def _gone(reference, patience_s=60):
    """Return whether the object dies without the collector: a thread may hold it for a moment."""
    gone, there = threading.Event(), reference()
    if there is None:
        return True
    weakref.finalize(there, gone.set)
    del there
    return gone.wait(patience_s)
