from __future__ import annotations

import pytest

from tritonpy_batching_dynamic.batch_window import BatchWindow
from tritonpy_batching_dynamic.queue_policy import QueuePolicy
from tritonpy_batching_dynamic.request_queue import RequestQueue


def by_shape(request):
    return request.inputs["IN"].shape[1:]


@pytest.fixture
def window_state(request_of):
    """Return a function that adds requests and returns the window's content.

    The content is (ids, sizes, oldest arrival, closed).
    """

    def window_state(window, queue, *specs):
        for name, fields in specs:
            queue.append(request_of(name, **fields))
        pending = window.update(queue)
        assert pending.rows == sum(pending.sizes)
        return (
            [each.id for each in pending.requests],
            list(pending.sizes),
            pending.oldest_ns,
            pending.closed,
        )

    return window_state


def test_the_window_grows_with_the_queue_up_to_the_maximum(window_state):
    window, queue = BatchWindow(4, None), RequestQueue(QueuePolicy())
    assert window_state(window, queue, ("a", {"at": 5})) == (["a"], [1], 5, False)
    assert window_state(window, queue, ("b", {"rows": 2}), ("c", {})) == (
        ["a", "b", "c"],
        [1, 2, 1],
        5,
        True,
    )
    assert window_state(window, queue, ("d", {})) == (["a", "b", "c"], [1, 2, 1], 5, True)


def test_a_request_that_does_not_fit_closes_the_window(window_state):
    window, queue = BatchWindow(4, None), RequestQueue(QueuePolicy())
    assert window_state(window, queue, ("a", {"rows": 3}), ("b", {"rows": 2}), ("c", {})) == (
        ["a"],
        [3],
        0,
        True,
    )


def test_another_key_closes_the_window(window_state):
    window, queue = BatchWindow(8, by_shape), RequestQueue(QueuePolicy())
    assert window_state(window, queue, ("a", {}), ("b", {})) == (["a", "b"], [1, 1], 0, False)
    assert window_state(window, queue, ("c", {"shape": (5,)}), ("d", {})) == (
        ["a", "b"],
        [1, 1],
        0,
        True,
    )
    queue.pop(2)
    assert window_state(window, queue) == (["c"], [1], 0, True)
    queue.pop(1)
    assert window_state(window, queue) == (["d"], [1], 0, False)


def test_the_window_restarts_after_a_batch_was_taken(window_state):
    window, queue = BatchWindow(2, None), RequestQueue(QueuePolicy())
    window_state(window, queue, ("a", {"at": 1}), ("b", {"at": 2}), ("c", {"at": 3}))
    queue.pop(2)
    assert window_state(window, queue) == (["c"], [1], 3, False)


def test_a_request_of_a_higher_level_comes_in_front(window_state):
    window, queue = BatchWindow(2, None), RequestQueue(QueuePolicy(), levels=2, default_level=2)
    assert window_state(window, queue, ("a", {"at": 1})) == (["a"], [1], 1, False)
    assert window_state(window, queue, ("b", {"at": 2, "priority": 1})) == (
        ["b", "a"],
        [1, 1],
        1,
        True,
    )


def test_the_oldest_request_is_one_inside_the_window(window_state):
    window, queue = BatchWindow(2, None), RequestQueue(QueuePolicy(), levels=2, default_level=2)
    specs = ("low", {"at": 1}), ("x", {"at": 2, "priority": 1}), ("y", {"at": 3, "priority": 1})
    assert window_state(window, queue, *specs) == (["x", "y"], [1, 1], 2, True)


def test_a_request_without_rows_counts_as_one(window_state):
    assert window_state(BatchWindow(4, None), RequestQueue(QueuePolicy()), ("a", {"rows": 0})) == (
        ["a"],
        [1],
        0,
        False,
    )
