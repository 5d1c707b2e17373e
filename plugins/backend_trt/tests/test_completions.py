from __future__ import annotations

import threading

from tritonpy_backend_trt.completions import Completions


def test_flights_are_finished_in_their_order_on_a_thread_of_their_own():
    seen = []

    def note(what):
        seen.append((what, threading.current_thread().name))

    completions = Completions("answers", lambda: note("begin"), note)
    for number in range(3):
        completions.put(number)
    completions.close()
    assert seen == [(what, "answers") for what in ("begin", 0, 1, 2)]


def test_closing_twice_is_fine():
    completions = Completions("answers", lambda: None, lambda _flight: None)
    completions.close()
    completions.close()
