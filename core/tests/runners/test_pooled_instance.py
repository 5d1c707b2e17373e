"""Instances without their own thread: threading rules and unique ownership."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.limiter import ResourceLimiter
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from tritonpy.api.backend import Array, Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.pooled_instance import may_share_threads
from tritonpy_rate_limiter.execution_count import ExecutionCountLimiter
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch

NOT_INLINE = 'parameters { key: "inline" value { string_value: "false" } }'
NEEDS_R = 'rate_limiter {{ resources {{ name: "R" count: 1 }} priority: {} }}'


class AnyThread(Doubler):
    """Records its calls and their threads."""

    runs_on_any_thread = True
    events: ClassVar[list[tuple[str, str, str]]] = []

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self.note("init")

    def note(self, event: str) -> None:
        self.events.append(
            (event, self.instance.name, threading.current_thread().name.partition(" ")[0])
        )

    def execute(self, batch: Batch) -> None:
        self.note("execute")
        super().execute(batch)

    def close(self) -> None:
        self.note("close")


@pytest.fixture(autouse=True)
def no_events() -> None:
    AnyThread.events = []


class Delayed(DirectScheduler):
    """Schedules a batch 50 us after its request, for which a thread waits."""

    def ready(self, instance: int, now_ns: int) -> bool | int:
        if not self._queue:
            return False
        due = self._queue[0].queued_ns + 50_000
        return True if now_ns >= due else due


def anywhere(kind: type[Backend]) -> type[Backend]:
    return type("AnywhereToo", (kind,), {"runs_on_any_thread": True})


def plugins(kind: type[Backend] = AnyThread) -> Any:
    return toy_plugins(ToyPlugin({"toy": kind}, {"dynamic": Delayed}))


def execution_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("execution ")]


def test_fifty_idle_models_own_no_thread(model_repository: ModelRepository) -> None:
    shared = 25  # how many run at once while models load depends on the machine, but is no thread per model
    for number in range(50):
        model_repository.add(f"m{number}", config_of("toy", more=NOT_INLINE))
    recorder = RecordingSink()
    with serving(model_repository, plugins()) as server:
        assert len(execution_threads()) <= shared
        for number in range(50):
            recorder.wait(ask(server.engine, recorder, f"m{number}", [1]))
        assert len(execution_threads()) <= shared
        assert not any(
            thread.name.startswith("m") and "_0" in thread.name for thread in threading.enumerate()
        )
    assert execution_threads() == []


def test_instances_are_built_executed_and_closed_once_each(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", instances=3, more=NOT_INLINE))
    recorder = RecordingSink()
    with serving(model_repository, plugins()) as server:
        requests = [ask(server.engine, recorder, "m", [number]) for number in range(20, 60)]
        assert [numbers(answers) for answers in recorder.wait(*requests)] == [
            [[2 * each]] for each in range(20, 60)
        ]
    assert {thread for event, _, thread in AnyThread.events if event == "execute"} == {"execution"}
    for index in range(3):
        own = [event for event, name, _ in AnyThread.events if name == f"m_0_{index}"]
        assert (own.count("init"), own.count("close"), own[0], own[-1]) == (1, 1, "init", "close")


@pytest.mark.parametrize(
    ("text", "kind", "shares"),
    [
        ("", "CPU", True),
        ("", "GPU", False),
        ("", "MODEL", False),
        ("model_transaction_policy { decoupled: true }", "CPU", False),
        ("sequence_batching { }", "CPU", True),
    ],
)
def test_instances_that_may_block_or_use_a_gpu_keep_their_thread(
    text: str, kind: str, shares: bool
) -> None:
    class Model:
        config = model_config(text)

    context = InstanceContext("m_0_0", kind, 0, 0)
    assert may_share_threads(Model, AnyThread, context) is shares  # type: ignore[arg-type]
    assert not may_share_threads(Model, Doubler, context)  # type: ignore[arg-type]


def test_instances_of_one_model_execute_at_the_same_time(model_repository: ModelRepository) -> None:
    together = threading.Barrier(3)

    class Meeting(AnyThread):
        def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            together.wait(10)
            return super().infer(inputs)

    model_repository.add("m", config_of("toy", instances=3, more=NOT_INLINE))
    recorder = RecordingSink()
    with serving(model_repository, plugins(Meeting)) as server:
        requests = [ask(server.engine, recorder, "m", [number]) for number in range(20, 29)]
        assert all(answer.error is None for (answer,) in recorder.wait(*requests))


def test_an_instance_never_executes_twice_at_the_same_time(
    model_repository: ModelRepository,
) -> None:
    inside = threading.Lock()

    class Alone(AnyThread):
        def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            assert inside.acquire(blocking=False), "two execute concurrently"
            time.sleep(0)
            inside.release()
            return super().infer(inputs)

    more = NOT_INLINE + "dynamic_batching { }"
    model_repository.add("m", config_of("toy", batch=4, more=more))
    recorder = RecordingSink()
    with serving(model_repository, plugins(Alone)) as server:

        def ask_many() -> None:
            for number in range(100, 250):
                recorder.wait(ask(server.engine, recorder, "m", [[number]]))

        callers = [threading.Thread(target=ask_many) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        recorder.check(*recorder.requests)
        assert all(answers[-1].error is None for answers in recorder.wait(*recorder.requests))


def test_more_busy_instances_than_threads_all_progress(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonpy.server.server.EXECUTION_THREADS", 2)
    requested = threading.Event()

    class Held(AnyThread):
        def execute(self, batch: Batch) -> None:
            assert requested.wait(10)
            super().execute(batch)

    for number in range(6):
        model_repository.add(f"m{number}", config_of("toy", more=NOT_INLINE))
    recorder = RecordingSink()
    with serving(model_repository, plugins(Held)) as server:
        requests = [
            ask(server.engine, recorder, f"m{number % 6}", [number]) for number in range(100, 400)
        ]
        requested.set()
        assert all(answer.error is None for (answer,) in recorder.wait(*requests))
    order = [name for event, name, _ in AnyThread.events if event == "execute"]
    # Each instance has 50 executions, and one thread may be about to begin one while the other
    # thread executes.
    assert len(set(order[:100])) >= 5, (
        "an instance that always has more to do kept a thread from the others"
    )


def test_an_error_of_an_execution_fails_its_requests_and_the_instance_continues(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", more=NOT_INLINE))
    recorder = RecordingSink()
    with serving(model_repository, plugins()) as server:
        ((answer,),) = recorder.wait(ask(server.engine, recorder, "m", [13]))
        assert "thirteen cannot be doubled" in answer.error.message
        ((answer,),) = recorder.wait(ask(server.engine, recorder, "m", [14]))
        assert answer.error is None


def test_an_instance_that_cannot_be_built_fails_the_load_and_the_others_are_closed(
    model_repository: ModelRepository,
) -> None:
    class Fragile(AnyThread):
        def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
            super().__init__(model, instance)
            if instance.index == 1:
                raise ValueError("there is no second one")

    model_repository.add("m", config_of("toy", instances=3))
    limiter = ResourceLimiter({})
    with serving(
        model_repository, plugins(Fragile), limiter=limiter, exit_on_error=False
    ) as server:
        assert "there is no second one" in server.failures["m"].message
        assert sorted(event for event, _, _ in AnyThread.events) == ["close"] * 2 + ["init"] * 3
        assert limiter.demands == {}


def limited(priority: int) -> str:
    config = config_of("toy", more=NOT_INLINE)
    return config.replace("kind: KIND_CPU", f"kind: KIND_CPU {NEEDS_R.format(priority)}")


def test_leases_never_overlap_and_waiting_for_one_takes_no_thread(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tritonpy.server.server.EXECUTION_THREADS", 1
    )  # a waiting thread would keep the others from executing
    inside = threading.Lock()

    class Alone(AnyThread):
        def execute(self, batch: Batch) -> None:
            assert inside.acquire(blocking=False), "two execute concurrently"
            super().execute(batch)
            inside.release()

    for name in ("a", "b", "c"):
        model_repository.add(name, limited(1))
    recorder = RecordingSink()
    with serving(
        model_repository, plugins(Alone), limiter=ExecutionCountLimiter({"R": 1})
    ) as server:
        requests = [
            ask(server.engine, recorder, name, [20]) for name in ("a", "b", "c") for _ in range(40)
        ]
        assert all(answer.error is None for (answer,) in recorder.wait(*requests))
    assert [event for event, _, _ in AnyThread.events].count("execute") == 120


def test_a_model_is_unloaded_while_its_instance_waits_for_a_lease(
    model_repository: ModelRepository,
) -> None:
    config = limited(1) + "instance_group { count: 1 kind: KIND_CPU }"

    class Choosy(ResourceLimiter):
        def register(self, instance: str, device: int, group: Any) -> bool:
            super().register(instance, device, group)
            return bool(group.rate_limiter.resources)

    model_repository.add("m", config)
    recorder = RecordingSink()
    with serving(model_repository, plugins(), limiter=Choosy({"R": 0})) as server:
        for number in range(20, 26):
            recorder.wait(ask(server.engine, recorder, "m", [number]))


def test_instances_are_added_and_removed_while_requests_are_executed(
    model_repository: ModelRepository,
) -> None:
    gate = Gate()
    model_repository.add("m", config_of("toy", instances=2, more=NOT_INLINE))
    recorder = RecordingSink()
    with serving(
        model_repository,
        plugins(anywhere(gated(gate))),
        control={"mode": "explicit", "load": ["m"]},
    ) as server:
        requests = [ask(server.engine, recorder, "m", [number]) for number in (20, 21)]
        gate.wait_for(2)
        model_repository.add("m", config_of("toy", instances=1, more=NOT_INLINE))
        gate.open()
        server.engine.load_model("m")
        model_repository.add("m", config_of("toy", instances=3, more=NOT_INLINE))
        server.engine.load_model("m")
        requests += [ask(server.engine, recorder, "m", [number]) for number in range(30, 50)]
        assert all(answer.error is None for (answer,) in recorder.wait(*requests))
        runner = server.engine._table.find("m", 1).runner
        assert len(runner._instances) == 3
        assert runner.alive()
    assert not runner.alive()
