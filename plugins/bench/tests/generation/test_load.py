from __future__ import annotations

import asyncio
import json
import time
from itertools import islice, pairwise

import pytest

from tritonpy_bench.generation.load import GenerationLoad
from tritonpy_bench.generation.options import GenerationOptions
from tritonpy_bench.generation.prompts import Request
from tritonpy_bench.sweep import LoadRange

MS = 1_000_000


class StubPool:
    """Answers each request after a few turns of the event loop."""

    def __init__(self):
        self.running = self.most = 0
        self.leaves = []
        self.bodies = []

    async def exchange(self, request, exchange, leaves_after_s=None):
        self.running += 1
        self.most = max(self.most, self.running)
        self.leaves.append(leaves_after_s)
        self.bodies.append(json.loads(request.partition(b"\r\n\r\n")[2]))
        exchange.sent_ns = time.perf_counter_ns()
        await asyncio.sleep(0.001)
        self.running -= 1
        exchange.status = 200
        exchange.parts = [(1, b'{"choices": [{"message": {"content": "yes"}}]}')]
        exchange.ended_ns = time.perf_counter_ns()


def run(requests, level=1, **members):
    pool = StubPool()
    options = GenerationOptions(**{"model": "m", "endpoint_type": "chat", **members})
    load = GenerationLoad(options, pool, b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n")
    asyncio.run(load.run(level, requests))
    return load, pool


def requests(count):
    return [Request(f"prompt {number}", 5) for number in range(count)]


def test_a_closed_loop_keeps_exactly_its_level_in_flight():
    load, pool = run(requests(20), 4)
    assert pool.most == 4
    assert len(load.exchanges) == 20
    assert [body["messages"][0]["content"] for body in pool.bodies[:4]] == [
        f"prompt {number}" for number in range(4)
    ]


def test_no_request_of_an_open_loop_is_sent_early():
    load, _ = run(requests(10), 500, request_rate_range=LoadRange(500, 500))
    due = [each.due_ns for each in load.exchanges]
    assert [later - due[0] for later in due] == [number * 2 * MS for number in range(10)]
    assert all(each.sent_ns >= each.due_ns for each in load.exchanges)


def test_a_schedule_keeps_the_distances_of_its_timestamps():
    trace = [Request("a", 1, at_ms=at) for at in (1000, 1005, 1030)]
    load, _ = run(trace, fixed_schedule=True)
    due = [each.due_ns for each in load.exchanges]
    assert [later - due[0] for later in due] == [0, 5 * MS, 30 * MS]
    assert all(each.sent_ns >= each.due_ns for each in load.exchanges)


@pytest.mark.parametrize(
    ("burstiness", "least", "most"), [(0.2, 1.5, 4), (1, 0.8, 1.2), (25, 0, 0.4)]
)
def test_burstiness_is_the_shape_of_the_intervals(burstiness, least, most):
    options = GenerationOptions(
        model="m", endpoint_type="chat", request_rate_range=LoadRange(100, 100),
        request_distribution="gamma", burstiness=burstiness,
    )  # fmt: skip
    load = GenerationLoad(options, StubPool(), b"%d")
    times = list(islice(load._arrivals(100), 4000))
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(10 * MS, rel=0.15)
    variation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 / mean
    assert least <= variation <= most


def test_sessions_run_concurrently_and_wait_for_answers():
    _, pool = run(requests(6), 2, num_sessions=2, turns=3)
    assert pool.most == 2
    lengths = sorted(len(body["messages"]) for body in pool.bodies)
    assert lengths == [1, 1, 3, 3, 5, 5]
    last = max((body["messages"] for body in pool.bodies), key=len)
    assert [each["content"] for each in last[1::2]] == ["yes", "yes"]


def test_the_wanted_part_of_the_clients_leaves():
    _, pool = run(requests(400), 8, request_cancellation_rate=25.0, request_cancellation_delay=0.5)
    delays = [each for each in pool.leaves if each is not None]
    assert set(delays) == {0.5}
    assert 60 < len(delays) < 140
