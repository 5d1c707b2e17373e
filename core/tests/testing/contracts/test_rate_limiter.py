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
        self.free = threading.Lock()

    def register(self, instance, device, group):
        if any(resource.count > 1 for resource in group.rate_limiter.resources):
            raise InvalidArgument("there is one R")

    def acquire(self, instance):
        self.free.acquire()

    def release(self, instance):
        self.free.release()


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
        "test_a_shared_resource_is_held_by_one",
        "test_what_can_never_run_is_refused",
    }


class Absent(Single):
    def acquire(self, instance):
        """Goes."""

    def release(self, instance):
        """Goes."""


class Accepting(Single):
    def register(self, instance, device, group):
        """Fine."""


class Unbalanced(Single):
    def release(self, instance):
        self.free.release()
        self.free.release()


class Starving(Single):
    """Serves whoever came first, again and again."""

    favourite = None

    def acquire(self, instance):
        self.favourite = self.favourite or instance
        if instance != self.favourite:
            raise RuntimeError("never")
        super().acquire(instance)


BROKEN = {
    Absent: "test_a_shared_resource_is_held_by_one",
    Accepting: "test_what_can_never_run_is_refused",
    Unbalanced: "test_an_instance_alone_always_runs",
    Starving: "test_a_shared_resource_is_held_by_one",
}


@pytest.mark.parametrize("limiter", BROKEN, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_broken_limiter_fails(failures, limiter):
    contract = type("Broken", (SingleContract,), {"kind": limiter})
    assert BROKEN[limiter] in failures(contract)
