"""Notifications of batch policies by a model."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from core.tests.toys.doubler import Doubler
from core.tests.toys.one_model import DYNAMIC
from core.tests.toys.serving import ToyPlugin, ask, config_of, serving, toy_plugins
from tritonpy.api.batch_policy import BatchPolicy, Pending, Run
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.hookspecs import hookimpl
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink


class Learning(BatchPolicy):
    """Records executed batches, and raises for a batch of three rows."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.batches: list[tuple[int, int]] = []

    def plan(self, pending: Pending, now_ns: int) -> Run:
        return Run(len(pending.requests))

    def executed(self, size: int, duration_ns: int) -> None:
        if size == 3:
            raise ValueError("three is too many")
        self.batches.append((size, duration_ns))


class Named(DirectScheduler):
    """Uses a policy, as the dynamic scheduler does."""

    policies: ClassVar[list[Learning]] = []

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        policy = context.policy("learning")
        assert isinstance(policy, Learning)
        self.policies.append(policy)


class LearningPlugin:
    @hookimpl
    def tritonpy_batch_policies(self) -> dict[str, type[BatchPolicy]]:
        return {"learning": Learning}


@pytest.mark.parametrize(("batching", "warned"), [("", True), (DYNAMIC, False)])
def test_an_unused_batch_policy_causes_a_warning(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture, batching: str, warned: bool
) -> None:
    parameter = ' parameters { key: "batch_policy" value { string_value: "learning" } }'
    model_repository.add("m", config_of("toy", batch=4, more=batching + parameter))
    plugins = toy_plugins(ToyPlugin({"toy": Doubler}, {"dynamic": Named}), LearningPlugin())
    with serving(model_repository, plugins):
        assert ("batch_policy 'learning' has no effect" in caplog.text) is warned
    Named.policies.clear()


def test_a_batch_policy_gets_the_durations_of_batches(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = RecordingSink()
    model_repository.add("m", config_of("toy", batch=4, more=DYNAMIC))
    plugins = toy_plugins(ToyPlugin({"toy": Doubler}, {"dynamic": Named}), LearningPlugin())
    with serving(model_repository, plugins) as server:
        requests = [ask(server.engine, recorder, "m", [[number]] * number) for number in (1, 2, 3)]
        recorder.wait(*requests)
    (policy,) = Named.policies
    assert [size for size, _ in policy.batches] == [1, 2]
    assert all(duration_ns > 0 for _, duration_ns in policy.batches)
    assert "three is too many" in caplog.text
    recorder.check(*requests)
