"""Executions on the event loop's thread: only quick ones, only where the backend allows it, and nothing is lost by it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np

from core.tests.toys.limiter import ResourceLimiter
from core.tests.toys.serving import SILENT, ToyPlugin, config_of, toy_plugins
from tritonpy.api.backend import Array, Backend, InstanceContext, ModelContext
from tritonpy.config.server import decode_server_config
from tritonpy.direct import DirectScheduler
from tritonpy.runners import slot as slots
from tritonpy.server import Server, build
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.types import InferRequest, InferResponse, LoopSink, Tensor

Ask = Callable[[int], Awaitable[InferResponse]]


class Inline(Backend):
    """Doubles, and says in which threads."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        instance.inline = model.parameters.get("inline") != "no"
        self.own = threading.get_ident()

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        number = int(inputs["IN"].reshape(-1)[0])
        if number == 13:
            raise ValueError("thirteen cannot be doubled")
        return {"OUT": np.full_like(inputs["IN"], 2 * number if number else threading.get_ident() == self.own)}


def on_loop(
    repository: ModelRepository, check: Callable[[Server, Ask], Awaitable[None]], *, more: str = "", limiter: Any = None
) -> None:
    """Serve `Inline` as model "m" and run `check` on the server's loop."""
    repository.add("m", config_of("inline", more=more))
    config = decode_server_config({"repositories": [{"url": str(repository.path)}], "frontends": SILENT})
    server = build(config, toy_plugins(ToyPlugin({"inline": Inline}, {"dynamic": DirectScheduler})), limiter)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        sink = LoopSink(loop, lambda request, response: request.tag.set_result(response))

        def ask(number: int) -> Awaitable[InferResponse]:
            answer: asyncio.Future[InferResponse] = loop.create_future()
            tensor = Tensor.from_numpy("IN", np.array([number], np.int32))
            server.engine.infer(InferRequest("m", {"IN": tensor}, sink, tag=answer))
            return answer

        await server.start()
        try:
            await check(server, ask)
            assert await server.drain(10)
        finally:
            await server.stop()

    asyncio.run(main())


async def runs_on_its_own_thread(ask: Ask) -> bool:
    return bool((await ask(0)).outputs[0].data[0])


async def become_quick(ask: Ask, monkeypatch: Any) -> None:
    monkeypatch.setattr(slots, "QUICK_NS", 10**12)  # however slow this machine is
    await ask(1)
    # The first execution is noted after its answer left: ask until the note shows.
    while await runs_on_its_own_thread(ask):
        pass


def test_quick_executions_move_to_the_loop_and_answer_right(
    model_repository: ModelRepository, monkeypatch: Any
) -> None:
    async def check(server: Server, ask: Ask) -> None:
        await become_quick(ask, monkeypatch)
        answers = await asyncio.gather(*[ask(number) for number in range(1, 13)])
        assert [int(answer.outputs[0].data[0]) for answer in answers] == [2 * number for number in range(1, 13)]
        assert server.engine.gauges()["m", "1"].pending == 0

    on_loop(model_repository, check)


def test_a_failure_on_the_loop_fails_its_request_alone(model_repository: ModelRepository, monkeypatch: Any) -> None:
    async def check(_server: Server, ask: Ask) -> None:
        await become_quick(ask, monkeypatch)
        bad, good = await asyncio.gather(ask(13), ask(4))
        assert str(bad.error) == "thirteen cannot be doubled"
        assert int(good.outputs[0].data[0]) == 8

    on_loop(model_repository, check)


def test_a_slow_one_goes_back_to_its_own_thread(model_repository: ModelRepository, monkeypatch: Any) -> None:
    async def check(_server: Server, ask: Ask) -> None:
        await become_quick(ask, monkeypatch)
        monkeypatch.setattr(slots, "QUICK_NS", 1)
        await ask(1)  # at the latest this one shows that it is slow
        assert await runs_on_its_own_thread(ask)

    on_loop(model_repository, check)


def test_a_backend_that_does_not_allow_it_stays_on_its_thread(
    model_repository: ModelRepository, monkeypatch: Any
) -> None:
    monkeypatch.setattr(slots, "QUICK_NS", 10**12)

    async def check(_server: Server, ask: Ask) -> None:
        for _ in range(20):
            assert await runs_on_its_own_thread(ask)

    on_loop(model_repository, check, more='parameters { key: "inline" value { string_value: "no" } }')


def test_with_a_rate_limiter_which_may_block_nothing_runs_on_the_loop(
    model_repository: ModelRepository, monkeypatch: Any
) -> None:
    monkeypatch.setattr(slots, "QUICK_NS", 10**12)

    async def check(_server: Server, ask: Ask) -> None:
        for _ in range(20):
            assert await runs_on_its_own_thread(ask)

    on_loop(model_repository, check, limiter=ResourceLimiter({}))
