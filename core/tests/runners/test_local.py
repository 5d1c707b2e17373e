from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import pytest

from core.tests.toys.doubler import Doubler
from core.tests.toys.limiter import ResourceLimiter
from core.tests.toys.serving import ToyPlugin, ask, config_of, serving, toy_plugins
from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.runners.readiness import ReadinessCheck
from tritonpy_rate_limiter.execution_count import ExecutionCountLimiter
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch
from tritonpy_types.errors import StartupError


class RecordingBackend(Doubler):
    """Records its calls and their threads."""

    events: ClassVar[list[tuple[str, str]]] = []

    @classmethod
    def note(cls, event: str) -> None:
        cls.events.append((event, threading.current_thread().name))

    @classmethod
    def load(cls, model: ModelContext) -> object:
        cls.events = []
        cls.note("load")
        return "shared"

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        assert model.shared == "shared"
        self.note("init")

    def execute(self, batch: Batch) -> None:
        self.note("execute")
        super().execute(batch)

    def close(self) -> None:
        self.note("close")

    @classmethod
    def unload(cls, shared: object) -> None:
        assert shared == "shared"
        cls.note("unload")


def test_an_instance_lives_on_one_thread_named_after_it(model_repository: ModelRepository) -> None:
    model_repository.add("m", config_of("toy", instances=2))
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": RecordingBackend}))) as server:
        recorder.wait(*[ask(server.engine, recorder, "m", [1]) for _ in range(20)])
    kinds = [event for event, _ in RecordingBackend.events]
    assert (kinds[0], kinds[-1], kinds.count("unload")) == ("load", "unload", 1)
    for name in ("m_0_0", "m_0_1"):
        own = [event for event, thread in RecordingBackend.events if thread == name]
        assert (own[0], own[-1]) == ("init", "close")
        assert set(own[1:-1]) <= {"execute"}
    assert not {thread.name for thread in threading.enumerate()} & {"m_0_0", "m_0_1"}


def test_an_instance_that_cannot_be_built_fails_the_load_and_the_others_are_closed(
    model_repository: ModelRepository,
) -> None:
    class Fragile(RecordingBackend):
        def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
            super().__init__(model, instance)
            if instance.index == 1:
                raise ValueError("there is no second one")

    model_repository.add("m", config_of("toy", instances=3))
    limiter = ResourceLimiter({})
    plugins = toy_plugins(ToyPlugin({"toy": Fragile}))
    with serving(model_repository, plugins, limiter=limiter, exit_on_error=False) as server:
        assert "there is no second one" in server.failures["m"].message
        assert sorted(event for event, _ in Fragile.events) == sorted(
            ["load", *["init"] * 3, *["close"] * 2, "unload"]
        )
        assert limiter.demands == {}


def test_an_impossible_resource_demand_fails_the_load_cleanly(
    model_repository: ModelRepository,
) -> None:
    class Strict(ResourceLimiter):
        def register(self, instance: str, device: int, group: Any) -> None:
            if len(self.demands) == 1:
                raise ValueError("only one may register")
            super().register(instance, device, group)

    model_repository.add("m", config_of("toy", instances=2))
    limiter = Strict({})
    with (
        pytest.raises(StartupError, match="failed to load all models: m"),
        serving(model_repository, toy_plugins(ToyPlugin({"toy": Doubler})), limiter=limiter),
    ):
        pass
    assert limiter.demands == {}


def test_several_instances_execute_at_the_same_time(model_repository: ModelRepository) -> None:
    together = threading.Barrier(3)

    class Meeting(Doubler):
        def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            together.wait(10)  # passes only when three threads are inside
            return super().infer(inputs)

    model_repository.add("m", config_of("toy", instances=3))
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Meeting}))) as server:
        requests = [ask(server.engine, recorder, "m", [number]) for number in range(9)]
        assert all(answer.error is None for (answer,) in recorder.wait(*requests))


def test_an_instance_that_fails_to_close_does_not_block_the_others(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    class Stubborn(Backend):
        def close(self) -> None:
            raise ValueError("will not close")

    model_repository.add("m", config_of("toy"))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Stubborn}))) as server:
        assert server.engine.is_model_ready("m")
    assert "instance m_0_0 failed to close" in caplog.text


def test_a_model_is_ready_when_all_its_instances_are(model_repository: ModelRepository) -> None:
    class Moody(Doubler):
        ready = False

        def is_ready(self) -> bool:
            return Moody.ready or self.instance.index == 0

    model_repository.add("m", config_of("toy", instances=2))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Moody}))) as server:
        assert not server.engine.is_model_ready("m")
        Moody.ready = True
        assert server.engine.is_model_ready("m")


def test_a_model_with_a_hanging_check_is_not_ready_but_the_server_is(
    model_repository: ModelRepository,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(
        "tritonpy.runners.local.ReadinessCheck", partial(ReadinessCheck, limit_s=0.01)
    )
    speak = threading.Event()

    class Silent(Doubler):
        def is_ready(self) -> bool:
            return speak.wait(10)

    model_repository.add("m", config_of("toy"))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Silent}))) as server:
        assert not server.engine.is_model_ready("m")
        assert server.engine.is_ready()
        assert "is_ready() did not respond within 0.01 s" in caplog.text
        speak.set()


def test_a_model_without_a_readiness_check_is_not_queried(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadinessCheck, "check", lambda _check: pytest.fail("it was asked"))
    model_repository.add("m", config_of("toy"))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Doubler}))) as server:
        assert server.engine.is_model_ready("m")


def test_instances_are_alive_until_they_are_stopped(model_repository: ModelRepository) -> None:
    model_repository.add("m", config_of("toy", instances=2))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Doubler}))) as server:
        runner = server.engine._table.find("m", 1).runner
        assert runner.alive()
        assert runner.is_ready()
    assert not runner.alive()
    assert not runner.is_ready()


NEEDS_R = 'rate_limiter {{ resources {{ name: "R" count: 1 }} priority: {} }}'


def limited(priority: int, instances: int = 1) -> str:
    config = config_of("toy", instances=instances)
    return config.replace("kind: KIND_CPU", f"kind: KIND_CPU {NEEDS_R.format(priority)}")


def test_executions_with_leases_follow_priorities_and_never_overlap(
    model_repository: ModelRepository,
) -> None:
    order: list[str] = []
    inside = threading.Lock()
    begin, in_line = threading.Event(), threading.Event()

    class Seen(ExecutionCountLimiter):
        def acquire(self, instance: str, granted: Callable[[], object]) -> bool:
            may = super().acquire(instance, granted)
            if not may:
                in_line.set()
            return may

    class Noting(Doubler):
        def execute(self, batch: Batch) -> None:
            assert begin.wait(10)
            assert inside.acquire(blocking=False), "two execute concurrently"
            order.append(self.model.name)
            super().execute(batch)
            inside.release()

    model_repository.add("often", limited(1))
    model_repository.add("seldom", limited(2))
    recorder = RecordingSink()
    plugins = toy_plugins(ToyPlugin({"toy": Noting}))
    with serving(model_repository, plugins, limiter=Seen({"R": 1})) as server:
        requests = [
            ask(server.engine, recorder, name, [1])
            for name in ("often", "seldom")
            for _ in range(40)
        ]
        assert in_line.wait(10), "the second model never asked"
        begin.set()
        assert all(answer.error is None for (answer,) in recorder.wait(*requests))
    last = max(number for number, name in enumerate(order) if name == "often")
    assert abs(order[: last + 1].count("seldom") - 20) <= 2


def test_an_instance_that_waits_for_a_lease_leaves_the_request_to_another(
    model_repository: ModelRepository,
) -> None:
    config = config_of("toy").replace("kind: KIND_CPU", f"kind: KIND_CPU {NEEDS_R.format(1)}")
    model_repository.add("m", config + "instance_group { count: 1 kind: KIND_CPU }")

    class Choosy(ResourceLimiter):
        def register(self, instance: str, device: int, group: Any) -> bool:
            super().register(instance, device, group)
            return bool(group.rate_limiter.resources)

    limiter, recorder = Choosy({"R": 0}), RecordingSink()
    with serving(
        model_repository, toy_plugins(ToyPlugin({"toy": Doubler})), limiter=limiter
    ) as server:
        for number in range(6):
            recorder.wait(ask(server.engine, recorder, "m", [number]))


def test_a_thread_of_a_policy_runs_on_its_cores(model_repository: ModelRepository) -> None:
    found: list[tuple[set[int], tuple[int, ...]]] = []
    core = min(os.sched_getaffinity(0))

    class Located(Doubler):
        def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
            super().__init__(model, instance)
            found.append((os.sched_getaffinity(0), instance.cores))

    model_repository.add("m", config_of("toy"))
    policies = {"cpu": {"cpu_cores": str(core)}}
    with serving(
        model_repository, toy_plugins(ToyPlugin({"toy": Located})), host_policies=policies
    ):
        assert found == [({core}, (core,))]
    assert core in os.sched_getaffinity(0)
