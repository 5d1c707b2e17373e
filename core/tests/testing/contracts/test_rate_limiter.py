from __future__ import annotations

import threading

import pytest

from tritonpy import InvalidArgument, NoRateLimiter, RateLimiter
from tritonpy.testing import RateLimiterContract

SHARED = 'rate_limiter { resources { name: "R" count: 1 } }'
IMPOSSIBLE = 'rate_limiter { resources { name: "R" count: 9 } }'


class Single(RateLimiter):
    """There is one R, and who names it needs all of it."""

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


def test_resources_are_checked_where_there_are_any(tests):
    assert tests(TestSingle) - tests(TestNoRateLimiter) == {
        "test_a_shared_resource_is_held_by_one_and_the_other_is_told_once",
        "test_a_grant_can_be_given_back_at_once",
        "test_who_is_forgotten_while_it_waits_gets_nothing",
        "test_who_has_more_to_do_stands_in_line_before_it_lets_go",
        "test_what_a_forgotten_instance_held_is_free_once",
        "test_what_can_never_run_is_refused",
    }


class Absent(Single):
    def acquire(self, instance, granted):
        return True

    def release(self, instance):
        """Goes."""


class Accepting(Single):
    def register(self, instance, device, group):
        return True


class Forgetful(Single):
    """Does not remember who waits."""

    def acquire(self, instance, granted):
        return super().acquire(instance, lambda: None)


class Shy(Single):
    """Lets nobody run."""

    def acquire(self, instance, granted):
        return False


class Hasty(Single):
    """Tells everybody who waits, though one may run."""

    def release(self, instance):
        for granted in list(self.waiting.values()):
            granted()
        super().release(instance)


class Locked(Single):
    """Tells under its lock."""

    def acquire(self, instance, granted):
        def under_lock():
            with self.lock:
                granted()

        return super().acquire(instance, under_lock)


class Loyal(Single):
    """Grants to those who are gone."""

    def unregister(self, instance):
        """Stays."""


class Keeping(Single):
    """Does not give back what those had who are gone."""

    def unregister(self, instance):
        self.waiting.pop(instance, None)


class Generous(Single):
    """Lets go before it asks again, and tells nobody."""

    def again(self, instance, granted):
        self.holder = None
        return False


class Silent(Single):
    """Does not say who has to ask."""

    def register(self, instance, device, group):
        super().register(instance, device, group)


BROKEN = {
    Keeping: "test_what_a_forgotten_instance_held_is_free_once",
    Generous: "test_who_has_more_to_do_stands_in_line_before_it_lets_go",
    Silent: "test_an_instance_alone_always_runs",
    Absent: "test_a_shared_resource_is_held_by_one_and_the_other_is_told_once",
    Accepting: "test_what_can_never_run_is_refused",
    Forgetful: "test_a_shared_resource_is_held_by_one_and_the_other_is_told_once",
    Shy: "test_every_instance_gets_its_turns",
    Hasty: "test_a_shared_resource_is_held_by_one_and_the_other_is_told_once",
    Locked: "test_a_grant_can_be_given_back_at_once",
    Loyal: "test_who_is_forgotten_while_it_waits_gets_nothing",
}


@pytest.mark.parametrize("limiter", BROKEN, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_broken_limiter_fails(failures, monkeypatch, limiter):
    monkeypatch.setattr("tritonpy.testing.contracts.rate_limiter.PATIENCE_S", 0.2)
    contract = type("Broken", (SingleContract,), {"kind": limiter})
    assert BROKEN[limiter] in failures(contract)
