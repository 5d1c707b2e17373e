from __future__ import annotations

from collections import Counter, defaultdict, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonpy import CallbackSink, InferRequest
from tritonpy_queueing_fair.fair_queue import FairQueue

SINK = CallbackSink(lambda *_: None)
WEIGHTS = {"a": 1.0, "b": 2.0, "c": 4.0}
TENANTS = st.sampled_from(sorted(WEIGHTS))


def request_of(tenant: str, rows: int = 1) -> InferRequest:
    return InferRequest("m", {}, SINK, tag=tenant, batch_size=rows)


def make_queue() -> FairQueue:
    return FairQueue(lambda request: request.tag, lambda name: WEIGHTS.get(name, 1.0))


def filled_queue(*tenants: str) -> FairQueue:
    queue = make_queue()
    queue.extend(request_of(tenant) for tenant in tenants)
    return queue


def run_order(queue: FairQueue, count: int) -> str:
    return "".join(queue.popleft().tag for _ in range(count))


def test_requests_of_one_tenant_keep_their_order():
    queue = make_queue()
    requests = [request_of("a") for _ in range(10)]
    queue.extend(requests)
    assert list(queue) == requests
    assert [queue.popleft() for _ in range(10)] == requests


def test_a_greedy_tenant_does_not_block_others():
    assert run_order(filled_queue(*"a" * 50, "x", "y"), 4) == "axya"


def test_weights_are_shares():
    queue = filled_queue(*"a" * 700, *"b" * 700, *"c" * 700)
    assert Counter(run_order(queue, 700)) == pytest.approx({"a": 100, "b": 200, "c": 400}, abs=2)


def closed_loop(
    clients: int, size: int, instances: int, batches: int = 400
) -> tuple[Counter[str], Counter[str]]:
    """Run clients of c (weight 4) and a (weight 1) that send again immediately.

    Returns the requests run by the last of `batches`, and these plus the requests that still
    waited.
    """
    queue = filled_queue(*"ca" * clients)
    running: deque[list[InferRequest]] = deque()
    counted: Counter[str] = Counter()
    for _ in range(batches):
        if len(running) == instances:
            queue.extend(request_of(request.tag) for request in running.popleft())
        batch = [queue.popleft() for _ in range(min(size, len(queue)))]
        running.append(batch)
        counted.update(request.tag for request in batch)
    return counted, counted + Counter(request.tag for request in queue)


@pytest.mark.parametrize(
    ("clients", "size", "instances"), [(4, 1, 1), (8, 1, 2), (16, 8, 1), (32, 8, 2), (100, 8, 4)]
)
def test_saturating_clients_get_their_weights_with_any_batch_size(clients, size, instances):
    counted, _ = closed_loop(clients, size, instances)
    assert counted["c"] / counted["a"] == pytest.approx(4, rel=0.02)


def test_weights_have_no_effect_if_no_tenant_waits():
    counted, _ = closed_loop(4, size=8, instances=1)
    assert counted["c"] == counted["a"]


def test_requests_that_wait_at_the_end_distort_the_ratio():
    counted, drained = closed_loop(32, size=1, instances=1)
    assert counted["c"] / counted["a"] == pytest.approx(4, rel=0.02)
    assert drained["c"] / drained["a"] == pytest.approx(3.15, abs=0.05)


def test_a_request_counts_by_its_rows():
    queue = make_queue()
    queue.extend(request_of(tenant, rows) for tenant, rows in [("x", 8), ("y", 1)] * 100)
    assert Counter(run_order(queue, 90)) == pytest.approx({"x": 10, "y": 80}, abs=2)


def test_an_idle_tenant_accumulates_no_credit():
    queue = filled_queue(*"x" * 200)
    run_order(queue, 100)
    queue.extend(request_of("y") for _ in range(100))
    assert Counter(run_order(queue, 20)) == pytest.approx({"x": 10, "y": 10}, abs=1)


def test_a_tenant_that_sends_one_request_at_a_time_gets_at_most_its_share():
    queue, counts = filled_queue(*"x" * 200), Counter[str]()
    queue.append(request_of("a", rows=4))
    for _ in range(100):
        tenant = queue.popleft().tag
        counts[tenant] += 1
        if tenant == "a":
            queue.append(request_of("a", rows=4))
    assert counts["a"] == pytest.approx(20, abs=2)


def test_removing_a_request_keeps_the_order():
    queue = make_queue()
    first, second, other = request_of("x"), request_of("x"), request_of("y")
    queue.extend([first, second, other])
    queue.remove(first)
    assert (len(queue), first in queue, second in queue) == (2, False, True)
    assert list(queue) == [other, second]
    with pytest.raises(ValueError, match="is not in this queue"):
        queue.remove(first)
    queue.remove(other)
    queue.remove(second)
    with pytest.raises(IndexError):
        queue.popleft()


def test_a_stream_of_new_tenants_does_not_block_others():
    queue = make_queue()
    queue.append(request_of("stays", rows=8))
    queue.append(request_of("stays"))
    tenants = []
    for number in range(100):
        queue.append(request_of(str(number)))
        tenants.append(queue.popleft().tag)
    assert tenants.count("stays") == 2


def test_idle_tenants_are_removed():
    queue = make_queue()
    queue.extend(request_of("stays") for _ in range(20_000))
    for number in range(10_000):
        queue.append(request_of(str(number)))
        queue.popleft()
    assert len(queue._finished) < 200
    while queue:
        queue.popleft()
    assert not queue._finished


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TENANTS, st.integers(1, 8)), min_size=1, max_size=200), st.data())
def test_two_waiting_tenants_differ_at_most_by_one_request_each(requests, data):
    queue = make_queue()
    queue.extend(request_of(*each) for each in requests)
    left, given_rows = Counter(tenant for tenant, _ in requests), defaultdict(float)
    for _ in range(data.draw(st.integers(0, len(requests)))):
        if len([tenant for tenant in left if left[tenant]]) < len(
            {tenant for tenant, _ in requests}
        ):
            break
        request = queue.popleft()
        left[request.tag] -= 1
        given_rows[request.tag] += request.batch_size / WEIGHTS[request.tag]
        for one in left:
            for other in left:
                assert (
                    abs(given_rows[one] - given_rows[other])
                    <= 8 / WEIGHTS[one] + 8 / WEIGHTS[other]
                )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(st.tuples(TENANTS, st.integers(1, 8)), st.none(), st.integers(0, 50)),
        max_size=120,
    )
)
def test_iteration_yields_the_execution_order(steps):
    queue, waiting = make_queue(), list[InferRequest]()
    for step in steps:
        if isinstance(step, tuple):
            waiting.append(request_of(*step))
            queue.append(waiting[-1])
        elif step is None and waiting:
            first = next(iter(queue))
            assert queue.popleft() is first
            waiting.remove(first)
        elif isinstance(step, int) and waiting:
            queue.remove(waiting.pop(step % len(waiting)))
        assert len(queue) == len(waiting)
        assert {id(each) for each in queue} == {id(each) for each in waiting}
    order = list(queue)
    assert [queue.popleft() for _ in order] == order


@pytest.mark.parametrize("left", [0, 3])
def test_a_requeued_request_runs_first_and_is_not_charged_again(left):
    queue = filled_queue(*"ab" * 3)
    taken = [queue.popleft() for _ in range(6 - left)]
    for request in reversed(taken):
        queue.appendleft(request)
    assert len(queue) == 6
    assert set(list(queue)[: len(taken)]) == set(taken)
    assert sorted(run_order(queue, 6)) == sorted("ab" * 3)
    with pytest.raises(IndexError):
        queue.popleft()
