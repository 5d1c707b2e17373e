"""`max_queue_delay` of a whole scheduler in simulated time: no batch runs early or late."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DELAY_NS = 500_000
LARGEST = 8
CONFIG = f"""
    max_batch_size: {LARGEST}
    dynamic_batching {{ preferred_batch_size: [4, 8] max_queue_delay_microseconds: {DELAY_NS // 1000} }}
"""


def run_batches(scheduler, times, free_from=0):
    """Queue a request at each of `times` and call `ready` at every relevant ns.

    Returns (run time, arrival of the oldest request, size) of each batch.
    """
    batches = []

    def take_all(now):
        while now >= free_from and scheduler.ready(0, now) is True:
            batch = scheduler.take(0, now)
            batches.append((now, batch.requests[0].queued_ns, len(batch.requests)))

    def sleep_until(now):
        """Advance to each wake-up time before `now` that the scheduler requests."""
        while (
            (wake := scheduler.ready(0, 0)) is not False
            and wake is not True
            and max(wake, free_from) < now
        ):
            take_all(max(wake, free_from))

    for time, make in times:
        sleep_until(time)
        take_all(time - 1)
        scheduler.enqueue(make(time))
        take_all(time)
    end = times[-1][0] + DELAY_NS + free_from
    sleep_until(end)
    take_all(end)
    return batches


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 2 * DELAY_NS), min_size=1, max_size=40))
def test_a_batch_below_its_preferred_size_runs_exactly_after_the_delay(
    scheduler_of, request_of, gaps
):
    times, now = [], 0
    for gap in gaps:
        now += gap
        times.append((now, lambda at: request_of(at=at)))
    batches = run_batches(scheduler_of(CONFIG), times)
    assert sum(size for _, _, size in batches) == len(gaps)
    for left, oldest, size in batches:
        if size != 4:
            assert left == oldest + DELAY_NS
        else:
            assert left <= oldest + DELAY_NS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(1, DELAY_NS // 4), min_size=1, max_size=40), st.integers(0, 8 * DELAY_NS)
)
def test_batches_grow_while_no_instance_is_free(scheduler_of, request_of, gaps, free_from):
    times, now = [], 0
    for gap in gaps:
        now += gap
        times.append((now, lambda at: request_of(at=at)))
    batches = run_batches(scheduler_of(CONFIG), times, free_from)
    assert sum(size for _, _, size in batches) == len(gaps)
    for left, oldest, size in batches:
        assert size in {4, LARGEST} or left >= oldest + DELAY_NS
