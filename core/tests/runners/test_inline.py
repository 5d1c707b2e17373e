"""Executions on the event loop, by a backend and models that allow them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from core.tests.toys.doubler import Doubler
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from tritonpy.api.backend import Array
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.direct import DirectScheduler
from tritonpy.model import input_rule
from tritonpy.runners import pooled_instance, quickness
from tritonpy.server import Server
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, CallbackSink, InferRequest, InferResponse, Tensor

OWN_THREAD = "m_0_0"
THREAD = "execution"  # how the names of the threads begin that instances share
BATCHING = "dynamic_batching { }"


class Anywhere(Doubler):
    """Notes which thread executes how many requests."""

    runs_on_any_thread = True
    threads: list[tuple[str, int]]

    def execute(self, batch: Batch) -> None:
        self.threads.append((threading.current_thread().name.partition(" ")[0], len(batch.requests)))
        super().execute(batch)


class Echoing(Anywhere):
    """Answers what it is asked."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"OUT": inputs["IN"]}


class Greedy(DirectScheduler):
    """Cuts all that wait into one batch."""

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        requests = [
            request
            for batch in iter(lambda: super(Greedy, self).take(instance, now_ns), None)
            for request in batch.requests
        ]
        return Batch(requests) if requests else None


class Delayed(Greedy):
    """Names a time 50 us after a request came: a thread waits for that, and the loop may run the instance meanwhile."""

    def ready(self, instance: int, now_ns: int) -> bool | int:
        if not self._queue:
            return False
        due = self._queue[0].queued_ns + 50_000
        return True if now_ns >= due or len(self._queue) > 1 else due


@pytest.fixture(autouse=True)
def every_execution_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("QUICK_NS", "TOGETHER_NS", "MOST_NS", "SLOW_NS", "ENDLESS_NS", "STALLED_NS"):
        monkeypatch.setattr(quickness, limit, 1 << 60)
    monkeypatch.setattr(pooled_instance, "TOGETHER_NS", 1 << 60)
    Anywhere.threads = []


class Loop:
    """Sends requests from the event loop of a server."""

    def __init__(self, server: Server) -> None:
        assert server._rings.loop is not None
        self._engine = server.engine
        self._loop = server._rings.loop

    def ask(self, *values: list[int]) -> list[list[int]]:
        """Send one request for each of `values` in one turn of the loop; return what they are answered."""
        return self._loop.run_until_complete(self._ask(values))

    def ask_alone(self, count: int) -> None:
        """Send that many requests, each when the one before is answered."""
        for number in range(100, 100 + count):
            self._loop.run_until_complete(self._until_idle())
            assert self.ask([number]) == [[2 * number]]

    def ask_together(self, *values: list[int]) -> None:
        """Send one request for each of `values` in one turn of the loop, while nothing executes."""
        self._loop.run_until_complete(self._until_idle())
        assert self.ask(*values) == [[2 * value for value in row] for row in values]

    def say_alone(self, word: bytes, count: int) -> None:
        """Send that many requests with a text, each when the one before is answered with the same."""
        tensor = Tensor.from_numpy("IN", np.array([[word]], np.object_))
        for _ in range(count):
            self._loop.run_until_complete(self._until_idle())
            (response,) = self._loop.run_until_complete(self._send(tensor))
            assert response.outputs[0].strings() == [word]

    async def _until_idle(self) -> None:
        dispatcher = self._engine._table.find("m", -1).dispatcher
        while not dispatcher._idle:  # noqa: ASYNC110  the thread that executed last is about to rest, and tells nobody
            await asyncio.sleep(0)

    async def _ask(self, values: tuple[list[int], ...]) -> list[list[int]]:
        tensors = [Tensor.from_numpy("IN", np.array(value, np.int32).reshape(1, -1)) for value in values]
        answers = await self._send(*tensors)
        return [found for answer in answers for found in numbers([answer])]

    async def _send(self, *tensors: Tensor) -> list[InferResponse]:
        return await asyncio.gather(*[self._answer(tensor) for tensor in tensors])

    def _answer(self, tensor: Tensor) -> Awaitable[InferResponse]:
        answer: asyncio.Future[InferResponse] = self._loop.create_future()

        def put(_request: InferRequest, response: InferResponse) -> None:
            self._loop.call_soon_threadsafe(answer.set_result, response)

        self._engine.infer(InferRequest("m", {"IN": tensor}, CallbackSink(put)))
        return answer


Served = Callable[..., Any]


@pytest.fixture
def served(model_repository: ModelRepository) -> Served:
    @contextmanager
    def serve(
        kind: type[Doubler] = Anywhere,
        more: str = "",
        datatype: str = "TYPE_INT32",
        scheduler: type[DirectScheduler] = Greedy,
        **settings: Any,
    ) -> Iterator[Server]:
        model_repository.add("m", config_of("toy", batch=8, datatype=datatype, dims=-1, more=more))
        with serving(
            model_repository, toy_plugins(ToyPlugin({"toy": kind}, {"dynamic": scheduler})), **settings
        ) as server:
            yield server

    return serve


def test_requests_that_come_alone_are_run_on_the_loop_once_they_are_known_to_be_quick(served: Served) -> None:
    with served() as server:
        Loop(server).ask_alone(quickness.SURE + 3)
        assert Anywhere.threads[: quickness.SURE] == [(THREAD, 1)] * quickness.SURE
        assert Anywhere.threads[quickness.SURE :] == [(threading.current_thread().name, 1)] * 3


def test_a_batch_of_requests_that_come_together_is_run_on_the_loop_once_such_batches_are_known(served: Served) -> None:
    with served(more=BATCHING) as server:
        loop = Loop(server)
        for _ in range(quickness.SURE):
            loop.ask_together([1], [2], [3])
        assert Anywhere.threads == [(THREAD, 3)] * quickness.SURE
        loop.ask_together([1], [2], [3])
        loop.ask_together([1], [2])
        assert Anywhere.threads[quickness.SURE :] == [(threading.current_thread().name, count) for count in (3, 2)]
        loop.ask_alone(1)
        assert Anywhere.threads[-1] == (THREAD, 1)


def test_what_comes_together_and_is_no_batch_runs_on_the_loop_one_after_the_other(served: Served) -> None:
    with served() as server:
        loop = Loop(server)
        loop.ask_alone(quickness.SURE)
        loop.ask_together([1], [2], [3])
        assert Anywhere.threads[quickness.SURE :] == [(threading.current_thread().name, 1)] * 3


def test_what_is_too_much_for_a_turn_of_the_loop_runs_on_a_thread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as server:
        loop = Loop(server)
        loop.ask_alone(quickness.SURE)
        monkeypatch.setattr(pooled_instance, "TOGETHER_NS", 0)
        loop.ask_together([1], [2], [3])
        assert Anywhere.threads[quickness.SURE :] == [(threading.current_thread().name, 1), (THREAD, 1), (THREAD, 1)]


def test_a_size_that_is_not_known_runs_on_a_thread(served: Served) -> None:
    with served() as server:
        loop = Loop(server)
        loop.ask_alone(quickness.SURE + 1)
        assert loop.ask([7] * 100) == [[14] * 100]
        assert Anywhere.threads[-1] == (THREAD, 1)
        loop.ask_alone(1)
        assert Anywhere.threads[-1][0] != THREAD


def test_strings_that_were_not_checked_run_on_a_thread(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Echoing, datatype="TYPE_STRING") as server:
        loop = Loop(server)
        loop.say_alone(b"word", quickness.SURE + 1)
        assert Anywhere.threads[-1][0] != THREAD
        monkeypatch.setattr(input_rule, "WALKED_AT_ONCE", 0)
        loop.say_alone(b"word", 1)
        assert Anywhere.threads[-1] == (THREAD, 1)


def test_requests_of_other_threads_run_on_a_thread(served: Served) -> None:
    with served() as server:
        Loop(server).ask_alone(quickness.SURE + 1)
        witness = Witness()
        witness.wait(ask(server.engine, witness, "m", [[5]]))
        assert Anywhere.threads[-1] == (THREAD, 1)


def test_what_an_execution_on_the_loop_raises_answers_its_request(served: Served) -> None:
    with served() as server:
        loop = Loop(server)
        loop.ask_alone(quickness.SURE + 1)
        with pytest.raises(Exception, match="thirteen cannot be doubled"):
            loop.ask([13])
        assert Anywhere.threads[-1][0] != THREAD
        loop.ask_alone(3)


@pytest.mark.parametrize("scheduler", [Greedy, Delayed])
def test_requests_from_everywhere_at_once_are_answered_once_each(
    served: Served, scheduler: type[DirectScheduler]
) -> None:
    with served(more=BATCHING, scheduler=scheduler) as server:
        loop, witness = Loop(server), Witness()
        for _ in range(quickness.SURE + 1):
            loop.ask_together([1], [2])

        def ask_many() -> None:
            for number in range(100, 300):
                witness.wait(ask(server.engine, witness, "m", [[number]]))

        others = [threading.Thread(target=ask_many) for _ in range(2)]
        for other in others:
            other.start()
        for _ in range(200):
            assert loop.ask([100], [101]) == [[200], [202]]
        for other in others:
            other.join()
        witness.check(*witness.requests)
        assert len(witness.requests) == 400


@pytest.mark.parametrize(
    ("kind", "more", "thread"),
    [
        (type("OwnThread", (Anywhere,), {"runs_on_any_thread": False}), "", OWN_THREAD),
        (Anywhere, 'parameters { key: "inline" value { string_value: "false" } }', THREAD),
    ],
)
def test_who_does_not_allow_it_never_runs_on_the_loop(
    served: Served, kind: type[Doubler], more: str, thread: str
) -> None:
    with served(kind, more) as server:
        Loop(server).ask_alone(2 * quickness.SURE)
        assert {name for name, _ in Anywhere.threads} == {thread}


def test_a_parameter_that_says_neither_yes_nor_no_fails_the_load(served: Served) -> None:
    more = 'parameters { key: "inline" value { string_value: "perhaps" } }'
    with served(Anywhere, more, exit_on_error=False) as server:
        assert "parameter 'inline'" in server.failures["m"].message
