from __future__ import annotations

import threading

import pytest
from google.protobuf import text_format

from tritonpy.runners.rate_limit_lease import PooledRateLimitLease, RateLimitLease
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup
from tritonpy_rate_limiter.execution_count import ExecutionCountLimiter

GROUP = text_format.Parse('rate_limiter { resources { name: "R" count: 1 } }', ModelInstanceGroup())


@pytest.fixture
def limiter():
    it = ExecutionCountLimiter()
    for name in ("mine", "other"):
        it.register(name, 0, GROUP)
    return it


class WaitingLease:
    """A lease, a thread that acquires it and the result; `begun` is set if it had to wait."""

    def __init__(self, limiter, name="mine"):
        self.begun = threading.Event()
        self.lease = RateLimitLease(limiter, name, self.begun.set)
        self.results = []

    def ask(self, how):
        thread = threading.Thread(target=lambda: self.results.append(how()))
        thread.start()
        return thread


def test_a_free_lease_is_acquired_immediately(limiter):
    it = WaitingLease(limiter)
    assert it.lease.acquire()
    assert it.lease.renew()
    it.lease.release()
    assert not it.begun.is_set()


def test_a_thread_reports_that_it_waits_for_a_lease(limiter):
    assert limiter.acquire("other", print)
    it = WaitingLease(limiter)
    thread = it.ask(it.lease.acquire)
    assert it.begun.wait(10)
    assert it.results == []
    limiter.release("other")
    thread.join(10)
    assert it.results == [True]


def test_a_renewed_lease_comes_after_waiting_instances(limiter):
    it, granted = WaitingLease(limiter), threading.Event()
    assert it.lease.acquire()
    assert not limiter.acquire("other", granted.set)
    thread = it.ask(it.lease.renew)
    assert granted.wait(10)
    assert it.begun.wait(10)
    limiter.release("other")
    thread.join(10)
    assert it.results == [True]


def test_a_waiting_thread_is_unblocked_when_its_instance_ends(limiter):
    assert limiter.acquire("other", print)
    it = WaitingLease(limiter)
    thread = it.ask(it.lease.acquire)
    assert it.begun.wait(10)
    it.lease.cancel()
    thread.join(10)
    assert it.results == [False]
    limiter.unregister("mine")
    it.lease.release()  # there is nothing left to release
    limiter.release("other")
    assert limiter.acquire("other", print)


class PooledLeaseBench:
    """A pooled lease, and the number of its grants."""

    def __init__(self, limiter, name="mine"):
        self.grants = 0
        self.lease = PooledRateLimitLease(limiter, name, threading.RLock(), self.granted)

    def granted(self):
        self.grants += 1


def test_a_free_pooled_lease_is_acquired_and_renewed_immediately(limiter):
    it = PooledLeaseBench(limiter)
    assert it.lease.acquire()
    assert it.lease.renew()
    it.lease.release()
    assert (it.lease.held, it.grants) == (False, 0)


def test_a_pooled_lease_is_granted_later(limiter):
    other, it = PooledLeaseBench(limiter, "other"), PooledLeaseBench(limiter)
    assert other.lease.acquire()
    assert not it.lease.acquire()
    assert (it.lease.held, it.grants) == (False, 0)
    other.lease.release()
    assert (it.lease.held, it.grants) == (True, 1)


def test_a_grant_before_acquire_returns_counts():
    class Hasty:
        def acquire(self, name, granted):
            granted()
            return False

    it = PooledLeaseBench(Hasty())
    assert it.lease.acquire()
    assert it.grants == 0


def test_a_cancelled_pooled_lease_releases_a_late_grant(limiter):
    other, it = PooledLeaseBench(limiter, "other"), PooledLeaseBench(limiter)
    assert other.lease.acquire()
    assert not it.lease.acquire()
    assert it.lease.cancel()
    assert not it.lease.cancel()
    other.lease.release()
    assert it.grants == 0
    assert other.lease.acquire()
