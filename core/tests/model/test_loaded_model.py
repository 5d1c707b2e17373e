from __future__ import annotations

import itertools
import threading
from typing import Any, ClassVar

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.one_model import DYNAMIC, one_model
from core.tests.toys.serving import (
    ToyPlugin,
    ask,
    config_of,
    numbers,
    request_of,
    serving,
    toy_plugins,
)
from tritonpy.api.backend import Backend
from tritonpy.api.engine import Duration
from tritonpy.api.observer import Observer
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.hookspecs import hookimpl
from tritonpy.model.loaded_model import backend_error
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy_batching.gather import scatter
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, InferRequest, InferResponse, OutputSpec, Tensor
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import (
    Cancelled,
    Code,
    FailureReason,
    Internal,
    InvalidArgument,
    QueueFull,
    TritonError,
    Unavailable,
)


class RespondsTwice(Doubler):
    def execute(self, batch: Batch) -> None:
        super().execute(batch)
        super().execute(batch)


def test_responses_after_the_final_one_are_dropped_and_counted(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, RespondsTwice) as server:
        requests = [ask(server.engine, recorder, "m", [[number]]) for number in range(3)]
        recorder.wait(*requests)
        late = server.engine.gauges()["m", "1"].late_responses
        (statistics,) = server.engine.statistics("m")
    assert late in {2, 3}  # responses of the last execution may be outstanding
    assert statistics.inference_stats.success.count == 3
    recorder.check(*requests)


class FailsAfterResponding(Doubler):
    def execute(self, batch: Batch) -> None:
        super().execute(batch)
        raise ValueError("failed after answering")


def test_a_failure_after_the_responses_changes_nothing(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, FailsAfterResponding) as server:
        requests = [ask(server.engine, recorder, "m", [[number]]) for number in range(3)]
        assert [numbers(each) for each in recorder.wait(*requests)] == [[[0]], [[2]], [[4]]]
    recorder.check(*requests)
    assert "failed to execute" in caplog.text


class TakesAll(DirectScheduler):
    """Puts all waiting requests into one batch."""

    def take(self, instance: int, now_ns: int, limit: int = 0) -> Batch | None:
        requests, queue = list(self._queue), self._queue
        queue.clear()
        return Batch(requests) if requests else None


def test_a_backend_that_raises_fails_only_its_own_batch(model_repository: ModelRepository) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate), scheduler=TakesAll) as server:
        alone = ask(server.engine, recorder, "m", [[1]])
        gate.wait_for(1)
        batch = [ask(server.engine, recorder, "m", [[number]]) for number in (5, 13)]
        gate.open(1)
        gate.wait_for(2)
        after = ask(server.engine, recorder, "m", [[7]])
        gate.open()
        good, first, second, last = recorder.wait(alone, *batch, after)
        gauges = server.engine.gauges()["m", "1"]
    assert (numbers(good), numbers(last)) == ([[2]], [[14]])
    for (response,) in (first, second):
        assert response.error is not None
        assert (response.error.code, response.error.message) == (
            Code.INTERNAL,
            "ValueError: thirteen cannot be doubled",
        )
    assert gauges.failures["BACKEND"] == 2
    recorder.check(alone, *batch, after)


class Picky(Doubler):
    def execute(self, batch: Batch) -> None:
        raise (
            InvalidArgument("the model does not like this")
            if batch.requests[0].id
            else KeyboardInterrupt
        )


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("x", Code.INVALID_ARG, "the model does not like this"),
        ("", Code.INTERNAL, "KeyboardInterrupt"),
    ],
)
def test_a_backends_exception_keeps_its_code(
    model_repository: ModelRepository, name: str, code: Code, text: str
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Picky) as server:
        ((response,),) = recorder.wait(ask(server.engine, recorder, "m", [[1]], id=name))
    assert response.error is not None
    assert (response.error.code, response.error.message) == (code, text)


def test_a_waiting_request_is_cancelled_and_a_running_one_is_flagged(
    model_repository: ModelRepository,
) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate)) as server:
        running, waiting, other = (
            ask(server.engine, recorder, "m", [[number]]) for number in (1, 2, 3)
        )
        gate.wait_for(1)
        running.cancel()
        waiting.cancel()
        with pytest.raises(Cancelled):
            numbers(*recorder.wait(waiting))
        assert server.engine.gauges()["m", "1"].pending == 1
        assert running.cancelled
        assert not running.finished
        gate.open()
        assert [numbers(each) for each in recorder.wait(running, other)] == [[[2]], [[6]]]
        running.cancel()
        assert server.engine.gauges()["m", "1"].failures["CANCELED"] == 1
    recorder.check(running, waiting, other)


def test_an_already_cancelled_request_is_rejected(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler) as server:
        request = request_of(recorder, "m", [[1]])
        request.cancel()
        with pytest.raises(Cancelled):
            server.engine.infer(request)
    assert recorder.requests == []


def test_a_deadline_cancels_a_waiting_request(model_repository: ModelRepository) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate)) as server:
        running = ask(server.engine, recorder, "m", [[1]])
        gate.wait_for(1)
        late = ask(server.engine, recorder, "m", [[2]], deadline_ns=now_ns() + 5_000_000)
        with pytest.raises(Cancelled):
            numbers(*recorder.wait(late))
        gate.open()
        recorder.wait(running)
    recorder.check(running, late)


class Full(DirectScheduler):
    """Accepts one waiting request."""

    def enqueue(self, request: InferRequest) -> None:
        if self._queue:
            raise QueueFull("Exceeds maximum queue size")
        super().enqueue(request)


def test_a_rejected_request_belongs_to_its_caller_and_is_not_counted(
    model_repository: ModelRepository,
) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate), scheduler=Full) as server:
        taken = [ask(server.engine, recorder, "m", [[1]])]
        gate.wait_for(1)
        taken.append(ask(server.engine, recorder, "m", [[1]]))
        refused = request_of(recorder, "m", [[1]])
        with pytest.raises(QueueFull):
            server.engine.infer(refused)
        gauges = server.engine.gauges()["m", "1"]
        assert (set(gauges.failures.values()), gauges.pending) == ({0}, 1)
        gate.open()
        recorder.wait(*taken)
        server.engine.infer(refused)
        recorder.wait(refused)
    recorder.check(*taken, refused)


class RespondsToOthers(DirectScheduler):
    """Responds to a request in the method that its id names.

    That happens when the method is called for another request.
    """

    def _respond(self, method: str) -> None:
        for request in [each for each in self._queue if each.id == method]:
            self._queue.remove(request)
            request.respond(InferResponse.failed(request, Unavailable(f"answered from {method}")))

    def enqueue(self, request: InferRequest) -> None:
        self._respond("enqueue")
        if request.id == "refuse":
            raise QueueFull("no")
        super().enqueue(request)

    def ready(self, instance: int, now_ns: int) -> bool:
        self._respond("ready")
        return any(not each.id for each in self._queue)

    def take(self, instance: int, now_ns: int, limit: int = 0) -> Batch | None:
        self._respond("take")
        request = next((each for each in self._queue if not each.id), None)
        if request is None:
            return None
        self._queue.remove(request)
        return Batch([request])

    def released(self, request: InferRequest, reschedule: bool) -> None:
        if not request.id:
            self._respond("released")


@pytest.mark.parametrize("method", ["enqueue", "ready", "take", "released"])
def test_a_scheduler_may_respond_from_any_method(
    model_repository: ModelRepository, method: str
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler, scheduler=RespondsToOthers) as server:
        request = ask(server.engine, recorder, "m", [[1]], id=method)
        if method != "ready":
            recorder.wait(ask(server.engine, recorder, "m", [[1]]))
        ((response,),) = recorder.wait(request)
        assert str(response.error) == f"answered from {method}"
        assert server.engine.gauges()["m", "1"].pending == 0


def test_a_response_sent_while_rejecting_another_request_is_sent_immediately(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler, scheduler=RespondsToOthers) as server:
        request = ask(server.engine, recorder, "m", [[1]], id="enqueue")
        with pytest.raises(QueueFull):
            ask(server.engine, recorder, "m", [[1]], id="refuse")
        ((response,),) = recorder.wait(request)
    assert str(response.error) == "answered from enqueue"


def test_responses_keep_the_order_of_arrival_with_several_instances(
    model_repository: ModelRepository,
) -> None:
    recorder, gate = RecordingSink(), Gate()
    config = config_of(
        "toy", batch=4, instances=2, more="dynamic_batching { preserve_ordering: true }"
    )
    with one_model(model_repository, gated(gate), config=config) as server:
        requests = [ask(server.engine, recorder, "m", [[number]]) for number in range(20)]
        gate.wait_for(2)
        requests[7].cancel()
        gate.open()
        recorder.wait(*requests)
    assert [id(request) for request in recorder.requests] == [id(request) for request in requests]
    recorder.check(*requests)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1::2])
def test_preserve_ordering_with_any_order_of_completion(
    model_repository: ModelRepository, order: tuple[int, ...]
) -> None:
    recorder, held = RecordingSink(), threading.Barrier(2)

    class Held(Doubler):
        """Three instances that respond in `order`, from another thread."""

        batches: ClassVar[list[Batch]] = []

        def execute(self, batch: Batch) -> None:
            self.batches.append(batch)
            if len(self.batches) == 3:
                held.wait(10)

    config = config_of(
        "toy", batch=4, instances=3, more="dynamic_batching { preserve_ordering: true }"
    )
    with one_model(model_repository, Held, config=config) as server:
        requests = [ask(server.engine, recorder, "m", [[number]]) for number in range(3)]
        held.wait(10)
        by_request = {id(batch.requests[0]): batch for batch in Held.batches}
        for index in order:
            batch = by_request[id(requests[index])]
            batch.respond(scatter(batch, {"OUT": requests[index].inputs["IN"].numpy()}))
        assert [numbers(each) for each in recorder.wait(*requests)] == [[[0]], [[1]], [[2]]]
    assert [id(request) for request in recorder.requests] == [id(request) for request in requests]


class Classes(Backend):
    def infer(self, inputs: Any) -> Any:
        return {"OUT": inputs["IN"]}


def test_classes_are_sent_instead_of_data_if_requested(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    config = config_of("toy", batch=4, dims=3).replace(
        'name: "OUT"', 'name: "OUT" label_filename: "labels.txt"'
    )
    model_repository.add("m", config, files={"labels.txt": "cat\ndog\n"})
    with one_model(model_repository, Classes, config=config) as server:
        plain = ask(server.engine, recorder, "m", [[3, 1, 2]])
        classifying = ask(
            server.engine,
            recorder,
            "m",
            [[3, 1, 2]],
            outputs={"OUT": OutputSpec("OUT", classification=2)},
            classifies=True,
        )
        (data,), (classes,) = recorder.wait(plain, classifying)
    assert data.outputs[0].datatype == "INT32"
    assert classes.outputs[0].strings() == [b"3:0:cat", b"2:2"]


class Watcher(Observer):
    seen: ClassVar[list[tuple[str, bool]]] = []

    def responded(self, request: InferRequest, response: InferResponse, now_ns: int) -> None:
        self.seen.append((request.id, response.error is None))
        raise ValueError("an observer that fails")


def test_failing_observers_do_not_affect_responses(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    class Watching(ToyPlugin):
        @hookimpl
        def tritonpy_observers(self) -> dict[str, type[Observer]]:
            return {"watcher": Watcher}

    model_repository.add("m", config_of("toy"))
    recorder = RecordingSink()
    with serving(
        model_repository, toy_plugins(Watching({"toy": Doubler})), observers={"watcher": {}}
    ) as server:
        requests = [
            ask(server.engine, recorder, "m", [number], id=str(number)) for number in (1, 13)
        ]
        recorder.wait(*requests)
    assert Watcher.seen == [("1", True), ("13", False)]
    assert "observer Watcher failed" in caplog.text
    recorder.check(*requests)


def test_invalid_large_strings_are_rejected_off_the_callers_thread(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    config = config_of("toy", batch=4, datatype="TYPE_STRING", dims=-1, more=DYNAMIC)
    with one_model(model_repository, Classes, config=config, scheduler=TakesAll) as server:
        size = 100_000
        broken = Tensor.from_buffer("IN", "BYTES", (1, size), bytes(4 * size - 1) + b"\x01")
        good = Tensor.from_buffer("IN", "BYTES", (1, size), bytes(4 * size))
        requests = [InferRequest("m", {"IN": tensor}, recorder.sink) for tensor in (broken, good)]
        for request in requests:
            server.engine.infer(request)
        (refused,), (response,) = recorder.wait(*requests)
    assert refused.error is not None
    assert refused.error.code is Code.INVALID_ARG
    assert response.error is None
    assert response.outputs[0].shape == (1, size)
    recorder.check(*requests)


def test_a_request_counts_its_times(model_repository: ModelRepository) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate)) as server:
        requests = [ask(server.engine, recorder, "m", [[1], [2]]) for _ in range(2)]
        gate.wait_for(1)
        gate.open()
        recorder.wait(*requests)
        (statistics,) = server.engine.statistics("m")
    times = statistics.inference_stats
    assert (statistics.inference_count, statistics.execution_count) == (4, 2)
    assert times.success.count == 2
    assert times.success.ns >= times.queue.ns + times.compute_input.ns + times.compute_infer.ns
    assert times.fail == Duration()


class Broken(DirectScheduler):
    """Raises in `take` while `broken` is true."""

    broken: ClassVar[bool] = True

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        if Broken.broken:
            raise RuntimeError("no batch today")
        return super().take(instance, now_ns, limit)


def test_a_scheduler_that_raises_leaves_no_request_without_response(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler, scheduler=Broken) as server:
        first, second = (ask(server.engine, recorder, "m", [[number]]) for number in (1, 2))
        for (response,) in recorder.wait(first, second):
            assert response.error is not None
            assert response.error.code is Code.INTERNAL
            assert "error id" in response.error.message
        Broken.broken = False
        try:
            ((good,),) = ([*recorder.wait(ask(server.engine, recorder, "m", [[3]]))],)
        finally:
            Broken.broken = True
    assert numbers(good) == [[6]]
    assert "no batch today" in caplog.text
    recorder.check(first, second)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("raised", "kind", "text", "reason"),
    [
        (ValueError("bad"), Internal, "ValueError: bad", FailureReason.BACKEND),
        (KeyError("XX"), Internal, "KeyError: 'XX'", FailureReason.BACKEND),
        (KeyError(), Internal, "KeyError", FailureReason.BACKEND),
        (Unprintable(), Internal, "Unprintable", FailureReason.BACKEND),
        (SystemExit(3), Internal, "SystemExit: 3", FailureReason.BACKEND),
        (InvalidArgument("no such class"), InvalidArgument, "no such class", FailureReason.BACKEND),
        (Cancelled("stopped"), Cancelled, "stopped", FailureReason.CANCELED),
    ],
)
def test_backend_errors_keep_code_and_text_or_name_their_type(
    raised: Exception, kind: type[TritonError], text: str, reason: FailureReason
) -> None:
    error = backend_error(raised)
    assert (type(error), error.message, error.reason) == (kind, text, reason)
