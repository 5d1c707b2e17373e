"""Inline execution on the event loop, with backends and models that allow it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

from core.tests.toys.doubler import Doubler
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from tritonpy.api.backend import Array
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.model import request_check
from tritonpy.runners import inline_policy, pooled_instance
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.server.server import Server
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, CallbackSink, InferRequest, InferResponse, Tensor

OWN_THREAD = "m_0_0"
THREAD = "execution"  # prefix of the names of shared threads
BATCHING = "dynamic_batching { }"


class AnyThread(Doubler):
    """Records the thread and the number of requests of each execution."""

    runs_on_any_thread = True
    threads: list[tuple[str, int]]
    during: Callable[[], None] = staticmethod(lambda: None)  # called by each execution

    def execute(self, batch: Batch) -> None:
        type(self).during()
        self.threads.append(
            (threading.current_thread().name.partition(" ")[0], len(batch.requests))
        )
        super().execute(batch)


class Echoing(AnyThread):
    """Returns its input."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"OUT": inputs["IN"]}


class TakesAll(DirectScheduler):
    """Takes all waiting requests as one batch."""

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        requests = [
            request
            for batch in iter(lambda: super(TakesAll, self).take(instance, now_ns), None)
            for request in batch.requests
        ]
        return Batch(requests) if requests else None


class Delayed(TakesAll):
    """Schedules a batch 50 us after its request, while the event loop may run the instance."""

    def ready(self, instance: int, now_ns: int) -> bool | int:
        if not self._queue:
            return False
        due = self._queue[0].queued_ns + 50_000
        return True if now_ns >= due or len(self._queue) > 1 else due


@pytest.fixture(autouse=True)
def every_execution_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("FAST_NS", "BATCH_NS", "MAX_NS", "SLOW_NS", "BLOCKING_NS", "STALLED_NS"):
        monkeypatch.setattr(inline_policy, limit, 1 << 60)
    monkeypatch.setattr(pooled_instance, "MAX_NS", 1 << 60)
    AnyThread.threads = []


class Loop:
    """Sends requests from the event loop of a server."""

    def __init__(self, server: Server) -> None:
        assert server._wakeups.loop is not None
        self._engine = server.engine
        self._loop = server._wakeups.loop

    def send(self, *values: list[int]) -> list[list[int]]:
        """Send one request per value in one iteration of the loop and return the responses."""
        return self._loop.run_until_complete(self._ask(values))

    def send_singly(self, count: int) -> None:
        """Send `count` requests, each after the response to the previous one."""
        for number in range(100, 100 + count):
            self._loop.run_until_complete(self._until_idle())
            assert self.send([number]) == [[2 * number]]

    def send_together(self, *values: list[int]) -> None:
        """Send one request per value in one iteration of the loop, while nothing executes."""
        self._loop.run_until_complete(self._until_idle())
        assert self.send(*values) == [[2 * value for value in row] for row in values]

    def iterations_of_responses(self, *values: list[int]) -> list[int]:
        """Send one request per value together; return the loop's iteration of each response."""
        iterations: list[int] = []

        async def scenario() -> None:
            await self._until_idle()
            iteration = 0

            def put(_request: InferRequest, _response: InferResponse) -> None:
                iterations.append(iteration)

            for value in values:
                tensor = Tensor.from_numpy("IN", np.array(value, np.int32).reshape(1, -1))
                self._engine.infer(InferRequest("m", {"IN": tensor}, CallbackSink(put)))
            while len(iterations) < len(values):
                iteration += 1
                await asyncio.sleep(0)

        self._loop.run_until_complete(scenario())
        return iterations

    def send_texts_singly(self, word: bytes, count: int) -> None:
        """Send `count` requests with a text sequentially and check that the text is returned."""
        tensor = Tensor.from_numpy("IN", np.array([[word]], np.object_))
        for _ in range(count):
            self._loop.run_until_complete(self._until_idle())
            (response,) = self._loop.run_until_complete(self._send(tensor))
            assert response.outputs[0].strings() == [word]

    async def _until_idle(self) -> None:
        dispatcher = self._engine._table.find("m", -1).dispatcher
        while not dispatcher._idle:  # noqa: ASYNC110  the last thread is about to become idle, without an event
            await asyncio.sleep(0)

    async def _ask(self, values: tuple[list[int], ...]) -> list[list[int]]:
        tensors = [
            Tensor.from_numpy("IN", np.array(value, np.int32).reshape(1, -1)) for value in values
        ]
        answers = await self._send(*tensors)
        return [found for answer in answers for found in numbers([answer])]

    async def _send(self, *tensors: Tensor) -> list[InferResponse]:
        # Under the model's lock, no thread takes the first request before the last one waits.
        with self._engine._table.find("m", -1).dispatcher.lock:
            answers = [self._answer(tensor) for tensor in tensors]
        return await asyncio.gather(*answers)

    def _answer(self, tensor: Tensor) -> Awaitable[InferResponse]:
        answer: asyncio.Future[InferResponse] = self._loop.create_future()

        def put(_request: InferRequest, response: InferResponse) -> None:
            self._loop.call_soon_threadsafe(answer.set_result, response)

        self._engine.infer(InferRequest("m", {"IN": tensor}, CallbackSink(put)))
        return answer


Served = Callable[..., Any]


@pytest.fixture
def serve(model_repository: ModelRepository) -> Served:
    @contextmanager
    def serve(
        kind: type[Doubler] = AnyThread,
        more: str = "",
        datatype: str = "TYPE_INT32",
        scheduler: type[DirectScheduler] = TakesAll,
        **settings: Any,
    ) -> Iterator[Server]:
        model_repository.add("m", config_of("toy", batch=8, datatype=datatype, dims=-1, more=more))
        with serving(
            model_repository,
            toy_plugins(ToyPlugin({"toy": kind}, {"dynamic": scheduler})),
            **settings,
        ) as server:
            yield server

    return serve


def test_single_requests_run_inline_once_known_to_be_fast(serve: Served) -> None:
    with serve() as server:
        Loop(server).send_singly(inline_policy.REQUIRED_FAST + 3)
        assert (
            AnyThread.threads[: inline_policy.REQUIRED_FAST]
            == [(THREAD, 1)] * inline_policy.REQUIRED_FAST
        )
        assert (
            AnyThread.threads[inline_policy.REQUIRED_FAST :]
            == [(threading.current_thread().name, 1)] * 3
        )


class Clocks:
    """The elapsed time and the event loop's processor time, in ns; counts readings of the latter."""

    def __init__(self) -> None:
        self.now = self.busy = 1 << 40
        self.readings = 0

    def read_busy(self) -> int:
        self.readings += 1
        return self.busy

    def pass_time(self, ns: int, busy_ns: int) -> None:
        self.now += ns
        self.busy += busy_ns


@pytest.mark.parametrize(("busy_ns", "thread"), [(5_000_000, THREAD), (0, "MainThread")])
def test_a_slow_execution_is_judged_by_the_last_reading_of_the_processor_time(
    serve: Served, monkeypatch: pytest.MonkeyPatch, busy_ns: int, thread: str
) -> None:
    clocks = Clocks()
    with serve() as server:
        loop = Loop(server)
        loop.send_singly(inline_policy.REQUIRED_FAST)
        for module in (inline_policy, pooled_instance):
            monkeypatch.setattr(module, "SLOW_NS", 1_000_000)
        monkeypatch.setattr(pooled_instance, "now_ns", lambda: clocks.now)
        monkeypatch.setattr(pooled_instance, "thread_time_ns", clocks.read_busy)
        for ns, its_busy_ns, readings in ((10_000, 10_000, 1), (5_000_000, busy_ns, 2)):
            during = staticmethod(partial(clocks.pass_time, ns, its_busy_ns))
            monkeypatch.setattr(AnyThread, "during", during)
            loop.send_singly(1)
            assert AnyThread.threads[-1] == ("MainThread", 1)
            assert clocks.readings == readings
        monkeypatch.setattr(AnyThread, "during", staticmethod(lambda: None))
        loop.send_singly(1)
        assert AnyThread.threads[-1] == (thread, 1)


def test_batches_run_inline_once_known_to_be_fast(serve: Served) -> None:
    with serve(more=BATCHING) as server:
        loop = Loop(server)
        for _ in range(inline_policy.REQUIRED_FAST):
            loop.send_together([1], [2], [3])
        assert AnyThread.threads == [(THREAD, 3)] * inline_policy.REQUIRED_FAST
        loop.send_together([1], [2], [3])
        loop.send_together([1], [2])
        assert AnyThread.threads[inline_policy.REQUIRED_FAST :] == [
            (threading.current_thread().name, count) for count in (3, 2)
        ]
        loop.send_singly(1)
        assert AnyThread.threads[-1] == (THREAD, 1)


def test_concurrent_unbatched_requests_run_inline_sequentially(serve: Served) -> None:
    with serve() as server:
        loop = Loop(server)
        loop.send_singly(inline_policy.REQUIRED_FAST)
        loop.send_together([1], [2], [3])
        assert (
            AnyThread.threads[inline_policy.REQUIRED_FAST :]
            == [(threading.current_thread().name, 1)] * 3
        )


def test_too_much_work_for_one_iteration_goes_on_in_the_next_ones(
    serve: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as server:
        loop = Loop(server)
        loop.send_singly(inline_policy.REQUIRED_FAST)
        monkeypatch.setattr(pooled_instance, "MAX_NS", 0)
        iterations = loop.iterations_of_responses([1], [2], [3])
        assert sorted(set(iterations)) == iterations
        assert (
            AnyThread.threads[inline_policy.REQUIRED_FAST :]
            == [(threading.current_thread().name, 1)] * 3
        )


def test_too_much_work_runs_on_a_thread_when_the_loop_ends(
    serve: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as server:
        loop = Loop(server)
        loop.send_singly(inline_policy.REQUIRED_FAST)
        monkeypatch.setattr(pooled_instance, "MAX_NS", 0)
        monkeypatch.setattr(AnyThread, "during", server._wakeups.detach)
        loop.send_together([1], [2], [3])
        assert AnyThread.threads[inline_policy.REQUIRED_FAST :] == [
            (threading.current_thread().name, 1),
            (THREAD, 1),
            (THREAD, 1),
        ]


def test_an_unknown_size_runs_on_a_thread(serve: Served) -> None:
    with serve() as server:
        loop = Loop(server)
        loop.send_singly(inline_policy.REQUIRED_FAST + 1)
        assert loop.send([7] * 100) == [[14] * 100]
        assert AnyThread.threads[-1] == (THREAD, 1)
        loop.send_singly(1)
        assert AnyThread.threads[-1][0] != THREAD


def test_unchecked_strings_run_on_a_thread(serve: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Echoing, datatype="TYPE_STRING") as server:
        loop = Loop(server)
        loop.send_texts_singly(b"word", inline_policy.REQUIRED_FAST + 1)
        assert AnyThread.threads[-1][0] != THREAD
        monkeypatch.setattr(request_check, "MAX_INLINE_STRING_BYTES", 0)
        loop.send_texts_singly(b"word", 1)
        assert AnyThread.threads[-1] == (THREAD, 1)


def test_requests_of_other_threads_run_on_a_thread(serve: Served) -> None:
    with serve() as server:
        Loop(server).send_singly(inline_policy.REQUIRED_FAST + 1)
        recorder = RecordingSink()
        recorder.wait(ask(server.engine, recorder, "m", [[5]]))
        assert AnyThread.threads[-1] == (THREAD, 1)


def test_an_error_of_an_inline_execution_fails_its_request(serve: Served) -> None:
    with serve() as server:
        loop = Loop(server)
        loop.send_singly(inline_policy.REQUIRED_FAST + 1)
        with pytest.raises(Exception, match="thirteen cannot be doubled"):
            loop.send([13])
        assert AnyThread.threads[-1][0] != THREAD
        loop.send_singly(3)


@pytest.mark.parametrize("scheduler", [TakesAll, Delayed])
def test_concurrent_requests_from_all_threads_get_one_response_each(
    serve: Served, scheduler: type[DirectScheduler]
) -> None:
    with serve(more=BATCHING, scheduler=scheduler) as server:
        loop, recorder = Loop(server), RecordingSink()
        for _ in range(inline_policy.REQUIRED_FAST + 1):
            loop.send_together([1], [2])

        def ask_many() -> None:
            for number in range(100, 300):
                recorder.wait(ask(server.engine, recorder, "m", [[number]]))

        others = [threading.Thread(target=ask_many) for _ in range(2)]
        for other in others:
            other.start()
        for _ in range(200):
            assert loop.send([100], [101]) == [[200], [202]]
        for other in others:
            other.join()
        recorder.check(*recorder.requests)
        assert len(recorder.requests) == 400


@pytest.mark.parametrize(
    ("kind", "more", "thread"),
    [
        (type("OwnThread", (AnyThread,), {"runs_on_any_thread": False}), "", OWN_THREAD),
        (AnyThread, 'parameters { key: "inline" value { string_value: "false" } }', THREAD),
    ],
)
def test_models_that_forbid_it_never_run_inline(
    serve: Served, kind: type[Doubler], more: str, thread: str
) -> None:
    with serve(kind, more) as server:
        Loop(server).send_singly(2 * inline_policy.REQUIRED_FAST)
        assert {name for name, _ in AnyThread.threads} == {thread}


def test_a_parameter_that_is_not_a_boolean_fails_the_load(serve: Served) -> None:
    more = 'parameters { key: "inline" value { string_value: "perhaps" } }'
    with serve(AnyThread, more, exit_on_error=False) as server:
        assert "parameter 'inline'" in server.failures["m"].message
