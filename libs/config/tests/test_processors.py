from __future__ import annotations

import os

import pytest

from tritonpy_config.processors import available_processors, default_threads, processor_quota


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))


@pytest.mark.parametrize(
    ("files", "quota", "cores", "threads"),
    [
        ({"cpu.max": "200000 100000"}, 2.0, 2, 2),
        ({"cpu.max": "50000 100000\n"}, 0.5, 1, 1),
        ({"cpu.max": "1600000 100000"}, 16.0, 8, 8),
        ({"cpu.max": "max 100000"}, None, 8, 0),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3.0, 3, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None, 8, 0),
        ({}, None, 8, 0),
    ],
)
def test_the_quota_of_a_container_limits_the_threads(
    tmp_path, eight_cores, files, quota, cores, threads
):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert processor_quota(tmp_path) == quota
    assert available_processors(tmp_path) == cores
    assert default_threads(tmp_path) == threads
