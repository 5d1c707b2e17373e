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
from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.errors import Internal, InvalidArgument, TritonError
from tritonpy.runners import warmup
from tritonpy.runners.slot import Slot
from tritonpy.runners.warmup import WarmupSample
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.parse import model_config
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, InferRequest, InferResponse, Tensor

ITERATIVE = "sequence_batching { iterative_sequence: true }"


def sample(name: str = "cold", rows: int = 1, count: int = 1, value: str = "zero_data: true") -> str:
    return f"""model_warmup {{ name: "{name}" batch_size: {rows} count: {count}
        inputs {{ key: "IN" value {{ data_type: TYPE_INT32 dims: 1 {value} }} }} }}"""


class Told(Doubler):
    """Writes down what it is asked and on which thread; the function `act` may do something else with a batch."""

    batches: ClassVar[list[tuple[str, list[Any]]]] = []
    closed: ClassVar[list[str]] = []
    act: ClassVar[Callable[[Batch], None] | None] = None

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        Told.batches.append((threading.current_thread().name, ["init"]))

    def execute(self, batch: Batch) -> None:
        values = [request.inputs["IN"].numpy().ravel().tolist() for request in batch.requests]
        Told.batches.append((threading.current_thread().name, values))
        if Told.act is None:
            super().execute(batch)
        else:
            Told.act(batch)

    def close(self) -> None:
        Told.closed.append(self.instance.name)


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    Told.batches, Told.closed, Told.act = [], [], None


def refusal(repository: ModelRepository, backend: type[Backend] = Told) -> str:
    """Return why the model cannot be loaded."""
    with serving(repository, toy_plugins(ToyPlugin({"toy": backend})), exit_on_error=False) as server:
        return server.failures["m"].message


def test_samples_run_in_their_order_on_the_instances_thread_and_nobody_counts_them(
    model_repository: ModelRepository,
) -> None:
    text = sample("a", rows=2, count=2) + sample("b")
    model_repository.add("m", config_of("toy", batch=4, instances=2, more=text))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Told}))) as server:
        for name in ("m_0_0", "m_0_1"):
            assert [values for thread, values in Told.batches if thread == name] == [
                ["init"], [[0], [0]], [[0], [0]], [[0]],
            ]  # fmt: skip
        (statistics,) = server.engine.statistics("m")
        assert (statistics.inference_count, statistics.execution_count) == (0, 0)
        witness = Witness()
        witness.wait(request := ask(server.engine, witness, "m", [[4]]))
        assert numbers(witness.answers(request)) == [[8]]


def test_the_requests_are_as_good_as_those_of_clients(model_repository: ModelRepository) -> None:
    seen: list[InferRequest] = []

    def act(batch: Batch) -> None:
        seen.extend(batch.requests)
        assert batch.model is not None
        assert batch.instance.name == "m_0_0"
        assert all(request.batch is batch and request.wait_for_room() for request in batch.requests)
        batch.respond([InferResponse(()) for _ in batch.requests])

    Told.act = act
    model_repository.add("m", config_of("toy", batch=4, more=sample(rows=2)))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Told}))):
        pass
    first, second = seen
    assert first is not second
    assert first.inputs is not second.inputs
    assert {(each.model_name, each.model_version, each.batch_size, each.outputs, each.sequence) for each in seen} == {
        ("m", 1, 1, None, None)
    }
    assert all(each.queued_ns and each.received_ns for each in seen)


def test_what_the_backend_raises_is_the_reason_and_its_instance_is_closed(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    def act(batch: Batch) -> None:
        raise ValueError("too cold")

    Told.act = act
    model_repository.add("m", config_of("toy", batch=2, more=sample(rows=2)))
    assert "failed to run warmup sample 'cold': ValueError: too cold; ValueError: too cold; " in refusal(
        model_repository
    )
    assert Told.closed == ["m_0_0"]
    assert any(record.exc_info for record in caplog.records), "the traceback is nowhere"


def test_the_error_of_one_answer_is_the_reason(model_repository: ModelRepository) -> None:
    def act(batch: Batch) -> None:
        good, bad = batch.requests
        good.respond(InferResponse(()))
        bad.respond(InferResponse.failed(bad, InvalidArgument("only one of us")))

    Told.act = act
    model_repository.add("m", config_of("toy", batch=2, more=sample(rows=2) + sample("never")))
    assert "failed to run warmup sample 'cold': only one of us; " in refusal(model_repository)
    assert len(Told.batches) == 2, "what comes behind a failing sample is not run"


@pytest.mark.parametrize(("batch", "rows"), [(0, 2), (4, 5)])
def test_a_batch_beyond_the_models_maximum_is_not_run(model_repository: ModelRepository, batch: int, rows: int) -> None:
    model_repository.add("m", config_of("toy", batch=batch, more=sample(rows=rows)))
    text = "; ".join([f"batch size {rows} for 'm_0_0', max allowed is {batch}"] * rows)
    assert f"failed to run warmup sample 'cold': {text}; " in refusal(model_repository)
    assert Told.batches == [("m_0_0", ["init"])]


def test_a_decoupled_model_is_waited_for_until_its_last_answer(model_repository: ModelRepository) -> None:
    threads = []

    def later(request: InferRequest) -> None:
        for _ in range(3):
            request.respond(InferResponse((), final=False))
        Told.batches.append(("finished", []))
        request.respond(InferResponse((), empty=True))

    def act(batch: Batch) -> None:
        for request in batch.requests:
            threads.append(threading.Thread(target=later, args=(request,)))
            threads[-1].start()

    Told.act = act
    more = sample(rows=2, count=2) + "model_transaction_policy { decoupled: true }"
    model_repository.add("m", config_of("toy", batch=2, more=more))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Told}))):
        pass
    for thread in threads:
        thread.join()
    assert [what for what, _ in Told.batches] == ["m_0_0"] + ["m_0_0", "finished", "finished"] * 2


def test_later_answers_disturb_nobody(model_repository: ModelRepository) -> None:
    def act(batch: Batch) -> None:
        (request,) = batch.requests
        request.respond(InferResponse(()))
        request.respond(InferResponse.failed(request, Internal("too late")))
        raise ValueError("too late as well")

    Told.act = act
    model_repository.add("m", config_of("toy", more=sample(count=3)))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Told}))):
        assert len(Told.batches) == 4


def test_a_model_that_hands_a_request_back_runs_it_again_if_it_is_made_for_that() -> None:
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


def test_a_model_that_may_not_hand_requests_back_fails() -> None:
    with pytest.raises(InvalidArgument, match="the model is not configured to handle such a flag"):
        warm_up("", lambda batch: [request.reschedule() for request in batch.requests])


def test_the_log_tells_what_is_run_and_how_long_it_took(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        warm_up("", lambda batch: batch.respond([InferResponse(()) for _ in batch.requests]), count=2)
    assert caplog.messages[:2] == [
        f"model 'm' instance m_0_0 is running warmup sample 'cold' for iteration {number}" for number in (1, 2)
    ]
    assert caplog.messages[2].startswith("m_0_0 is warmed up, after ")


def test_a_long_one_says_now_and_then_how_far_it_is(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "_PROGRESS_NS", 0)
    with caplog.at_level(logging.INFO):
        warm_up("", lambda batch: batch.respond([InferResponse(()) for _ in batch.requests]), count=2)
    assert "m_0_0 is running warmup sample 'cold' for iteration 2 of 2, after 0 s" in caplog.messages


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


def test_an_instance_that_is_added_later_is_warmed_up_and_the_others_are_not_again(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", more=sample()))
    control = {"mode": "explicit", "load": ["*"]}
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Told})), control=control) as server:
        model_repository.add("m", config_of("toy", instances=2, more=sample()))
        server.engine.load_model("m")
        for name in ("m_0_0", "m_0_1"):
            assert [values for thread, values in Told.batches if thread == name] == [["init"], [[0]]]


def test_an_instance_that_cannot_be_warmed_up_is_not_added(model_repository: ModelRepository) -> None:
    model_repository.add("m", config_of("toy", more=sample()))
    control = {"mode": "explicit", "load": ["*"]}
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Told})), control=control) as server:

        def act(batch: Batch) -> None:
            raise ValueError("too cold")

        Told.act = act
        model_repository.add("m", config_of("toy", instances=2, more=sample()))
        with pytest.raises(TritonError, match="failed to run warmup sample 'cold': ValueError: too cold"):
            server.engine.load_model("m")
        Told.act = None
        witness = Witness()
        witness.wait(request := ask(server.engine, witness, "m", [4]))
        assert numbers(witness.answers(request)) == [[8]]
