from __future__ import annotations

import pytest

from tritonpy import BatchPolicy, Run, Wait, hookimpl
from tritonpy.testing import BatchPolicyContract


class Patient(BatchPolicy):
    def plan(self, pending, now_ns):
        due = pending.oldest_ns + 5_000
        return Run(len(pending.requests)) if pending.closed or now_ns >= due else Wait(due)


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_batch_policies():
        return {"patient": Patient}


class TestPatient(BatchPolicyContract):
    plugin_class = Patient
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


class Spoiled(Patient):
    learnt = False

    def plan(self, pending, now_ns):
        return Run(0) if self.learnt else super().plan(pending, now_ns)

    def executed(self, size, duration_ns):
        self.learnt = True


class Worn(Patient):
    left = 3

    def plan(self, pending, now_ns):
        return super().plan(pending, now_ns) if self.left else Run(0)

    def cut(self, pending, count, now_ns):
        self.left -= 1


class Grasping(Patient):
    def cut(self, pending, count, now_ns):
        del pending.requests[:count], pending.sizes[:count]


class Lonely(Patient):
    alone = False

    def instances_changed(self, count):
        self.alone = not count

    def plan(self, pending, now_ns):
        return Run(0) if self.alone else super().plan(pending, now_ns)


BROKEN = {
    Empty: "test_a_run_comes_in_the_end_and_has_requests_to_run",
    Greedy: "test_a_run_comes_in_the_end_and_has_requests_to_run",
    Fickle: "test_a_plan_depends_on_its_arguments_only",
    Late: "test_a_run_comes_in_the_end_and_has_requests_to_run",
    Never: "test_a_run_comes_in_the_end_and_has_requests_to_run",
    Meddling: "test_a_plan_leaves_the_queue_as_it_is",
    Spoiled: "test_learning_changes_no_promise",
    Worn: "test_batches_may_leave_before_others_are_executed",
    Grasping: "test_learning_changes_no_promise",
    Lonely: "test_instances_may_come_and_go",
}


@pytest.mark.parametrize("policy", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_policy_fails(failures, policy):
    contract = type("Broken", (BatchPolicyContract,), {"plugin_class": policy})
    assert BROKEN[policy] in failures(contract)
