from __future__ import annotations

import asyncio
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.workers.tests.fake_worker import eventually, on_loop, tensor, worker_of
from tritonpy_ipc import Kind
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import InferRequest
from tritonpy_types.errors import Internal, InvalidArgument


@on_loop
async def test_a_query_to_a_worker_returns_its_result():
    async with worker_of(ToyEngine([])) as worker:
        calling = asyncio.create_task(worker.session.call("is_ready", {"a": 1}))
        frame = await worker.receive(Kind.QUERY)
        assert frame.extras == {"verb": "is_ready", "arguments": {"a": 1}}
        worker.send(Kind.QUERY_RESULT, frame.words, extras={"value": [True]})
        assert await calling == [True]


@on_loop
async def test_results_match_their_queries_in_any_order():
    async with worker_of(ToyEngine([])) as worker:
        calling = [asyncio.create_task(worker.session.call("is_ready", {"n": n})) for n in range(3)]
        frames = [await worker.receive(Kind.QUERY) for _ in calling]
        for frame in reversed(frames):
            worker.send(
                Kind.QUERY_RESULT, frame.words, extras={"value": frame.extras["arguments"]["n"]}
            )
        assert await asyncio.gather(*calling) == [0, 1, 2]


@on_loop
async def test_an_error_of_the_worker_is_raised():
    async with worker_of(ToyEngine([])) as worker:
        calling = asyncio.create_task(worker.session.call("is_ready", {}))
        frame = await worker.receive(Kind.QUERY)
        worker.send(Kind.QUERY_RESULT, frame.words, extras={"error": [3, "bad"]})
        with pytest.raises(InvalidArgument, match=r"^bad$"):
            await calling


@on_loop
async def test_the_death_of_a_worker_fails_queries_with_the_reason():
    async with worker_of(ToyEngine([])) as worker:
        calling = asyncio.create_task(worker.session.call("is_ready", {}))
        await worker.receive(Kind.QUERY)
        worker.session.close(Internal("it died"))
        with pytest.raises(Internal, match="it died"):
            await calling
        worker.session.close(Internal("it died twice"))


@on_loop
async def test_a_result_for_a_cancelled_query_is_dropped():
    async with worker_of(ToyEngine()) as worker:
        calling = asyncio.create_task(worker.session.call("is_ready", {}))
        frame = await worker.receive(Kind.QUERY)
        calling.cancel()
        await asyncio.wait((calling,))
        worker.send(Kind.QUERY_RESULT, frame.words, extras={"value": True})
        worker.ask(1, "is_model_ready", name="identity")
        assert await worker.reply(1) is True


@pytest.mark.parametrize(
    ("kind", "words", "extras"),
    [
        (Kind.QUERY_RESULT, [1], {"value": True}),
        (Kind.EXECUTE, [], {}),
        (Kind.START, [], {}),
        (99, [], {}),
        (Kind.CALL, [1, 0], {"model": "identity"}),
        (Kind.CALL_CANCEL, [], {}),
        (Kind.QUERY, [], {"verb": "log", "arguments": {}}),
    ],
)
@on_loop
async def test_an_unexpected_frame_ends_the_worker(kind, words, extras):
    async with worker_of(ToyEngine()) as worker:
        worker.send(kind, words, extras=extras)
        assert "it broke the worker protocol" in await worker.until_broken()


@pytest.mark.parametrize("extras", [{"error": [8, "code"]}, {"error": [1]}, {"error": "text"}])
@on_loop
async def test_an_invalid_result_ends_the_worker(extras):
    async with worker_of(ToyEngine()) as worker:
        calling = asyncio.create_task(worker.session.call("is_ready", {}))
        frame = await worker.receive(Kind.QUERY)
        worker.send(Kind.QUERY_RESULT, frame.words, extras=extras)
        assert "it broke the worker protocol" in await worker.until_broken()
        worker.session.close(Internal("it died"))
        with pytest.raises(Internal):
            await calling


NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
VERBS = st.sampled_from([
    "log", "metric_family", "metric", "metric_value", "metric_add", "metric_set", "metric_observe", "metric_drop",
    "metric_family_drop", "load_model", "unload_model", "is_model_ready", "share", "shared", "take_more", "engine",
    "credit", "log_record",
])  # fmt: skip
KEYS = st.sampled_from([
    "verb", "arguments", "name", "description", "kind", "family", "labels", "buckets", "metric", "value", "id", "key", "layout", "count",
    "level", "message", "requests", "config", "files", "version", "error", "model", "parameters", "sequence", "timeout_us", "decoupled",
    "method", "request", "logger", "file", "line", "fields", "table",
])  # fmt: skip
JSON_VALUES = st.dictionaries(KEYS, VALUES, max_size=5)
METHODS = st.sampled_from(
    ["model_config", "load_model", "is_model_ready", "statistics", "infer", "__init__"]
)
EXTRAS = st.one_of(
    JSON_VALUES,
    st.builds(lambda verb, arguments: {"verb": verb, "arguments": arguments}, VERBS, JSON_VALUES),
    st.builds(lambda message: {"model": "identity", **message}, JSON_VALUES),
    st.builds(
        lambda method, message: {
            "verb": "engine",
            "arguments": {"method": method, "arguments": message},
        },
        METHODS,
        JSON_VALUES,
    ),
)
KINDS = st.one_of(
    st.sampled_from([Kind.CALL, Kind.CALL_CANCEL, Kind.QUERY, Kind.NOTIFY, Kind.QUERY_RESULT]),
    st.integers(16, 255),
)
FRAMES = st.lists(
    st.tuples(KINDS, st.lists(NUMBERS, max_size=4), st.none() | st.integers(0, 2), EXTRAS),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(FRAMES)
def test_the_server_survives_any_frames_of_a_worker(frames):
    @on_loop
    async def scenario():
        with ToyEngine() as engine:
            async with worker_of(engine) as worker:
                worker.execute(InferRequest("caller", {}, None))
                for kind, words, rows, extras in frames:
                    row = [tensor(np.float32([1]))]
                    worker.send(
                        kind, words, rows=None if rows is None else [row] * rows, extras=extras
                    )
                worker.ask(77, "is_model_ready", name="identity")
                await eventually(lambda: worker.broken is not None or replied(worker))
                # The text of a broken rule, not the repr of an unexpected exception.
                assert worker.broken is None or re.match(
                    r"it broke the worker protocol: (?!\w+\()", worker.broken
                )
            async with worker_of(engine) as other:
                other.ask(1, "is_model_ready", name="text")
                assert await other.reply(1) is True

    scenario()


def replied(worker):
    """Return whether the last query has a result."""
    data = b""
    try:
        data = worker.socket.recv(1 << 18)
    except BlockingIOError:
        return False
    worker.frames += worker.endpoint.feed(data)
    return any(frame.kind == Kind.QUERY_RESULT and frame.words == (77,) for frame in worker.frames)
