from __future__ import annotations

from collections import Counter, defaultdict, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonpy import CallbackSink, InferRequest
from tritonpy_queueing_fair.line import FairLine

SINK = CallbackSink(lambda *_: None)
WEIGHTS = {"a": 1.0, "b": 2.0, "c": 4.0}
TENANTS = st.sampled_from(sorted(WEIGHTS))


def request_of(tenant: str, rows: int = 1) -> InferRequest:
    return InferRequest("m", {}, SINK, tag=tenant, batch_size=rows)


def line_of() -> FairLine:
    return FairLine(lambda request: request.tag, lambda name: WEIGHTS.get(name, 1.0))


def filled(*tenants: str) -> FairLine:
    line = line_of()
    line.extend(request_of(tenant) for tenant in tenants)
    return line


def served(line: FairLine, count: int) -> str:
    return "".join(line.popleft().tag for _ in range(count))


def test_one_tenants_requests_keep_their_order():
    line = line_of()
    requests = [request_of("a") for _ in range(10)]
    line.extend(requests)
    assert list(line) == requests
    assert [line.popleft() for _ in range(10)] == requests


def test_who_sends_much_does_not_keep_others_waiting():
    assert served(filled(*"a" * 50, "x", "y"), 4) == "axya"


def test_weights_are_shares():
    line = filled(*"a" * 700, *"b" * 700, *"c" * 700)
    assert Counter(served(line, 700)) == pytest.approx({"a": 100, "b": 200, "c": 400}, abs=2)


def closed_loop(clients: int, size: int, instances: int, batches: int = 400) -> tuple[Counter[str], Counter[str]]:
    """Let `clients` of c (weight 4) and of a (weight 1) ask again at once; return what ran until the last of `batches`, and with what waited then."""
    line = filled(*"ca" * clients)
    running: deque[list[InferRequest]] = deque()
    counted: Counter[str] = Counter()
    for _ in range(batches):
        if len(running) == instances:
            line.extend(request_of(request.tag) for request in running.popleft())
        batch = [line.popleft() for _ in range(min(size, len(line)))]
        running.append(batch)
        counted.update(request.tag for request in batch)
    return counted, counted + Counter(request.tag for request in line)


@pytest.mark.parametrize(("clients", "size", "instances"), [(4, 1, 1), (8, 1, 2), (16, 8, 1), (32, 8, 2), (100, 8, 4)])
def test_clients_that_always_wait_get_their_weights_whatever_the_batches(clients, size, instances):
    counted, _ = closed_loop(clients, size, instances)
    assert counted["c"] / counted["a"] == pytest.approx(4, rel=0.02)


def test_weights_have_no_effect_if_no_tenant_waits():
    counted, _ = closed_loop(4, size=8, instances=1)
    assert counted["c"] == counted["a"]


def test_what_still_waits_in_the_end_is_not_shared_by_weight():
    counted, drained = closed_loop(32, size=1, instances=1)
    assert counted["c"] / counted["a"] == pytest.approx(4, rel=0.02)
    assert drained["c"] / drained["a"] == pytest.approx(3.15, abs=0.05)


def test_a_request_counts_by_its_rows():
    line = line_of()
    line.extend(request_of(tenant, rows) for tenant, rows in [("x", 8), ("y", 1)] * 100)
    assert Counter(served(line, 90)) == pytest.approx({"x": 10, "y": 80}, abs=2)


def test_who_was_idle_has_saved_nothing_up():
    line = filled(*"x" * 200)
    served(line, 100)
    line.extend(request_of("y") for _ in range(100))
    assert Counter(served(line, 20)) == pytest.approx({"x": 10, "y": 10}, abs=1)


def test_who_comes_back_for_each_request_gets_no_more_than_its_share():
    line, counts = filled(*"x" * 200), Counter[str]()
    line.append(request_of("a", rows=4))
    for _ in range(100):
        tenant = line.popleft().tag
        counts[tenant] += 1
        if tenant == "a":
            line.append(request_of("a", rows=4))
    assert counts["a"] == pytest.approx(20, abs=2)


def test_a_request_that_left_leaves_a_right_order():
    line = line_of()
    first, second, other = request_of("x"), request_of("x"), request_of("y")
    line.extend([first, second, other])
    line.remove(first)
    assert (len(line), first in line, second in line) == (2, False, True)
    assert list(line) == [other, second]
    with pytest.raises(ValueError, match="does not wait here"):
        line.remove(first)
    line.remove(other)
    line.remove(second)
    with pytest.raises(IndexError):
        line.popleft()


def test_new_tenants_without_end_keep_nobody_waiting():
    line = line_of()
    line.append(request_of("stays", rows=8))
    line.append(request_of("stays"))
    tenants = []
    for number in range(100):
        line.append(request_of(str(number)))
        tenants.append(line.popleft().tag)
    assert tenants.count("stays") == 2


def test_thousands_of_tenants_leave_nothing_behind():
    line = line_of()
    line.extend(request_of("stays") for _ in range(20_000))
    for number in range(10_000):
        line.append(request_of(str(number)))
        line.popleft()
    assert len(line._finished) < 200
    while line:
        line.popleft()
    assert not line._finished


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TENANTS, st.integers(1, 8)), min_size=1, max_size=200), st.data())
def test_two_who_wait_all_the_time_are_given_the_same_up_to_one_request_each(requests, data):
    line = line_of()
    line.extend(request_of(*each) for each in requests)
    left, given_rows = Counter(tenant for tenant, _ in requests), defaultdict(float)
    for _ in range(data.draw(st.integers(0, len(requests)))):
        if len([tenant for tenant in left if left[tenant]]) < len({tenant for tenant, _ in requests}):
            break
        request = line.popleft()
        left[request.tag] -= 1
        given_rows[request.tag] += request.batch_size / WEIGHTS[request.tag]
        for one in left:
            for other in left:
                assert abs(given_rows[one] - given_rows[other]) <= 8 / WEIGHTS[one] + 8 / WEIGHTS[other]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.tuples(TENANTS, st.integers(1, 8)), st.none(), st.integers(0, 50)), max_size=120))
def test_nothing_is_lost_and_the_order_shown_is_the_order_run(steps):
    line, waiting = line_of(), list[InferRequest]()
    for step in steps:
        if isinstance(step, tuple):
            waiting.append(request_of(*step))
            line.append(waiting[-1])
        elif step is None and waiting:
            first = next(iter(line))
            assert line.popleft() is first
            waiting.remove(first)
        elif isinstance(step, int) and waiting:
            line.remove(waiting.pop(step % len(waiting)))
        assert len(line) == len(waiting)
        assert {id(each) for each in line} == {id(each) for each in waiting}
    order = list(line)
    assert [line.popleft() for _ in order] == order


@pytest.mark.parametrize("left", [0, 3])
def test_what_was_not_run_comes_first_and_is_not_charged_twice(left):
    line = filled(*"ab" * 3)
    taken = [line.popleft() for _ in range(6 - left)]
    for request in reversed(taken):
        line.appendleft(request)
    assert len(line) == 6
    assert set(list(line)[: len(taken)]) == set(taken)
    assert sorted(served(line, 6)) == sorted("ab" * 3)
    with pytest.raises(IndexError):
        line.popleft()
