"""The contract of rate limiters."""

from __future__ import annotations

import threading
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import ClassVar

from google.protobuf import text_format

from tritonpy import InvalidArgument
from tritonpy.scheduling import RateLimiter
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup
from tritonpy_testing.contracts.optional import OptionalTests, given, only_if
from tritonpy_testing.recording_sink import WAIT_S

ROUNDS = 25


class RateLimiterContract(OptionalTests):
    """The contract of `RateLimiter`. Write `make`.

    - `shared_group`: the text of an instance group with two instances that must not run at the same
      time. If set, exclusion is checked.
    - `impossible_group`: an instance group that requires more resources than exist. If set, its
      refusal is checked.
    """

    shared_group: ClassVar[str] = ""
    impossible_group: ClassVar[str] = ""

    @abstractmethod
    def make(self) -> RateLimiter:
        """Return a new rate limiter with its resources."""

    def test_an_instance_alone_always_runs(self) -> None:
        limiter = self._registered("one")
        for _ in range(ROUNDS if self._needs_acquire else 0):
            assert limiter.acquire("one", _unexpected), (
                "an instance without competitors has to wait"
            )
            limiter.release("one")
        limiter.unregister("one")

    def test_every_instance_runs(self) -> None:
        names = [f"instance_{number}" for number in range(4)]
        limiter = self._registered(*names)

        def work(name: str) -> None:
            for _ in range(ROUNDS if self._needs_acquire else 0):
                _wait(limiter, name)
                limiter.release(name)

        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(work, names))  # raises what a thread raised

    @only_if(given("shared_group"))
    def test_a_shared_resource_has_one_owner_and_the_waiting_instance_is_notified_once(
        self,
    ) -> None:
        limiter, notified = self._registered("one", "two"), SimpleQueue[str]()
        assert limiter.acquire("one", _unexpected)
        for holder, waiting in (("one", "two"), ("two", "one"), ("one", "two")):
            assert not limiter.acquire(waiting, partial(notified.put, waiting)), (
                "two instances hold an exclusive resource"
            )
            assert notified.empty(), f"{waiting} was notified before {holder} released"
            limiter.release(holder)
            assert notified.get(timeout=WAIT_S) == waiting
        limiter.release("two")
        assert limiter.acquire("one", _unexpected), "a released resource is not free"
        assert notified.empty(), "notified twice"

    @only_if(given("shared_group"))
    def test_a_grant_can_be_released_immediately(self) -> None:
        limiter, done = self._registered("one", "two"), threading.Event()

        def give_back() -> None:
            limiter.release("two")
            done.set()

        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", give_back)
        threading.Thread(target=limiter.release, args=("one",), daemon=True).start()
        assert done.wait(WAIT_S), "granted() was called under a lock that release() needs"

    @only_if(given("shared_group"))
    def test_an_instance_unregistered_while_waiting_gets_no_grant(self) -> None:
        limiter, done = self._registered("one", "two", "three"), threading.Event()
        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", _unexpected)
        assert not limiter.acquire("three", done.set)
        limiter.unregister("two")
        limiter.release("one")
        assert done.wait(WAIT_S), "the remaining instance was never notified"

    @only_if(given("shared_group"))
    def test_an_instance_with_more_work_queues_before_it_releases(self) -> None:
        limiter, notified = self._registered("one", "two"), SimpleQueue[str]()
        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", partial(notified.put, "two"))
        if limiter.reacquire("one", partial(notified.put, "one")):
            limiter.release("one")
            assert notified.get(timeout=WAIT_S) == "two"
            return
        assert notified.get(timeout=WAIT_S) == "two", "no instance runs although two wait"
        limiter.release("two")
        assert notified.get(timeout=WAIT_S) == "one"

    @only_if(given("shared_group"))
    def test_resources_of_an_unregistered_instance_are_freed_once(self) -> None:
        limiter, done = self._registered("one", "two", "three"), threading.Event()
        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", done.set)
        limiter.unregister("one")
        assert done.wait(WAIT_S), "the resources of the instance were not released"
        limiter.release("one")  # too late: another instance holds the resource
        assert not limiter.acquire("three", _nothing), "two instances hold an exclusive resource"

    @only_if(given("impossible_group"))
    def test_an_impossible_demand_is_refused(self) -> None:
        try:
            self.make().register("greedy", 0, _group(self.impossible_group))
        except InvalidArgument as error:
            assert error.message, "the refusal has no text"
            return
        raise AssertionError("register() accepted an impossible demand")

    def _registered(self, *names: str) -> RateLimiter:
        limiter = self.make()
        for name in names:
            needs_acquire = limiter.register(name, 0, _group(self.shared_group))
            assert isinstance(needs_acquire, bool), (
                "register() must return whether the instance needs to acquire"
            )
            assert needs_acquire or not self.shared_group, (
                "an instance that shares a resource must acquire it"
            )
            self._needs_acquire = needs_acquire
        return limiter


def _wait(limiter: RateLimiter, name: str) -> None:
    granted = threading.Event()
    if not limiter.acquire(name, granted.set):
        assert granted.wait(WAIT_S), f"{name} was never notified"


def _unexpected() -> None:
    raise AssertionError("an unexpected grant was notified")


def _nothing() -> None:
    """Ignore the grant."""


def _group(text: str) -> ModelInstanceGroup:
    return text_format.Parse(text, ModelInstanceGroup())
