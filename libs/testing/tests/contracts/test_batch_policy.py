from __future__ import annotations

import pytest

from tritonpy import hookimpl
from tritonpy.scheduling import BatchPolicy, Run, Wait
from tritonpy_testing import BatchPolicyContract


class WaitingPolicy(BatchPolicy):
    def plan(self, pending, now_ns):
        due = pending.oldest_ns + 5_000
        return Run(len(pending.requests)) if pending.closed or now_ns >= due else Wait(due)


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_batch_policies():
        return {"patient": WaitingPolicy}


class TestWaitingPolicy(BatchPolicyContract):
    plugin_class = WaitingPolicy
    plugin = Plugin
    name = "patient"


class Empty(BatchPolicy):
    def plan(self, pending, now_ns):
        return Run(0)


class Greedy(BatchPolicy):
    def plan(self, pending, now_ns):
        return Run(len(pending.requests) + 1)


class Fickle(BatchPolicy):
    count = 0

    def plan(self, pending, now_ns):
        self.count += 1
        return Run(1) if self.count % 2 else Wait(now_ns + 1)


class Late(BatchPolicy):
    def plan(self, pending, now_ns):
        return Wait(now_ns)


class Never(BatchPolicy):
    def plan(self, pending, now_ns):
        return Wait(now_ns + 1)


class Meddling(BatchPolicy):
    def plan(self, pending, now_ns):
        pending.sizes.append(1)
        return Run(1)


class Spoiled(WaitingPolicy):
    learnt = False

    def plan(self, pending, now_ns):
        return Run(0) if self.learnt else super().plan(pending, now_ns)

    def executed(self, size, duration_ns):
        self.learnt = True


class Worn(WaitingPolicy):
    left = 3

    def plan(self, pending, now_ns):
        return super().plan(pending, now_ns) if self.left else Run(0)

    def cut(self, pending, count, now_ns):
        self.left -= 1


class Grasping(WaitingPolicy):
    def cut(self, pending, count, now_ns):
        del pending.requests[:count], pending.sizes[:count]


class Lonely(WaitingPolicy):
    alone = False

    def instances_changed(self, count):
        self.alone = not count

    def plan(self, pending, now_ns):
        return Run(0) if self.alone else super().plan(pending, now_ns)


BROKEN = {
    Empty: "test_every_plan_ends_in_a_run_with_requests",
    Greedy: "test_every_plan_ends_in_a_run_with_requests",
    Fickle: "test_a_plan_depends_on_its_arguments_only",
    Late: "test_every_plan_ends_in_a_run_with_requests",
    Never: "test_every_plan_ends_in_a_run_with_requests",
    Meddling: "test_a_plan_does_not_change_the_queue",
    Spoiled: "test_the_contract_holds_after_executions_are_reported",
    Worn: "test_batches_may_be_cut_before_earlier_ones_are_executed",
    Grasping: "test_the_contract_holds_after_executions_are_reported",
    Lonely: "test_the_number_of_instances_may_change",
}


@pytest.mark.parametrize("policy", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_policy_fails(failures, policy):
    contract = type("Broken", (BatchPolicyContract,), {"plugin_class": policy})
    assert BROKEN[policy] in failures(contract)
