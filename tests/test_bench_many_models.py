"""Smoke test of the benchmark with many models; idle models must hold no thread."""

from __future__ import annotations

from bench.many_models import measure

MODELS = 50
THREADS = 24  # threads of the event loop, of loads and of executions; without the pools each model has two


def test_idle_models_own_no_thread() -> None:
    few, many = measure(1, small_model_threads=0), measure(MODELS, small_model_threads=0)
    assert many.threads <= few.threads + THREADS
    assert many.threads_after_requests <= few.threads + THREADS
    assert (many.exit_status, many.models) == (0, MODELS)
    assert f"| models | {MODELS} |" in many.table()
