from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from core.tests.toys.doubler import Doubler
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.runners import warmup
from tritonpy.runners.slot import Slot
from tritonpy.runners.warmup import WarmupSample
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor
from tritonpy_types.errors import Internal, InvalidArgument, TritonError

ITERATIVE = "sequence_batching { iterative_sequence: true }"


def sample(
    name: str = "cold", rows: int = 1, count: int = 1, value: str = "zero_data: true"
) -> str:
    return f"""model_warmup {{ name: "{name}" batch_size: {rows} count: {count}
        inputs {{ key: "IN" value {{ data_type: TYPE_INT32 dims: 1 {value} }} }} }}"""


class RecordingBackend(Doubler):
    """Records its calls and their threads; the function `act` may process a batch instead."""

    batches: ClassVar[list[tuple[str, list[Any]]]] = []
    closed: ClassVar[list[str]] = []
    act: ClassVar[Callable[[Batch], None] | None] = None

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        RecordingBackend.batches.append((threading.current_thread().name, ["init"]))

    def execute(self, batch: Batch) -> None:
        values = [request.inputs["IN"].numpy().ravel().tolist() for request in batch.requests]
        RecordingBackend.batches.append((threading.current_thread().name, values))
        if RecordingBackend.act is None:
            super().execute(batch)
        else:
            RecordingBackend.act(batch)

    def close(self) -> None:
        RecordingBackend.closed.append(self.instance.name)


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    RecordingBackend.batches, RecordingBackend.closed, RecordingBackend.act = [], [], None


def refusal(repository: ModelRepository, backend: type[Backend] = RecordingBackend) -> str:
    """Return why the model cannot be loaded."""
    with serving(
        repository, toy_plugins(ToyPlugin({"toy": backend})), exit_on_error=False
    ) as server:
        return server.failures["m"].message


def test_samples_run_in_order_on_the_instances_thread_and_are_not_counted(
    model_repository: ModelRepository,
) -> None:
    text = sample("a", rows=2, count=2) + sample("b")
    model_repository.add("m", config_of("toy", batch=4, instances=2, more=text))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": RecordingBackend}))) as server:
        for name in ("m_0_0", "m_0_1"):
            assert [values for thread, values in RecordingBackend.batches if thread == name] == [
                ["init"], [[0], [0]], [[0], [0]], [[0]],
            ]  # fmt: skip
        (statistics,) = server.engine.statistics("m")
        assert (statistics.inference_count, statistics.execution_count) == (0, 0)
        recorder = RecordingSink()
        recorder.wait(request := ask(server.engine, recorder, "m", [[4]]))
        assert numbers(recorder.responses(request)) == [[8]]


def test_the_requests_look_like_those_of_clients(model_repository: ModelRepository) -> None:
    seen: list[InferRequest] = []

    def act(batch: Batch) -> None:
        seen.extend(batch.requests)
        assert batch.model is not None
        assert batch.instance.name == "m_0_0"
        assert all(
            request.batch is batch and request.wait_for_credit() for request in batch.requests
        )
        batch.respond([InferResponse(()) for _ in batch.requests])

    RecordingBackend.act = act
    model_repository.add("m", config_of("toy", batch=4, more=sample(rows=2)))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": RecordingBackend}))):
        pass
    first, second = seen
    assert first is not second
    assert first.inputs is not second.inputs
    assert {
        (each.model_name, each.model_version, each.batch_size, each.outputs, each.sequence)
        for each in seen
    } == {("m", 1, 1, None, None)}
    assert all(each.queued_ns and each.received_ns for each in seen)


def test_an_error_of_the_backend_fails_the_load_and_closes_the_instance(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    def act(batch: Batch) -> None:
        raise ValueError("too cold")

    RecordingBackend.act = act
    model_repository.add("m", config_of("toy", batch=2, more=sample(rows=2)))
    assert (
        "failed to run warmup sample 'cold': ValueError: too cold; ValueError: too cold; "
        in refusal(model_repository)
    )
    assert RecordingBackend.closed == ["m_0_0"]
    assert any(record.exc_info for record in caplog.records), "the traceback is nowhere"


def test_an_error_response_fails_the_load(model_repository: ModelRepository) -> None:
    def act(batch: Batch) -> None:
        good, bad = batch.requests
        good.respond(InferResponse(()))
        bad.respond(InferResponse.failed(bad, InvalidArgument("only one of us")))

    RecordingBackend.act = act
    model_repository.add("m", config_of("toy", batch=2, more=sample(rows=2) + sample("never")))
    assert "failed to run warmup sample 'cold': only one of us; " in refusal(model_repository)
    assert len(RecordingBackend.batches) == 2, "samples after a failing one are not run"


@pytest.mark.parametrize(("batch", "rows"), [(0, 2), (4, 5)])
def test_a_batch_beyond_the_models_maximum_is_not_run(
    model_repository: ModelRepository, batch: int, rows: int
) -> None:
    model_repository.add("m", config_of("toy", batch=batch, more=sample(rows=rows)))
    text = "; ".join([f"batch size {rows} for 'm_0_0', max allowed is {batch}"] * rows)
    assert f"failed to run warmup sample 'cold': {text}; " in refusal(model_repository)
    assert RecordingBackend.batches == [("m_0_0", ["init"])]


def test_a_decoupled_sample_waits_for_the_last_response(model_repository: ModelRepository) -> None:
    threads = []

    def later(request: InferRequest) -> None:
        for _ in range(3):
            request.respond(InferResponse((), final=False))
        RecordingBackend.batches.append(("finished", []))
        request.respond(InferResponse((), empty=True))

    def act(batch: Batch) -> None:
        for request in batch.requests:
            threads.append(threading.Thread(target=later, args=(request,)))
            threads[-1].start()

    RecordingBackend.act = act
    more = sample(rows=2, count=2) + "model_transaction_policy { decoupled: true }"
    model_repository.add("m", config_of("toy", batch=2, more=more))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": RecordingBackend}))):
        pass
    for thread in threads:
        thread.join()
    assert [what for what, _ in RecordingBackend.batches] == ["m_0_0"] + [
        "m_0_0",
        "finished",
        "finished",
    ] * 2


def test_late_responses_are_ignored(model_repository: ModelRepository) -> None:
    def act(batch: Batch) -> None:
        (request,) = batch.requests
        request.respond(InferResponse(()))
        request.respond(InferResponse.failed(request, Internal("too late")))
        raise ValueError("too late as well")

    RecordingBackend.act = act
    model_repository.add("m", config_of("toy", more=sample(count=3)))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": RecordingBackend}))):
        assert len(RecordingBackend.batches) == 4


def test_an_iterative_model_may_reschedule_a_warmup_request() -> None:
    ran: list[int] = []

    def execute(batch: Batch) -> None:
        ran.append(len(batch.requests))
        for request in batch.requests:
            if len(ran) < 3:
                request.reschedule()
            else:
                request.respond(InferResponse(()))

    warm_up(ITERATIVE, execute)
    assert ran == [2, 2, 2]


def test_other_models_may_not_reschedule_a_warmup_request() -> None:
    with pytest.raises(InvalidArgument, match="the model is not configured to handle such a flag"):
        warm_up("", lambda batch: [request.reschedule() for request in batch.requests])


def test_the_log_shows_the_samples_and_their_durations(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        warm_up(
            "", lambda batch: batch.respond([InferResponse(()) for _ in batch.requests]), count=2
        )
    assert caplog.messages[:2] == [
        f"model 'm' instance m_0_0 is running warmup sample 'cold' for iteration {number}"
        for number in (1, 2)
    ]
    assert caplog.messages[2].startswith("m_0_0 is warmed up, after ")


def test_a_long_warmup_logs_its_progress(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "_PROGRESS_NS", 0)
    with caplog.at_level(logging.INFO):
        warm_up(
            "", lambda batch: batch.respond([InferResponse(()) for _ in batch.requests]), count=2
        )
    assert (
        "m_0_0 is running warmup sample 'cold' for iteration 2 of 2, after 0 s" in caplog.messages
    )


def warm_up(config: str, execute: Callable[[Batch], Any], count: int = 1) -> None:
    """Run a sample of two requests."""
    model: Any = SimpleNamespace(
        name="m",
        version=1,
        config=model_config(f"max_batch_size: 2 {config}"),
        log=logging.getLogger("tritonpy.backend"),
    )
    inputs = {"IN": Tensor.from_numpy("IN", np.zeros((1, 1), np.int32))}
    samples = [WarmupSample("cold", count, [inputs] * 2)]
    warmup.warm_up(model, Slot(InstanceContext("m_0_0", "CPU", 0, 0)), samples, execute)


def test_only_an_instance_added_later_is_warmed_up(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", more=sample()))
    control = {"mode": "explicit", "load": ["*"]}
    with serving(
        model_repository, toy_plugins(ToyPlugin({"toy": RecordingBackend})), control=control
    ) as server:
        model_repository.add("m", config_of("toy", instances=2, more=sample()))
        server.engine.load_model("m")
        for name in ("m_0_0", "m_0_1"):
            assert [values for thread, values in RecordingBackend.batches if thread == name] == [
                ["init"],
                [[0]],
            ]


def test_an_instance_that_cannot_be_warmed_up_is_not_added(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", more=sample()))
    control = {"mode": "explicit", "load": ["*"]}
    with serving(
        model_repository, toy_plugins(ToyPlugin({"toy": RecordingBackend})), control=control
    ) as server:

        def act(batch: Batch) -> None:
            raise ValueError("too cold")

        RecordingBackend.act = act
        model_repository.add("m", config_of("toy", instances=2, more=sample()))
        with pytest.raises(
            TritonError, match="failed to run warmup sample 'cold': ValueError: too cold"
        ):
            server.engine.load_model("m")
        RecordingBackend.act = None
        recorder = RecordingSink()
        recorder.wait(request := ask(server.engine, recorder, "m", [4]))
        assert numbers(recorder.responses(request)) == [[8]]
