from __future__ import annotations

import threading

from tritonpy_backend_trt.completion_thread import CompletionThread


def test_executions_are_finished_in_order_on_a_separate_thread():
    seen = []

    def record(what):
        seen.append((what, threading.current_thread().name))

    completions = CompletionThread("responses", lambda: record("begin"), record)
    for number in range(3):
        completions.put(number)
    completions.close()
    assert seen == [(what, "responses") for what in ("begin", 0, 1, 2)]


def test_close_may_be_repeated():
    completions = CompletionThread("responses", lambda: None, lambda _flight: None)
    completions.close()
    completions.close()
