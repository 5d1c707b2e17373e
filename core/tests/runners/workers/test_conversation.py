from __future__ import annotations

import asyncio
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tests.runners.workers.fake_worker import eventually, on_loop, tensor, worker_of
from tritonpy.errors import Internal, InvalidArgument
from tritonpy.ipc import Kind
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.types import InferRequest


@on_loop
async def test_a_worker_is_asked_and_answers():
    async with worker_of(ToyEngine([])) as worker:
        asking = asyncio.create_task(worker.conversation.ask("is_ready", {"a": 1}))
        frame = await worker.receive(Kind.ASK)
        assert frame.extras == {"verb": "is_ready", "arguments": {"a": 1}}
        worker.send(Kind.REPLY, frame.words, extras={"value": [True]})
        assert await asking == [True]


@on_loop
async def test_answers_find_their_questions_in_any_order():
    async with worker_of(ToyEngine([])) as worker:
        asking = [asyncio.create_task(worker.conversation.ask("is_ready", {"n": n})) for n in range(3)]
        frames = [await worker.receive(Kind.ASK) for _ in asking]
        for frame in reversed(frames):
            worker.send(Kind.REPLY, frame.words, extras={"value": frame.extras["arguments"]["n"]})
        assert await asyncio.gather(*asking) == [0, 1, 2]


@on_loop
async def test_an_error_of_the_worker_is_raised():
    async with worker_of(ToyEngine([])) as worker:
        asking = asyncio.create_task(worker.conversation.ask("is_ready", {}))
        frame = await worker.receive(Kind.ASK)
        worker.send(Kind.REPLY, frame.words, extras={"error": [3, "bad"]})
        with pytest.raises(InvalidArgument, match=r"^bad$"):
            await asking


@on_loop
async def test_a_worker_that_dies_answers_with_the_reason():
    async with worker_of(ToyEngine([])) as worker:
        asking = asyncio.create_task(worker.conversation.ask("is_ready", {}))
        await worker.receive(Kind.ASK)
        worker.conversation.close(Internal("it died"))
        with pytest.raises(Internal, match="it died"):
            await asking
        worker.conversation.close(Internal("it died twice"))


@on_loop
async def test_an_answer_to_who_has_gone_is_dropped():
    async with worker_of(ToyEngine()) as worker:
        asking = asyncio.create_task(worker.conversation.ask("is_ready", {}))
        frame = await worker.receive(Kind.ASK)
        asking.cancel()
        await asyncio.wait((asking,))
        worker.send(Kind.REPLY, frame.words, extras={"value": True})
        worker.ask(1, "is_model_ready", name="identity")
        assert await worker.reply(1) is True


@pytest.mark.parametrize(
    ("kind", "words", "extras"),
    [
        (Kind.REPLY, [1], {"value": True}),
        (Kind.EXECUTE, [], {}),
        (Kind.START, [], {}),
        (99, [], {}),
        (Kind.CALL, [1, 0], {"model": "identity"}),
        (Kind.CALL_CANCEL, [], {}),
        (Kind.ASK, [], {"verb": "log", "arguments": {}}),
    ],
)
@on_loop
async def test_what_no_worker_says_ends_it(kind, words, extras):
    async with worker_of(ToyEngine()) as worker:
        worker.send(kind, words, extras=extras)
        assert "it broke the worker protocol" in await worker.until_broken()


@pytest.mark.parametrize("extras", [{"error": [8, "code"]}, {"error": [1]}, {"error": "text"}])
@on_loop
async def test_a_reply_without_sense_ends_the_worker(extras):
    async with worker_of(ToyEngine()) as worker:
        asking = asyncio.create_task(worker.conversation.ask("is_ready", {}))
        frame = await worker.receive(Kind.ASK)
        worker.send(Kind.REPLY, frame.words, extras=extras)
        assert "it broke the worker protocol" in await worker.until_broken()
        worker.conversation.close(Internal("it died"))
        with pytest.raises(Internal):
            await asking


NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
VERBS = st.sampled_from([
    "log", "metric_family", "metric", "metric_value", "metric_add", "metric_set", "metric_observe", "metric_drop",
    "metric_family_drop", "load_model", "unload_model", "is_model_ready", "share", "shared", "take_more", "engine",
    "room", "log_record",
])  # fmt: skip
KEYS = st.sampled_from([
    "verb", "arguments", "name", "description", "kind", "family", "labels", "buckets", "metric", "value", "id", "key", "layout", "count",
    "level", "message", "requests", "config", "files", "version", "error", "model", "parameters", "sequence", "timeout_us", "decoupled",
    "method", "request", "logger", "file", "line", "fields", "table",
])  # fmt: skip
SAID = st.dictionaries(KEYS, VALUES, max_size=5)
METHODS = st.sampled_from(["model_config", "load_model", "is_model_ready", "statistics", "infer", "__init__"])
EXTRAS = st.one_of(
    SAID,
    st.builds(lambda verb, arguments: {"verb": verb, "arguments": arguments}, VERBS, SAID),
    st.builds(lambda said: {"model": "identity", **said}, SAID),
    st.builds(
        lambda method, said: {"verb": "engine", "arguments": {"method": method, "arguments": said}}, METHODS, SAID
    ),
)
KINDS = st.one_of(st.sampled_from([Kind.CALL, Kind.CALL_CANCEL, Kind.ASK, Kind.TELL, Kind.REPLY]), st.integers(16, 255))
FRAMES = st.lists(
    st.tuples(KINDS, st.lists(NUMBERS, max_size=4), st.none() | st.integers(0, 2), EXTRAS), min_size=1, max_size=6
)


@settings(deadline=None)
@given(FRAMES)
def test_whatever_a_worker_says_the_server_lives(frames):
    @on_loop
    async def scenario():
        with ToyEngine() as engine:
            async with worker_of(engine) as worker:
                worker.execute(InferRequest("caller", {}, None))
                for kind, words, rows, extras in frames:
                    row = [tensor(np.float32([1]))]
                    worker.send(kind, words, rows=None if rows is None else [row] * rows, extras=extras)
                worker.ask(77, "is_model_ready", name="identity")
                await eventually(lambda: worker.broken is not None or replied(worker))
                # The text of a rule that was broken, not the repr of an exception that nobody foresaw.
                assert worker.broken is None or re.match(r"it broke the worker protocol: (?!\w+\()", worker.broken)
            async with worker_of(engine) as other:
                other.ask(1, "is_model_ready", name="text")
                assert await other.reply(1) is True

    scenario()


def replied(worker):
    """Say whether the last question was answered."""
    data = b""
    try:
        data = worker.socket.recv(1 << 18)
    except BlockingIOError:
        return False
    worker.frames += worker.endpoint.feed(data)
    return any(frame.kind == Kind.REPLY and frame.words == (77,) for frame in worker.frames)
