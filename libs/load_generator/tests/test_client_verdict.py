from __future__ import annotations

from tritonpy_load_generator.figures.client_verdict import client_warnings
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.figures.snapshot import Snapshot

MS = 1_000_000


def snapshot(**more):
    return Snapshot(
        **{
            "begin_ns": 0,
            "end_ns": 1000 * MS,
            "started": 100,
            "latency": make_histogram([10 * MS] * 100),
            **more,
        }
    )


def test_an_idle_client_that_keeps_its_rate_has_no_warnings():
    assert client_warnings(snapshot(busiest=0.3), 100) == []
    assert client_warnings(snapshot(busiest=0.3), None) == []


def test_a_busy_client_is_reported_as_the_bottleneck():
    [text] = client_warnings(snapshot(busiest=0.95), None)
    assert text.startswith("the client was the bottleneck: its busiest process used 95% of a core")


def test_a_starved_client_is_reported():
    [text] = client_warnings(snapshot(starved=0.2), None)
    assert "ready to run but had no processor for 20% of the time" in text
    assert client_warnings(snapshot(starved=0.05), None) == []


def test_a_rate_that_was_not_reached_is_reported_with_its_cause():
    [text] = client_warnings(snapshot(), 200)
    assert text == "only 100 of 200 requests/s were sent: the client could not start them in time"
    [text] = client_warnings(snapshot(unsent=7), 200)
    assert "7 wait for a free connection or sequence" in text


def test_lateness_of_the_generator_is_reported_if_it_matters():
    [text] = client_warnings(snapshot(late=make_histogram([0] * 90 + [4 * MS] * 10)), 100)
    assert "the generator itself was late: 1 % of the requests by more than 4.00 ms" in text
    assert client_warnings(snapshot(late=make_histogram([MS // 10] * 100)), 100) == []
    slow = snapshot(late=make_histogram([MS] * 100), latency=make_histogram([1000 * MS] * 100))
    assert client_warnings(slow, 100) == []
