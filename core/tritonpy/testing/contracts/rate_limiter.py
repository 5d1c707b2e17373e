"""The contract of rate limiters."""

from __future__ import annotations

import threading
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from google.protobuf import text_format

from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.errors import InvalidArgument
from tritonpy.testing.contracts.optional import OptionalTests, given, only_where
from tritonpy.testing.witness import PATIENCE_S
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

TURNS = 25
MEETING_S = 0.2


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
        limiter = self.make()
        limiter.register("one", 0, _group(self.shared_group))
        for _ in range(TURNS):
            limiter.acquire("one")
            limiter.release("one")
        limiter.unregister("one")

    def test_every_instance_gets_its_turns(self) -> None:
        limiter = self.make()
        names = [f"instance_{number}" for number in range(4)]
        for name in names:
            limiter.register(name, 0, _group(self.shared_group))

        def work(name: str) -> None:
            for _ in range(TURNS):
                limiter.acquire(name)
                limiter.release(name)

        threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in names]
        for thread in threads:
            thread.start()
        for name, thread in zip(names, threads, strict=True):
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), f"{name} waits for ever"

    @only_where(given("shared_group"))
    def test_a_shared_resource_is_held_by_one(self) -> None:
        limiter, meeting, together = self.make(), threading.Barrier(2), list[str]()

        def work(name: str) -> None:
            limiter.acquire(name)
            try:
                meeting.wait(MEETING_S)  # two holders meet here; one alone waits in vain
                together.append(name)
            except threading.BrokenBarrierError:
                pass
            limiter.release(name)

        names = ["one", "two"]
        for name in names:
            limiter.register(name, 0, _group(self.shared_group))
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(work, names))
        assert not together, f"{together} held at once what one may hold"

    @only_where(given("impossible_group"))
    def test_what_can_never_run_is_refused(self) -> None:
        try:
            self.make().register("greedy", 0, _group(self.impossible_group))
        except InvalidArgument as error:
            assert error.message, "the refusal has no text"
            return
        raise AssertionError("register() accepted what can never be met")


def _group(text: str) -> ModelInstanceGroup:
    return text_format.Parse(text, ModelInstanceGroup())
