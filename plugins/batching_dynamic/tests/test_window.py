from __future__ import annotations

import pytest

from tritonpy_batching_dynamic.queue_policy import QueuePolicy
from tritonpy_batching_dynamic.request_queue import RequestQueue
from tritonpy_batching_dynamic.window import Window


def by_shape(request):
    return request.inputs["IN"].shape[1:]


@pytest.fixture
def seen(request_of):
    """Return a function that adds requests and tells what the window then shows: names, sizes, rows, oldest, closed."""

    def seen(window, queue, *specs):
        for name, fields in specs:
            queue.append(request_of(name, **fields))
        pending = window.look(queue)
        assert pending.rows == sum(pending.sizes)
        return [each.id for each in pending.requests], list(pending.sizes), pending.oldest_ns, pending.closed

    return seen


def test_it_grows_with_the_queue_up_to_the_maximum(seen):
    window, queue = Window(4, None), RequestQueue(QueuePolicy())
    assert seen(window, queue, ("a", {"at": 5})) == (["a"], [1], 5, False)
    assert seen(window, queue, ("b", {"rows": 2}), ("c", {})) == (["a", "b", "c"], [1, 2, 1], 5, True)
    assert seen(window, queue, ("d", {})) == (["a", "b", "c"], [1, 2, 1], 5, True)


def test_a_request_that_is_too_large_closes_it(seen):
    window, queue = Window(4, None), RequestQueue(QueuePolicy())
    assert seen(window, queue, ("a", {"rows": 3}), ("b", {"rows": 2}), ("c", {})) == (["a"], [3], 0, True)


def test_another_key_closes_it(seen):
    window, queue = Window(8, by_shape), RequestQueue(QueuePolicy())
    assert seen(window, queue, ("a", {}), ("b", {})) == (["a", "b"], [1, 1], 0, False)
    assert seen(window, queue, ("c", {"shape": (5,)}), ("d", {})) == (["a", "b"], [1, 1], 0, True)
    queue.pop(2)
    assert seen(window, queue) == (["c"], [1], 0, True)
    queue.pop(1)
    assert seen(window, queue) == (["d"], [1], 0, False)


def test_it_starts_again_after_a_batch_was_cut(seen):
    window, queue = Window(2, None), RequestQueue(QueuePolicy())
    seen(window, queue, ("a", {"at": 1}), ("b", {"at": 2}), ("c", {"at": 3}))
    queue.pop(2)
    assert seen(window, queue) == (["c"], [1], 3, False)


def test_a_request_of_a_higher_level_comes_in_front(seen):
    window, queue = Window(2, None), RequestQueue(QueuePolicy(), levels=2, default_level=2)
    assert seen(window, queue, ("a", {"at": 1})) == (["a"], [1], 1, False)
    assert seen(window, queue, ("b", {"at": 2, "priority": 1})) == (["b", "a"], [1, 1], 1, True)


def test_the_oldest_is_looked_for_only_among_those_inside(seen):
    window, queue = Window(2, None), RequestQueue(QueuePolicy(), levels=2, default_level=2)
    specs = ("low", {"at": 1}), ("x", {"at": 2, "priority": 1}), ("y", {"at": 3, "priority": 1})
    assert seen(window, queue, *specs) == (["x", "y"], [1, 1], 2, True)


def test_a_request_without_rows_counts_as_one(seen):
    assert seen(Window(4, None), RequestQueue(QueuePolicy()), ("a", {"rows": 0})) == (["a"], [1], 0, False)
