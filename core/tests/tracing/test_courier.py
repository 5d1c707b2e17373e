from __future__ import annotations

import threading

from tritonpy.tracing.courier import Courier


def test_errands_run_in_order_on_a_thread_of_their_own():
    courier, ran = Courier(), []
    for number in range(20):
        courier.send(lambda number=number: ran.append((number, threading.current_thread().name)))
    assert courier.close()
    assert ran == [(number, "traces") for number in range(20)]


def test_without_an_errand_there_is_no_thread():
    before = set(threading.enumerate())
    courier = Courier()
    assert courier.close()
    assert set(threading.enumerate()) <= before


def test_an_errand_that_fails_is_logged_and_the_next_one_runs(caplog):
    courier, ran = Courier(), []
    courier.send(lambda: 1 / 0)
    courier.send(lambda: ran.append(1))
    courier.close()
    assert ran == [1]
    assert [record.getMessage() for record in caplog.records] == ["a trace is lost"]


def test_too_many_errands_are_lost_without_waiting_and_logged_once(caplog):
    courier, ran, started, go = Courier(most=2), [], threading.Event(), threading.Event()

    def hold():
        started.set()
        assert go.wait(20)

    courier.send(hold)
    assert started.wait(20)
    for number in range(10):
        courier.send(lambda number=number: ran.append(number))
    go.set()
    assert courier.close()
    assert ran == [0, 1]
    assert [record.getMessage() for record in caplog.records] == [
        "traces are lost: they come faster than they can be written"
    ]


def test_an_errand_that_never_ends_does_not_keep_the_server(monkeypatch, caplog):
    monkeypatch.setattr("tritonpy.tracing.courier._CLOSE_S", 0.01)
    courier, go = Courier(), threading.Event()
    courier.send(lambda: go.wait(20))
    assert not courier.close()
    assert "could not be written" in caplog.text
    go.set()
    courier._thread.join(20)


def test_after_the_end_nothing_runs():
    courier, ran = Courier(), []
    courier.close()
    courier.send(lambda: ran.append(1))
    assert ran == []
