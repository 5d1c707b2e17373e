"""The contract of schedulers."""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

from tritonpy import Batch, Code, Engine, InferRequest, Tensor, TritonError
from tritonpy.scheduling import BatchPolicy, Scheduler, SchedulerContext
from tritonpy_testing.contracts.optional import only_if
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.parse import model_config
from tritonpy_testing.sample_inputs import random_inputs
from tritonpy_testing.scheduler_harness import SchedulerHarness
from tritonpy_testing.toy_engine import ToyEngine

SEEDS = range(20)
ANSWERED_TOO_EARLY = (
    "the requests ended without an execution: does the configuration let them time out?"
)


def _has_instances(contract: Any) -> bool:
    scheduler = getattr(contract, "plugin_class", Scheduler)
    return bool(getattr(scheduler, "uses_instances", True))


class SchedulerContract(PluginContract):
    """The contract of `Scheduler`. Set `plugin_class` and `config`.

    `config` is the text of a model's configuration without request timeouts. Override
    `make_request` if requests need more than random inputs (sequences). Batch policies are those
    that `plugin` registers. Time is simulated. For a scheduler with `uses_instances = False`, the
    tests only check that every request has a final response; provide the models that it calls in
    `make_engine`.
    """

    interface = Scheduler
    hook = "tritonpy_schedulers"
    config: ClassVar[str]

    def make_engine(self) -> ToyEngine:
        """Return the scheduler's engine (optional)."""
        return ToyEngine()

    def make_request(self, harness: SchedulerHarness, random: Random) -> InferRequest:
        """Return the next request (optional)."""
        config = harness.scheduler.context.config
        rows = random.randint(1, min(config.max_batch_size, 3)) if config.max_batch_size > 0 else 1
        inputs = {
            name: Tensor.from_numpy(name, array)
            for name, array in random_inputs(config, random, rows).items()
        }
        return InferRequest(config.name or "model", inputs, harness.recorder.sink, batch_size=rows)

    def make(self, engine: Engine, instances: int = 1) -> SchedulerHarness:
        """Return the harness of a new scheduler."""
        config = model_config(self.config)
        context = SchedulerContext(
            name=config.name or "model",
            version=1,
            config=config,
            engine=engine,
            policy=self._policy,
            wake=lambda: None,
        )
        return SchedulerHarness(self.plugin_class(context), range(instances))

    def _policy(self, name: str) -> BatchPolicy:
        kind: type[BatchPolicy] = (
            self.manager().get("tritonpy_batch_policies", name, "batch policy").load()
        )
        return kind(model_config(self.config))

    def test_every_request_is_answered_exactly_once(self) -> None:
        for seed in SEEDS:
            random = Random(seed)
            with self.make_engine() as engine:
                harness = self.make(engine, 1 + seed % 3)
                for _ in range(30):
                    harness.enqueue(self.make_request(harness, random))
                    if random.random() < 0.4 and self.plugin_class.uses_instances:
                        harness.step(random)
                harness.finish()
                harness.recorder.check(*harness.enqueued)

    @only_if(_has_instances)
    def test_a_batch_keeps_to_the_maximum_size(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 20)
            most = harness.scheduler.context.config.max_batch_size or 1
            for batch in harness.finish():
                assert batch.size <= most, f"a batch of {batch.size} rows, the model allows {most}"

    @only_if(_has_instances)
    def test_take_keeps_to_its_limit(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 20)
            for batch in harness.finish(limit=1):
                assert len(batch.requests) == 1, (
                    f"take(limit=1) returned {len(batch.requests)} requests"
                )

    @only_if(_has_instances)
    def test_an_empty_queue_is_not_ready(self) -> None:
        with self.make_engine() as engine:
            harness = self.make(engine)
            for _ in range(2):
                assert harness.scheduler.ready(0, harness.now_ns) is False, (
                    "ready() returned True for an empty queue"
                )
                assert harness.scheduler.take(0, harness.now_ns) is None, (
                    "take() returned a batch from an empty queue"
                )
                harness.enqueue(self.make_request(harness, Random(0)))
                harness.finish()

    @only_if(_has_instances)
    def test_waiting_requests_are_pending(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 5)
            waiting = {id(request) for request in harness.scheduler.pending()}
            assert waiting == {id(request) for request in harness.unanswered()}, (
                "pending() does not list the waiting requests"
            )
            harness.finish()
            assert not harness.scheduler.pending(), (
                "pending() lists requests that have their final response"
            )

    @only_if(_has_instances)
    def test_coalesced_requests_are_taken_all_or_none(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 1)
            coalesced = [self.make_request(harness, Random(2)) for _ in range(3)]
            taken = harness.enqueue_many(coalesced)
            waiting = {id(request) for request in harness.scheduler.pending()}
            requested = {id(request) for request in harness.unanswered()}
            assert waiting == requested, (
                f"enqueue_many() said {taken} and pending() does not fit that"
            )
            answered = [request for request in coalesced if harness.recorder.responses(request)]
            assert not answered, "enqueue_many() answered a request"
            harness.finish()
            harness.recorder.check(*harness.enqueued)

    @only_if(_has_instances)
    def test_a_waiting_request_can_be_cancelled(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 5)
            cancelled = harness.unanswered()[-1]
            harness.cancel(cancelled)
            [responses] = harness.recorder.wait(cancelled, timeout_s=0)
            error = responses[-1].error
            assert error is not None, "a cancelled request ended without an error"
            assert error.code == Code.CANCELLED, (
                f"a cancelled request ended with {error.code.name}: {error}"
            )
            for batch in harness.finish():
                assert cancelled not in batch.requests, "a cancelled request was executed"
            harness.recorder.check(*harness.enqueued)

    @only_if(_has_instances)
    def test_cancelling_a_request_that_does_not_wait_does_nothing(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 1)
            batch = harness.take_next()
            assert batch is not None, ANSWERED_TOO_EARLY
            for request in batch.requests:
                harness.cancel(request)
                assert not harness.recorder.responses(request), (
                    "cancel() responded to a request that its instance still has"
                )
            harness.complete(batch)
            for request in batch.requests:
                harness.cancel(request)
            harness.finish()
            harness.recorder.check(*harness.enqueued)

    @only_if(_has_instances)
    def test_waiting_requests_run_after_stop(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 5)
            harness.scheduler.stop()
            late = self.make_request(harness, Random(1))
            try:
                harness.enqueue(late)
            except TritonError:
                assert not harness.recorder.responses(late), (
                    "enqueue() raised and responded: the caller still owns the request"
                )
            harness.finish()
            harness.recorder.check(*harness.enqueued)

    @only_if(_has_instances)
    def test_waiting_requests_run_after_finish(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 5)
            harness.scheduler.stop()
            harness.scheduler.finish()
            harness.finish()
            harness.recorder.check(*harness.enqueued)

    @only_if(_has_instances)
    def test_a_rescheduled_request_is_answered_once(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 3)
            batch = harness.take_next()
            assert batch is not None, ANSWERED_TOO_EARLY
            first, *others = batch.requests
            harness.scheduler.released(first, reschedule=True)
            harness.complete(Batch(others))
            harness.finish()
            harness.recorder.check(*harness.enqueued)

    @only_if(_has_instances)
    def test_when_an_instance_is_lost_every_request_is_answered_once(self) -> None:
        with self.make_engine() as engine:
            harness = self._filled(engine, 5)
            batch = harness.take_next()
            assert batch is not None, ANSWERED_TOO_EARLY
            harness.scheduler.lost(0)
            for request in batch.requests:
                assert not request.finished, (
                    "lost() responded to a request of the instance, which its runner does"
                )
            harness.complete(batch)
            harness.finish()
            harness.recorder.check(*harness.enqueued)

    def _filled(self, engine: Engine, count: int) -> SchedulerHarness:
        harness, random = self.make(engine), Random(0)
        for _ in range(count):
            harness.enqueue(self.make_request(harness, random))
        return harness
