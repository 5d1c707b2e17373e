"""The contract of batch policies."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import ClassVar

from tritonpy import InferRequest
from tritonpy.plugins import make_plugin_manager
from tritonpy.scheduling import BatchPolicy, Pending, Run
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import RecordingSink

NOW_NS = 1_000_000_000
SEEDS = range(100)
MANY_STEPS = 1_000


class BatchPolicyContract(PluginContract):
    """The contract of `BatchPolicy`. Set `plugin_class` and `config`.

    `config` is the complete text of a model's configuration.
    """

    interface = BatchPolicy
    hook = "tritonpy_batch_policies"
    config: ClassVar[str] = "max_batch_size: 8"

    def make(self) -> BatchPolicy:
        """Return a new policy."""
        policies = make_plugin_manager().table("tritonpy_batch_policies")
        config = model_config(self.config)
        policy = self.plugin_class.create(
            config, 1, Path(), lambda name: policies[name].load()(config)
        )
        assert isinstance(policy, BatchPolicy)
        return policy

    def test_every_plan_ends_in_a_run_with_requests(self) -> None:
        for seed in SEEDS:
            self._until_run(self.make(), self._pending(seed))

    def test_a_plan_depends_on_its_arguments_only(self) -> None:
        policy = self.make()
        for seed in SEEDS:
            pending = self._pending(seed)
            first = policy.plan(pending, NOW_NS)
            assert policy.plan(pending, NOW_NS) == first, (
                "two calls with the same arguments returned different plans"
            )

    def test_a_plan_does_not_change_the_queue(self) -> None:
        policy, pending = self.make(), self._pending(1)
        requests, sizes = list(pending.requests), list(pending.sizes)
        policy.plan(pending, NOW_NS)
        assert list(pending.requests) == requests, "plan() changed the requests"
        assert list(pending.sizes) == sizes, "plan() changed the sizes"

    def test_a_shorter_queue_is_planned(self) -> None:
        for seed in SEEDS:
            pending = self._pending(seed)
            for count in range(1, len(pending.sizes) + 1):
                self._until_run(self.make(), pending.first(count))

    def test_the_contract_holds_after_executions_are_reported(self) -> None:
        policy, random = self.make(), Random(0)
        for seed in SEEDS:
            pending = self._pending(seed)
            run, now_ns = self._run_and_time(policy, pending)
            self._cut(policy, pending, run.count, now_ns)
            policy.executed(sum(pending.sizes[: run.count]), random.randrange(1, 10_000_000))

    def test_batches_may_be_cut_before_earlier_ones_are_executed(self) -> None:
        policy = self.make()
        policy.instances_changed(len(SEEDS))
        for seed in SEEDS:
            pending = self._pending(seed)
            run, now_ns = self._run_and_time(policy, pending)
            self._cut(policy, pending, run.count, now_ns)
        for _ in SEEDS:
            policy.executed(1, 1_000_000)

    def test_the_number_of_instances_may_change(self) -> None:
        policy = self.make()
        for seed in SEEDS:
            policy.instances_changed(seed % 4)
            pending = self._pending(seed)
            run, now_ns = self._run_and_time(policy, pending)
            self._cut(policy, pending, run.count, now_ns)

    def _cut(self, policy: BatchPolicy, pending: Pending, count: int, now_ns: int) -> None:
        requests, sizes = list(pending.requests), list(pending.sizes)
        policy.cut(pending, count, now_ns)
        assert (list(pending.requests), list(pending.sizes)) == (requests, sizes), (
            "cut() changed the queue"
        )

    def _until_run(self, policy: BatchPolicy, pending: Pending) -> Run:
        return self._run_and_time(policy, pending)[0]

    def _run_and_time(self, policy: BatchPolicy, pending: Pending) -> tuple[Run, int]:
        now_ns = NOW_NS
        for _ in range(MANY_STEPS):
            decision = policy.plan(pending, now_ns)
            if isinstance(decision, Run):
                assert 1 <= decision.count <= len(pending.sizes), (
                    f"Run({decision.count}) of {len(pending.sizes)} requests"
                )
                return decision, now_ns
            assert decision.until_ns > now_ns, (
                f"Wait({decision.until_ns}) at {now_ns}: that time is in the past"
            )
            now_ns = decision.until_ns
        raise AssertionError(
            f"the policy waited {MANY_STEPS} times and never ran: {list(pending.sizes)}"
        )

    def _pending(self, seed: int) -> Pending:
        random, sink = Random(seed), RecordingSink().sink
        left, sizes = model_config(self.config).max_batch_size, list[int]()
        for _ in range(random.randint(1, 12)):
            if left:
                sizes.append(random.randint(1, left))
                left -= sizes[-1]
        requests = [
            InferRequest(
                "model",
                {},
                sink,
                batch_size=size,
                received_ns=NOW_NS - 1000 + at,
                queued_ns=NOW_NS - 1000 + at,
            )
            for at, size in enumerate(sizes)
        ]
        return Pending(
            requests,
            sizes,
            sum(sizes),
            requests[0].queued_ns,
            closed=not left or random.random() < 0.3,
        )
