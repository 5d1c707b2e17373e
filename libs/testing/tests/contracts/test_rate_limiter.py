from __future__ import annotations

import threading

import pytest

from tritonpy import InvalidArgument
from tritonpy.scheduling import NoRateLimiter, RateLimiter
from tritonpy_testing import RateLimiterContract

SHARED = 'rate_limiter { resources { name: "R" count: 1 } }'
IMPOSSIBLE = 'rate_limiter { resources { name: "R" count: 9 } }'


class Single(RateLimiter):
    """One resource R, which every instance that requests it needs completely."""

    def __init__(self):
        self.lock = threading.Lock()
        self.holder = None
        self.waiting = {}

    def register(self, instance, device, group):
        if any(resource.count > 1 for resource in group.rate_limiter.resources):
            raise InvalidArgument("there is one R")
        return bool(group.rate_limiter.resources)

    def unregister(self, instance):
        self.waiting.pop(instance, None)
        self.release(instance)

    def acquire(self, instance, granted):
        with self.lock:
            if self.holder is None:
                self.holder = instance
                return True
            self.waiting[instance] = granted
            return False

    def release(self, instance):
        with self.lock:
            if self.holder != instance:
                return
            self.holder = next(iter(self.waiting), None)
            granted = self.waiting.pop(self.holder, None)
        if granted is not None:
            granted()


class SingleContract(RateLimiterContract):
    kind = Single
    shared_group = SHARED
    impossible_group = IMPOSSIBLE

    def make(self):
        return self.kind()


class TestSingle(SingleContract):
    pass


class TestNoRateLimiter(RateLimiterContract):
    def make(self):
        return NoRateLimiter()


def test_resources_are_checked_if_groups_are_set(tests):
    assert tests(TestSingle) - tests(TestNoRateLimiter) == {
        "test_a_shared_resource_has_one_owner_and_the_waiting_instance_is_notified_once",
        "test_a_grant_can_be_released_immediately",
        "test_an_instance_unregistered_while_waiting_gets_no_grant",
        "test_an_instance_with_more_work_queues_before_it_releases",
        "test_resources_of_an_unregistered_instance_are_freed_once",
        "test_an_impossible_demand_is_refused",
    }


class Absent(Single):
    def acquire(self, instance, granted):
        return True

    def release(self, instance):
        """Do nothing."""


class Accepting(Single):
    def register(self, instance, device, group):
        return True


class Forgetful(Single):
    """Forgets waiting instances."""

    def acquire(self, instance, granted):
        return super().acquire(instance, lambda: None)


class Shy(Single):
    """Never grants the resource."""

    def acquire(self, instance, granted):
        return False


class Hasty(Single):
    """Notifies all waiting instances."""

    def release(self, instance):
        for granted in list(self.waiting.values()):
            granted()
        super().release(instance)


class Locked(Single):
    """Notifies while it holds its lock."""

    def acquire(self, instance, granted):
        def under_lock():
            with self.lock:
                granted()

        return super().acquire(instance, under_lock)


class Loyal(Single):
    """Grants to unregistered instances."""

    def unregister(self, instance):
        """Do nothing."""


class Keeping(Single):
    """Keeps resources of unregistered instances."""

    def unregister(self, instance):
        self.waiting.pop(instance, None)


class Generous(Single):
    """Releases before it acquires again, and notifies no instance."""

    def reacquire(self, instance, granted):
        self.holder = None
        return False


class Silent(Single):
    """Does not return whether an instance needs to acquire."""

    def register(self, instance, device, group):
        super().register(instance, device, group)


BROKEN = {
    Keeping: "test_resources_of_an_unregistered_instance_are_freed_once",
    Generous: "test_an_instance_with_more_work_queues_before_it_releases",
    Silent: "test_an_instance_alone_always_runs",
    Absent: "test_a_shared_resource_has_one_owner_and_the_waiting_instance_is_notified_once",
    Accepting: "test_an_impossible_demand_is_refused",
    Forgetful: "test_a_shared_resource_has_one_owner_and_the_waiting_instance_is_notified_once",
    Shy: "test_every_instance_runs",
    Hasty: "test_a_shared_resource_has_one_owner_and_the_waiting_instance_is_notified_once",
    Locked: "test_a_grant_can_be_released_immediately",
    Loyal: "test_an_instance_unregistered_while_waiting_gets_no_grant",
}


@pytest.mark.parametrize("limiter", BROKEN, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_broken_limiter_fails(failures, monkeypatch, limiter):
    monkeypatch.setattr("tritonpy_testing.contracts.rate_limiter.WAIT_S", 0.2)
    contract = type("Broken", (SingleContract,), {"kind": limiter})
    assert BROKEN[limiter] in failures(contract)
