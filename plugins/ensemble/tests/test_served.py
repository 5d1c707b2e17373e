"""A whole server with models in threads: ensembles of models that call, fail and stream."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter

import numpy as np
import pytest

from tritonpy import Backend, CallbackSink, InferRequest, InferResponse, Tensor, hookimpl
from tritonpy_testing import RecordingSink, running_server

from .scripted_engine import ints

SILENT = {"http": False, "grpc": False, "metrics": False}
WIDTH = 64


class AddingBackend(Backend):
    """Returns IN + 1. A batch that contains -13 fails."""

    def infer(self, inputs):
        if (inputs["IN"] == -13).any():
            raise ValueError("thirteen is too many")
        return {"OUT": inputs["IN"] + 1}


class CountingBackend(Backend):
    """Decoupled: sends as many responses as its input says, from a thread."""

    def execute(self, batch):
        for request in batch.requests:
            threading.Thread(target=self._count, args=(request,), daemon=True).start()

    def _count(self, request):
        for number in range(int(request.inputs["IN"].numpy().ravel()[0])):
            if not request.wait_for_credit():
                break
            request.respond(
                InferResponse(
                    [ints("OUT", [[number]])], self.model.name, self.model.version, final=False
                )
            )
        request.respond(InferResponse((), self.model.name, self.model.version, empty=True))


class CallingBackend(Backend):
    """Calls the model in the parameter `calls` and returns its response."""

    def execute(self, batch):
        for request in batch.requests:
            done, responses = threading.Event(), []
            sink = CallbackSink(
                lambda _call, response, responses=responses, done=done: (
                    responses.append(response),
                    done.set(),
                )
            )
            call = InferRequest(
                self.model.parameters["calls"], dict(request.inputs), sink, parent=request
            )
            self.model.engine.infer(call)
            done.wait()
            (final,) = responses
            if final.error is not None:
                request.respond(InferResponse.failed(request, final.error))
            else:
                request.respond(
                    InferResponse([each.view("OUT", each.shape) for each in final.outputs])
                )


class Plugin:
    @hookimpl
    def tritonpy_backends(self):
        return {"adding": AddingBackend, "counting": CountingBackend, "calling": CallingBackend}


TENSORS = 'input { name: "IN" data_type: TYPE_INT32 dims: -1 } output { name: "OUT" data_type: TYPE_INT32 dims: -1 }'


def chain(*models, most=0):
    """Return the configuration of an ensemble that runs models in order."""
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
    from tritonpy_testing import ModelRepository

    models = ModelRepository(tmp_path_factory.mktemp("served") / "models")
    decoupled = "model_transaction_policy { decoupled: true }"
    models.add(
        "adding",
        f'backend: "adding" max_batch_size: 4 {TENSORS} dynamic_batching {{ }} instance_group {{ count: 3 }}',
    )
    models.add("counting", f'backend: "counting" max_batch_size: 4 {TENSORS} {decoupled}')
    models.add("single", f'backend: "adding" max_batch_size: 4 {TENSORS}')
    models.add("singles", chain("single", "single"))
    models.add("more_singles", chain("singles", "single"))
    models.add("two", chain("adding", "adding"))
    models.add("four", chain("two", "two"))
    models.add("few", chain("adding", "adding", most=1))
    models.add("counted", chain("adding", "counting", "two", most=2))
    for name, calls in (("calling", "two"), ("calling_itself", "looped")):
        models.add(
            name,
            f'backend: "calling" max_batch_size: 4 {TENSORS} parameters {{ key: "calls" value {{ string_value: "{calls}" }} }}',
        )
    models.add("called", chain("calling", "adding"))
    models.add("looped", chain("adding", "calling_itself"))
    with running_server(
        {"repositories": [{"url": str(models.path)}], "frontends": SILENT}, [Plugin()]
    ) as server:
        yield server.engine


@pytest.fixture
def recorder():
    return RecordingSink()


def infer(engine, recorder, model, *numbers, **fields):
    request = InferRequest(model, {"IN": ints("IN", [list(numbers)])}, recorder.sink, **fields)
    engine.infer(request)
    return request


def result(recorder, request):
    """Return the numbers of each response with data."""
    (responses,) = recorder.wait(request)
    recorder.check(request)
    for final in responses:
        if final.error is not None:
            raise final.error
    return [final.outputs[0].numpy().ravel().tolist() for final in responses if not final.empty]


@pytest.mark.parametrize(
    ("model", "added"), [("two", 2), ("four", 4), ("few", 2), ("calling", 2), ("called", 3)]
)
def test_nested_ensembles_and_calls_return_the_sum_of_their_steps(engine, recorder, model, added):
    assert result(recorder, infer(engine, recorder, model, 1, 2)) == [[1 + added, 2 + added]]


def test_an_ensemble_counts_its_requests_and_the_time_of_its_members(engine, recorder):
    (before,) = engine.statistics("four")
    (inner_before,) = engine.statistics("two")
    assert result(recorder, infer(engine, recorder, "four", 1)) == [[5]]
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
        part: getattr(inner.inference_stats, part).ns
        - getattr(inner_before.inference_stats, part).ns
        for part in parts
    }
    assert times == below
    assert times["compute_infer"] > 0
    assert sum(times.values()) <= stats.success.ns - old.success.ns
    assert [batch.batch_size for batch in after.batch_stats] == [1]
    assert after.response_stats == {}


def test_a_failure_names_the_path_to_the_member(engine, recorder):
    with pytest.raises(Exception, match="thirteen") as failed:
        result(recorder, infer(engine, recorder, "four", -14))
    assert failed.value.message == (
        "in ensemble 'four', in ensemble 'two', ValueError: thirteen is too many (step 1, model 'adding': 'OUT' from 't1') "
        "(step 0, model 'two': 't1' from 'IN')"
    )


def test_responses_of_a_decoupled_member_stay_in_order(engine, recorder):
    request = infer(engine, recorder, "counted", 30, accepts_decoupled=True)
    assert result(recorder, request) == [[number + 2] for number in range(31)]


def test_a_call_cycle_through_an_ensemble_is_rejected(engine, recorder):
    with pytest.raises(Exception, match="the call would deadlock"):
        result(recorder, infer(engine, recorder, "looped", 1))
    assert result(recorder, infer(engine, recorder, "two", 1)) == [[3]]


def test_concurrent_requests_get_their_own_response_once(engine, recorder):
    requests = {
        InferRequest(
            model, {"IN": ints("IN", [[1000 * number]])}, recorder.sink, accepts_decoupled=True
        ): (
            added,
            number,
        )
        for number in range(1, WIDTH)
        for model, added in (("two", 2), ("four", 4), ("few", 2), ("called", 3))
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
    recorder.wait(*requests)
    recorder.check(*requests)
    for request, (added, number) in requests.items():
        assert result(recorder, request) == [[1000 * number + added]]


def test_cancelled_requests_get_one_final_response(engine, recorder):
    requests = [infer(engine, recorder, "four", number) for number in range(WIDTH)]
    streams = [infer(engine, recorder, "counted", 50, accepts_decoupled=True) for _ in range(8)]
    for request in [*requests[::2], *streams[::2]]:
        request.cancel()
    responses = recorder.wait(*requests, *streams)
    recorder.check(*requests, *streams)
    ends = Counter(
        "ok" if each[-1].error is None else each[-1].error.code.name for each in responses
    )
    assert set(ends) <= {"ok", "CANCELLED"}
    assert ends["ok"] >= (WIDTH + 8) // 2 - 1


def test_a_finished_request_leaves_no_references(engine, recorder):
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
    assert _is_collected(watched)
    assert _is_collected(alive)


def _is_collected(reference, wait_s=60):
    """Return whether the object is freed by reference counting.

    A thread may hold it briefly.
    """
    gone, there = threading.Event(), reference()
    if there is None:
        return True
    weakref.finalize(there, gone.set)
    del there
    return gone.wait(wait_s)
