"""The contract of rate limiters."""

from __future__ import annotations

import threading
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import ClassVar

from google.protobuf import text_format

from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.errors import InvalidArgument
from tritonpy.testing.contracts.optional import OptionalTests, given, only_where
from tritonpy.testing.witness import PATIENCE_S
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

TURNS = 25


class RateLimiterContract(OptionalTests):
    """What `RateLimiter` promises. Write `make`.

    `shared_group` is the text of an instance group of which two instances never run at once, `impossible_group` of one that needs more than
    there is. Exclusion is checked with the first, a refusal with the second, where they are given.
    """

    shared_group: ClassVar[str] = ""
    impossible_group: ClassVar[str] = ""

    @abstractmethod
    def make(self) -> RateLimiter:
        """Return a new limiter with its resources."""

    def test_an_instance_alone_always_runs(self) -> None:
        limiter = self._registered("one")
        for _ in range(TURNS if self._asks else 0):
            assert limiter.acquire("one", _unexpected), "it waits for nobody"
            limiter.release("one")
        limiter.unregister("one")

    def test_every_instance_gets_its_turns(self) -> None:
        names = [f"instance_{number}" for number in range(4)]
        limiter = self._registered(*names)

        def work(name: str) -> None:
            for _ in range(TURNS if self._asks else 0):
                _wait(limiter, name)
                limiter.release(name)

        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(work, names))  # raises what a thread raised

    @only_where(given("shared_group"))
    def test_a_shared_resource_is_held_by_one_and_the_other_is_told_once(self) -> None:
        limiter, told = self._registered("one", "two"), SimpleQueue[str]()
        assert limiter.acquire("one", _unexpected)
        for holder, waiting in (("one", "two"), ("two", "one"), ("one", "two")):
            assert not limiter.acquire(waiting, partial(told.put, waiting)), "two hold at once what one may hold"
            assert told.empty(), f"{waiting} was told before {holder} released"
            limiter.release(holder)
            assert told.get(timeout=PATIENCE_S) == waiting
        limiter.release("two")
        assert limiter.acquire("one", _unexpected), "what was released is not free"
        assert told.empty(), "told twice"

    @only_where(given("shared_group"))
    def test_a_grant_can_be_given_back_at_once(self) -> None:
        limiter, done = self._registered("one", "two"), threading.Event()

        def give_back() -> None:
            limiter.release("two")
            done.set()

        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", give_back)
        threading.Thread(target=limiter.release, args=("one",), daemon=True).start()
        assert done.wait(PATIENCE_S), "granted() was called under a lock that release() wants"

    @only_where(given("shared_group"))
    def test_who_is_forgotten_while_it_waits_gets_nothing(self) -> None:
        limiter, done = self._registered("one", "two", "three"), threading.Event()
        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", _unexpected)
        assert not limiter.acquire("three", done.set)
        limiter.unregister("two")
        limiter.release("one")
        assert done.wait(PATIENCE_S), "the one that still exists waits for ever"

    @only_where(given("shared_group"))
    def test_who_has_more_to_do_stands_in_line_before_it_lets_go(self) -> None:
        limiter, told = self._registered("one", "two"), SimpleQueue[str]()
        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", partial(told.put, "two"))
        if limiter.again("one", partial(told.put, "one")):
            limiter.release("one")
            assert told.get(timeout=PATIENCE_S) == "two"
            return
        assert told.get(timeout=PATIENCE_S) == "two", "nobody runs, and two wait"
        limiter.release("two")
        assert told.get(timeout=PATIENCE_S) == "one"

    @only_where(given("shared_group"))
    def test_what_a_forgotten_instance_held_is_free_once(self) -> None:
        limiter, done = self._registered("one", "two", "three"), threading.Event()
        assert limiter.acquire("one", _unexpected)
        assert not limiter.acquire("two", done.set)
        limiter.unregister("one")
        assert done.wait(PATIENCE_S), "what it held was not given back"
        limiter.release("one")  # too late: another one has it
        assert not limiter.acquire("three", _nothing), "two hold at once what one may hold"

    @only_where(given("impossible_group"))
    def test_what_can_never_run_is_refused(self) -> None:
        try:
            self.make().register("greedy", 0, _group(self.impossible_group))
        except InvalidArgument as error:
            assert error.message, "the refusal has no text"
            return
        raise AssertionError("register() accepted what can never be met")

    def _registered(self, *names: str) -> RateLimiter:
        limiter = self.make()
        for name in names:
            asks = limiter.register(name, 0, _group(self.shared_group))
            assert isinstance(asks, bool), "register() must say whether the instance has to ask"
            assert asks or not self.shared_group, "an instance that shares a resource must ask"
            self._asks = asks
        return limiter


def _wait(limiter: RateLimiter, name: str) -> None:
    granted = threading.Event()
    if not limiter.acquire(name, granted.set):
        assert granted.wait(PATIENCE_S), f"{name} waits for ever"


def _unexpected() -> None:
    raise AssertionError("told of a grant that is not due")


def _nothing() -> None:
    """It is told of a grant, or not: nobody waits for that."""


def _group(text: str) -> ModelInstanceGroup:
    return text_format.Parse(text, ModelInstanceGroup())
