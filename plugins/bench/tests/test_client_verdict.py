from __future__ import annotations

from tritonpy_bench.figures.client_verdict import client_complaints
from tritonpy_bench.figures.histogram import histogram
from tritonpy_bench.figures.snapshot import Snapshot

MS = 1_000_000


def snapshot(**more):
    return Snapshot(
        **{"begin_ns": 0, "end_ns": 1000 * MS, "started": 100, "latency": histogram([10 * MS] * 100), **more}
    )


def test_an_idle_client_that_keeps_its_rate_is_not_to_blame():
    assert client_complaints(snapshot(busiest=0.3), 100) == []
    assert client_complaints(snapshot(busiest=0.3), None) == []


def test_a_busy_client_says_that_it_was_the_bottleneck():
    [text] = client_complaints(snapshot(busiest=0.95), None)
    assert text.startswith("the client was the bottleneck: its busiest process used 95% of a core")


def test_a_client_without_a_processor_says_that_the_machine_was_too_busy():
    [text] = client_complaints(snapshot(starved=0.2), None)
    assert "ready to run and had no processor for 20% of the time" in text
    assert client_complaints(snapshot(starved=0.05), None) == []


def test_a_rate_that_was_not_reached_is_told_with_its_cause():
    [text] = client_complaints(snapshot(), 200)
    assert text == "only 100 of 200 requests/s were sent: the client could not start them in time"
    [text] = client_complaints(snapshot(unsent=7), 200)
    assert "7 wait for a free connection or sequence" in text


def test_lateness_of_the_generator_itself_is_told_where_it_matters():
    [text] = client_complaints(snapshot(late=histogram([0] * 90 + [4 * MS] * 10)), 100)
    assert "the generator itself was late: 1 % of the requests by more than 4.00 ms" in text
    assert client_complaints(snapshot(late=histogram([MS // 10] * 100)), 100) == []
    slow = snapshot(late=histogram([MS] * 100), latency=histogram([1000 * MS] * 100))
    assert client_complaints(slow, 100) == []
