"""Processor and memory shares, of the machine or of a container's limits."""

from __future__ import annotations

import time

import pytest

from tritonpy_load_reports import MachineLoad


@pytest.fixture
def files(tmp_path):
    def write(**contents):
        for name, text in contents.items():
            (tmp_path / name.replace("_", ".", 1)).write_text(text)

    write(stat="cpu  100 0 100 800 0 0 0 0\n", meminfo="MemTotal: 1000 kB\nMemAvailable: 250 kB\n")
    return tmp_path, write


def test_the_machine_without_limits(files):
    folder, write = files
    load = MachineLoad(folder / "none", folder)
    write(stat="cpu  150 0 125 825 0 0 0 0\n")
    assert load.cpu() == 0.75
    assert load.cpu() == 0.0
    assert load.memory() == 0.75


def test_the_limits_of_a_container(files, monkeypatch):
    folder, write = files
    times = iter([10.0, 12.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    write(
        cpu_max="50000 100000",
        cpu_stat="usage_usec 1000000\n",
        memory_max="400",
        memory_current="100",
    )
    load = MachineLoad(folder, folder)
    write(cpu_stat="usage_usec 1500000\n")
    assert load.cpu() == 0.5
    assert load.memory() == 0.25
    write(memory_max="max")
    assert load.memory() == 0.75


def test_an_unreadable_system_has_no_load(tmp_path):
    load = MachineLoad(tmp_path, tmp_path)
    assert (load.cpu(), load.memory()) == (0.0, 0.0)
