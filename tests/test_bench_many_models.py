"""The benchmark of a server with many models still runs, and idle models hold no thread; its times mean nothing here."""

from __future__ import annotations

from bench.many_models import measure

MODELS = 50
THREADS = 24  # the event loop's, those of loads and executions; without the pools there are two for each model


def test_idle_models_own_no_thread() -> None:
    few, many = measure(1, small_model_threads=0), measure(MODELS, small_model_threads=0)
    assert many.threads <= few.threads + THREADS
    assert many.threads_after_requests <= few.threads + THREADS
    assert (many.exit_status, many.models) == (0, MODELS)
    assert f"| models | {MODELS} |" in many.table()
