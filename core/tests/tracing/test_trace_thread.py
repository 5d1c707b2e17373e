from __future__ import annotations

import threading

from tritonpy.tracing.trace_thread import TraceThread


def test_tasks_run_in_order_in_their_own_thread():
    thread, ran = TraceThread(), []
    for number in range(20):
        thread.send(lambda number=number: ran.append((number, threading.current_thread().name)))
    assert thread.close()
    assert ran == [(number, "traces") for number in range(20)]


def test_no_thread_starts_without_a_task():
    before = set(threading.enumerate())
    thread = TraceThread()
    assert thread.close()
    assert set(threading.enumerate()) <= before


def test_a_failing_task_is_logged_and_the_next_one_runs(caplog):
    thread, ran = TraceThread(), []
    thread.send(lambda: 1 / 0)
    thread.send(lambda: ran.append(1))
    thread.close()
    assert ran == [1]
    assert [record.getMessage() for record in caplog.records] == ["a trace is lost"]


def test_excess_tasks_are_lost_immediately_and_logged_once(caplog):
    thread, ran, started, go = TraceThread(max_waiting=2), [], threading.Event(), threading.Event()

    def hold():
        started.set()
        assert go.wait(20)

    thread.send(hold)
    assert started.wait(20)
    for number in range(10):
        thread.send(lambda number=number: ran.append(number))
    go.set()
    assert thread.close()
    assert ran == [0, 1]
    assert [record.getMessage() for record in caplog.records] == [
        "traces are lost: they arrive faster than they can be written"
    ]


def test_a_task_that_never_ends_does_not_block_close(monkeypatch, caplog):
    monkeypatch.setattr("tritonpy.tracing.trace_thread._CLOSE_S", 0.01)
    thread, go = TraceThread(), threading.Event()
    thread.send(lambda: go.wait(20))
    assert not thread.close()
    assert "could not be written" in caplog.text
    go.set()
    thread._thread.join(20)


def test_no_task_runs_after_close():
    thread, ran = TraceThread(), []
    thread.close()
    thread.send(lambda: ran.append(1))
    assert ran == []
