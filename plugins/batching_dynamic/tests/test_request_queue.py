from __future__ import annotations

import pytest

from tritonpy import QueueFull
from tritonpy.metrics import FailureReason
from tritonpy.scheduling import OrderedRequestQueue
from tritonpy_batching_dynamic.queue_policy import QueuePolicy
from tritonpy_batching_dynamic.request_queue import NEVER, RequestQueue


def names(requests):
    return [request.id for request in requests]


@pytest.fixture
def fill(request_of):
    def fill(queue, *specs):
        made = [request_of(name, **fields) for name, fields in specs]
        for each in made:
            queue.append(each)
        return made

    return fill


def test_one_level_is_first_in_first_out(fill):
    queue = RequestQueue(QueuePolicy())
    fill(queue, ("a", {"priority": 3}), ("b", {"priority": 1}), ("c", {}))
    assert queue.in_order
    assert names(queue.pop(2)) == ["a", "b"]
    assert names(queue.pop(5)) == ["c"]
    assert queue.size == 0


def test_coalesced_requests_are_added_at_the_end(fill, request_of):
    queue = RequestQueue(QueuePolicy(max_size=4))
    fill(queue, ("a", {}))
    epoch = queue.epoch
    assert queue.extend([request_of(name) for name in "bcd"])
    assert (names(queue), queue.size, queue.epoch) == (["a", "b", "c", "d"], 4, epoch)
    assert names(queue.after(1, 9)) == ["b", "c", "d"]
    assert not queue.extend([request_of("e")])  # exceeds the limit
    assert (names(queue.pop(9)), queue.size) == (["a", "b", "c", "d"], 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RequestQueue(QueuePolicy(timeout_ns=1)),
        lambda: RequestQueue(
            QueuePolicy(), {1: QueuePolicy(), 2: QueuePolicy()}, levels=2, default_level=1
        ),
        lambda: RequestQueue(QueuePolicy(), {1: QueuePolicy()}, levels=2, default_level=1),
        lambda: RequestQueue(QueuePolicy(), line=LastFirst),
    ],
    ids=["timeout", "levels", "temporary level", "line"],
)
def test_extend_rejects_requests_that_need_separate_handling(make, request_of):
    queue = make()
    assert not queue.extend([request_of(name, priority=2) for name in "ab"])
    assert (names(queue), queue.size) == ([], 0)


def test_levels_run_in_the_order_of_their_numbers(fill):
    queue = RequestQueue(QueuePolicy(), levels=3, default_level=2)
    fill(
        queue,
        ("low", {"priority": 3}),
        ("none", {}),
        ("high", {"priority": 1}),
        ("beyond", {"priority": 4}),
    )
    assert names(queue) == ["high", "none", "beyond", "low"]
    assert names(queue.after(1, 2)) == ["none", "beyond"]
    assert names(queue.pop(3)) == ["high", "none", "beyond"]
    assert names(queue.pop(3)) == ["low"]


def test_levels_without_a_policy_are_removed_when_empty(fill):
    queue = RequestQueue(QueuePolicy(), {7: QueuePolicy()}, levels=2**64 - 1, default_level=7)
    made = fill(queue, *((str(level), {"priority": level}) for level in (2**64 - 1, 5, 7, 6)))
    assert not queue.in_order
    assert queue.remove(made[3])
    assert names(queue.pop(9)) == ["5", "7", str(2**64 - 1)]
    assert queue.in_order  # the configured level alone is left
    assert queue.size == 0


def test_a_full_level_rejects_requests_and_others_accept_them(fill, request_of):
    queue = RequestQueue(QueuePolicy(), {1: QueuePolicy(max_size=2)}, levels=2, default_level=1)
    fill(queue, ("a", {}), ("b", {}))
    with pytest.raises(QueueFull) as refused:
        queue.append(request_of("c"))
    assert refused.value.message == "[request id: c] Exceeds maximum queue size"
    assert refused.value.reason is FailureReason.REJECTED
    with pytest.raises(QueueFull, match=r"^\[request id: <id_unknown>\] Exceeds"):
        queue.append(request_of(""))
    queue.append(request_of("d", priority=2))
    assert names(queue) == ["a", "b", "d"]


def test_delayed_requests_count_against_the_maximum(fill, request_of):
    queue = RequestQueue(QueuePolicy(max_size=1, timeout_ns=10, delays=True))
    fill(queue, ("a", {}))
    assert queue.expire(10) == []
    with pytest.raises(QueueFull):
        queue.append(request_of("b"))


def test_overdue_requests_are_returned_once_in_their_order(fill):
    queue = RequestQueue(QueuePolicy(timeout_ns=10))
    fill(queue, ("a", {"at": 0}), ("b", {"at": 5}), ("c", {"at": 6}))
    assert queue.next_deadline == 10
    assert queue.expire(9) == []
    assert names(queue.expire(15)) == ["a", "b"]
    assert queue.expire(15) == []
    assert (queue.next_deadline, queue.size, names(queue)) == (16, 1, ["c"])


def test_a_delayed_request_runs_after_its_level_and_before_the_next(fill):
    policies = {1: QueuePolicy(timeout_ns=10, delays=True)}
    queue = RequestQueue(QueuePolicy(), policies, levels=2, default_level=1)
    fill(queue, ("a", {"at": 0}), ("low", {"priority": 2}), ("b", {"at": 5}))
    assert queue.expire(10) == []
    assert names(queue) == ["b", "a", "low"]
    fill(queue, ("c", {"at": 20}))
    assert queue.expire(15) == []
    assert names(queue) == ["c", "a", "b", "low"]
    assert names(queue.pop(4)) == ["c", "a", "b", "low"]


def test_removed_requests_do_not_expire(fill):
    queue = RequestQueue(QueuePolicy(timeout_ns=10))
    made = fill(queue, ("a", {"at": 0}), ("b", {"at": 100}), ("c", {"at": 200}))
    assert names(queue.expire(10)) == ["a"]
    queue.pop(1)
    assert queue.remove(made[2])
    assert queue.expire(110) == []
    assert queue.next_deadline == NEVER


def test_a_level_keeps_its_policy_while_empty(fill, request_of):
    queue = RequestQueue(QueuePolicy(), {1: QueuePolicy(max_size=1)}, levels=2, default_level=1)
    fill(queue, ("a", {}), ("b", {"priority": 2}))
    assert names(queue.pop(1)) == ["a"]
    fill(queue, ("c", {}))
    with pytest.raises(QueueFull):
        queue.append(request_of("d"))


def test_a_shorter_timeout_of_a_later_request_counts(fill):
    queue = RequestQueue(QueuePolicy(timeout_ns=50_000, overridable=True))
    fill(queue, ("a", {"at": 0}), ("b", {"at": 1, "timeout_us": 10}))
    assert names(queue.expire(10_001)) == ["b"]
    assert queue.next_deadline == 50_000


def test_remove_returns_whether_the_request_was_waiting(fill, request_of):
    queue = RequestQueue(QueuePolicy(timeout_ns=10, delays=True))
    made = fill(queue, ("a", {}), ("b", {"at": 5}))
    queue.expire(10)
    assert queue.remove(made[0])
    assert not queue.remove(made[0])
    assert not queue.remove(request_of("unknown"))
    assert (queue.size, names(queue)) == (1, ["b"])


def test_the_epoch_is_constant_only_while_requests_are_added_at_the_end(fill):
    queue = RequestQueue(QueuePolicy(), {1: QueuePolicy()}, levels=2, default_level=1)
    before = queue.epoch
    fill(queue, ("a", {}), ("b", {}))
    assert queue.epoch == before
    fill(queue, ("low", {"priority": 2}))
    before = queue.epoch
    fill(queue, ("c", {}))
    assert queue.epoch > before
    before = queue.epoch
    queue.pop(1)
    assert queue.epoch > before


class LastFirst(OrderedRequestQueue):
    """A line in reverse order of arrival."""

    def __init__(self):
        self._kept = []

    def append(self, request):
        self._kept.insert(0, request)

    def popleft(self):
        return self._kept.pop(0)

    def remove(self, request):
        self._kept.remove(request)

    def clear(self):
        self._kept.clear()

    def __len__(self):
        return len(self._kept)

    def __iter__(self):
        return iter(self._kept)


def test_a_line_orders_each_level_by_itself(fill):
    queue = RequestQueue(
        QueuePolicy(), {1: QueuePolicy()}, levels=2, default_level=1, line=LastFirst
    )
    made = fill(
        queue, ("a", {}), ("x", {"priority": 2}), ("b", {}), ("y", {"priority": 2}), ("c", {})
    )
    assert names(queue) == ["c", "b", "a", "y", "x"]
    assert names(queue.after(1, 3)) == ["b", "a", "y"]
    assert queue.remove(made[2])
    assert not queue.remove(made[2])
    assert names(queue.pop(3)) == ["c", "a", "y"]
    assert (names(queue), queue.size) == (["x"], 1)


def test_each_arrival_in_a_line_is_a_change(fill):
    queue = RequestQueue(QueuePolicy(), line=LastFirst)
    assert not queue.in_order
    epochs = [queue.epoch]
    for name in "abc":
        fill(queue, (name, {}))
        epochs.append(queue.epoch)
    assert epochs == sorted(set(epochs)), "a reordering arrival did not change the epoch"
    assert names(queue.after(2, 5)) == ["a"]


def test_overdue_requests_are_removed_from_a_line_in_order(fill):
    queue = RequestQueue(QueuePolicy(timeout_ns=50_000, overridable=True), line=LastFirst)
    fill(queue, ("a", {}), ("b", {"timeout_us": 10}), ("c", {}), ("d", {"timeout_us": 10}))
    assert names(queue.expire(10_001)) == ["d", "b"]
    assert (names(queue), queue.size) == (["c", "a"], 2)


def test_appendleft_restores_position_and_deadline(fill):
    levels = {1: QueuePolicy(timeout_ns=5, max_size=1), 2: QueuePolicy()}
    queue = RequestQueue(QueuePolicy(), levels, levels=2, default_level=2)
    fill(queue, ("a", {"priority": 1}), ("b", {"priority": 2}), ("c", {"priority": 2}))
    taken = queue.pop(2)
    fill(queue, ("d", {"priority": 1}))
    epoch = queue.epoch
    for request in reversed(taken):
        queue.appendleft(request)
    assert (names(queue), queue.size) == (["a", "d", "b", "c"], 4)
    assert queue.epoch > epoch
    assert names(queue.expire(5)) == ["a", "d"]
