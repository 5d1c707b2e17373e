from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tritonpy_backend_llamacpp import tritonpy_backend_folders

sys.path.insert(0, str(tritonpy_backend_folders()["llamacpp"]))
from tritonpy_llamacpp import settings


@pytest.mark.parametrize(
    ("cores", "quota", "idle", "threads"),
    [
        (8, None, 8.0, 8),
        (8, None, 5.4, 5),
        (8, None, 0.2, 4),  # at least half of them
        (8, 4.0, 8.0, 4),  # the limit of the container
        (8, 0.5, 8.0, 1),
        (1, None, 0.0, 1),
        (2, None, 31.0, 2),  # idle cores that the process may not use
    ],
)
def test_threads_default_to_the_free_cores(monkeypatch, cores, quota, idle, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.setattr(settings, "_cpu_quota", lambda: quota)
    monkeypatch.setattr(settings, "_idle_cores", lambda: idle)
    assert settings.free_cores() == threads


def test_idle_cores_are_measured_now():
    before = settings._idle_cores()
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        found = min(settings._idle_cores() for _ in range(10))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert 0 <= before <= (os.cpu_count() or 1) + 1
    assert found < 0.5
