"""Instances without a thread of their own: what they keep to, and that none is owned twice or never."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.limiter import ResourceLimiter
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from tritonpy.api.backend import Array, Backend, InstanceContext, ModelContext
from tritonpy.direct import DirectScheduler
from tritonpy.runners.limiter.execution_count import ExecutionCountLimiter
from tritonpy.runners.pooled_instance import may_share_threads
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.parse import model_config
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch

NOT_INLINE = 'parameters { key: "inline" value { string_value: "false" } }'
NEEDS_R = 'rate_limiter {{ resources {{ name: "R" count: 1 }} priority: {} }}'


class Anywhere(Doubler):
    """Notes what happens to its instances, and on which thread."""

    runs_on_any_thread = True
    events: ClassVar[list[tuple[str, str, str]]] = []

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self.note("init")

    def note(self, event: str) -> None:
        self.events.append((event, self.instance.name, threading.current_thread().name.partition(" ")[0]))

    def execute(self, batch: Batch) -> None:
        self.note("execute")
        super().execute(batch)

    def close(self) -> None:
        self.note("close")


@pytest.fixture(autouse=True)
def no_events() -> None:
    Anywhere.events = []


class Delayed(DirectScheduler):
    """Names a time 50 us after a request came: a thread waits for that."""

    def ready(self, instance: int, now_ns: int) -> bool | int:
        if not self._queue:
            return False
        due = self._queue[0].queued_ns + 50_000
        return True if now_ns >= due else due


def anywhere(kind: type[Backend]) -> type[Backend]:
    return type("AnywhereToo", (kind,), {"runs_on_any_thread": True})


def plugins(kind: type[Backend] = Anywhere) -> Any:
    return toy_plugins(ToyPlugin({"toy": kind}, {"dynamic": Delayed}))


def execution_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("execution ")]


def test_fifty_idle_models_own_no_thread(model_repository: ModelRepository) -> None:
    for number in range(50):
        model_repository.add(f"m{number}", config_of("toy", more=NOT_INLINE))
    witness = Witness()
    with serving(model_repository, plugins()) as server:
        assert len(execution_threads()) <= 4
        for number in range(50):
            witness.wait(ask(server.engine, witness, f"m{number}", [1]))
        assert len(execution_threads()) <= 4
        assert not any(thread.name.startswith("m") and "_0" in thread.name for thread in threading.enumerate())
    assert execution_threads() == []


def test_instances_are_built_executed_and_closed_once_each(model_repository: ModelRepository) -> None:
    model_repository.add("m", config_of("toy", instances=3, more=NOT_INLINE))
    witness = Witness()
    with serving(model_repository, plugins()) as server:
        requests = [ask(server.engine, witness, "m", [number]) for number in range(20, 60)]
        assert [numbers(answers) for answers in witness.wait(*requests)] == [[[2 * each]] for each in range(20, 60)]
    assert {thread for event, _, thread in Anywhere.events if event == "execute"} == {"execution"}
    for index in range(3):
        own = [event for event, name, _ in Anywhere.events if name == f"m_0_{index}"]
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
def test_what_may_wait_or_is_on_a_gpu_keeps_its_thread(text: str, kind: str, shares: bool) -> None:
    class Model:
        config = model_config(text)

    context = InstanceContext("m_0_0", kind, 0, 0)
    assert may_share_threads(Model, Anywhere, context) is shares  # type: ignore[arg-type]
    assert not may_share_threads(Model, Doubler, context)  # type: ignore[arg-type]


def test_instances_of_one_model_execute_at_the_same_time(model_repository: ModelRepository) -> None:
    together = threading.Barrier(3)

    class Meeting(Anywhere):
        def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            together.wait(10)
            return super().infer(inputs)

    model_repository.add("m", config_of("toy", instances=3, more=NOT_INLINE))
    witness = Witness()
    with serving(model_repository, plugins(Meeting)) as server:
        requests = [ask(server.engine, witness, "m", [number]) for number in range(20, 29)]
        assert all(answer.error is None for (answer,) in witness.wait(*requests))


def test_an_instance_never_executes_twice_at_the_same_time(model_repository: ModelRepository) -> None:
    inside = threading.Lock()

    class Alone(Anywhere):
        def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            assert inside.acquire(blocking=False), "two execute at once"
            time.sleep(0)
            inside.release()
            return super().infer(inputs)

    more = NOT_INLINE + "dynamic_batching { }"
    model_repository.add("m", config_of("toy", batch=4, more=more))
    witness = Witness()
    with serving(model_repository, plugins(Alone)) as server:

        def ask_many() -> None:
            for number in range(100, 250):
                witness.wait(ask(server.engine, witness, "m", [[number]]))

        callers = [threading.Thread(target=ask_many) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        witness.check(*witness.requests)
        assert all(answers[-1].error is None for answers in witness.wait(*witness.requests))


def test_more_busy_instances_than_threads_all_get_on(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonpy.repository.surroundings.EXECUTION_THREADS", 2)
    asked = threading.Event()

    class Held(Anywhere):
        def execute(self, batch: Batch) -> None:
            assert asked.wait(10)
            super().execute(batch)

    for number in range(6):
        model_repository.add(f"m{number}", config_of("toy", more=NOT_INLINE))
    witness = Witness()
    with serving(model_repository, plugins(Held)) as server:
        requests = [ask(server.engine, witness, f"m{number % 6}", [number]) for number in range(100, 400)]
        asked.set()
        assert all(answer.error is None for (answer,) in witness.wait(*requests))
    order = [name for event, name, _ in Anywhere.events if event == "execute"]
    # Each instance has 50 executions, and one thread may be about to begin with an instance while the other one executes.
    assert len(set(order[:100])) >= 5, "an instance that always has more to do kept a thread from the others"


def test_what_an_execution_raises_answers_its_requests_and_the_instance_goes_on(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", more=NOT_INLINE))
    witness = Witness()
    with serving(model_repository, plugins()) as server:
        ((answer,),) = witness.wait(ask(server.engine, witness, "m", [13]))
        assert "thirteen cannot be doubled" in answer.error.message
        ((answer,),) = witness.wait(ask(server.engine, witness, "m", [14]))
        assert answer.error is None


def test_an_instance_that_cannot_be_built_fails_the_load_and_the_others_are_closed(
    model_repository: ModelRepository,
) -> None:
    class Fragile(Anywhere):
        def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
            super().__init__(model, instance)
            if instance.index == 1:
                raise ValueError("there is no second one")

    model_repository.add("m", config_of("toy", instances=3))
    limiter = ResourceLimiter({})
    with serving(model_repository, plugins(Fragile), limiter=limiter, exit_on_error=False) as server:
        assert "there is no second one" in server.failures["m"].message
        assert sorted(event for event, _, _ in Anywhere.events) == ["close"] * 2 + ["init"] * 3
        assert limiter.needs == {}


def limited(priority: int) -> str:
    config = config_of("toy", more=NOT_INLINE)
    return config.replace("kind: KIND_CPU", f"kind: KIND_CPU {NEEDS_R.format(priority)}")


def test_turns_at_the_rate_limiter_never_overlap_and_waiting_for_one_takes_no_thread(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tritonpy.repository.surroundings.EXECUTION_THREADS", 1
    )  # a thread that waited would keep the others from executing
    inside = threading.Lock()

    class Alone(Anywhere):
        def execute(self, batch: Batch) -> None:
            assert inside.acquire(blocking=False), "two execute at once"
            super().execute(batch)
            inside.release()

    for name in ("a", "b", "c"):
        model_repository.add(name, limited(1))
    witness = Witness()
    with serving(model_repository, plugins(Alone), limiter=ExecutionCountLimiter({"R": 1})) as server:
        requests = [ask(server.engine, witness, name, [20]) for name in ("a", "b", "c") for _ in range(40)]
        assert all(answer.error is None for (answer,) in witness.wait(*requests))
    assert [event for event, _, _ in Anywhere.events].count("execute") == 120


def test_a_model_is_unloaded_while_its_instance_waits_for_its_turn(model_repository: ModelRepository) -> None:
    config = limited(1) + "instance_group { count: 1 kind: KIND_CPU }"

    class Choosy(ResourceLimiter):
        def register(self, instance: str, device: int, group: Any) -> bool:
            super().register(instance, device, group)
            return bool(group.rate_limiter.resources)

    model_repository.add("m", config)
    witness = Witness()
    with serving(model_repository, plugins(), limiter=Choosy({"R": 0})) as server:
        for number in range(20, 26):
            witness.wait(ask(server.engine, witness, "m", [number]))


def test_instances_come_and_go_while_requests_are_executed(model_repository: ModelRepository) -> None:
    gate = Gate()
    model_repository.add("m", config_of("toy", instances=2, more=NOT_INLINE))
    witness = Witness()
    with serving(
        model_repository, plugins(anywhere(gated(gate))), control={"mode": "explicit", "load": ["m"]}
    ) as server:
        requests = [ask(server.engine, witness, "m", [number]) for number in (20, 21)]
        gate.wait_for(2)
        model_repository.add("m", config_of("toy", instances=1, more=NOT_INLINE))
        gate.open()
        server.engine.load_model("m")
        model_repository.add("m", config_of("toy", instances=3, more=NOT_INLINE))
        server.engine.load_model("m")
        requests += [ask(server.engine, witness, "m", [number]) for number in range(30, 50)]
        assert all(answer.error is None for (answer,) in witness.wait(*requests))
        runner = server.engine._table.find("m", 1).runner
        assert len(runner._instances) == 3
        assert runner.alive()
    assert not runner.alive()
