from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from core.tests.toys.device import ToyDevice
from tritonpy.api.device import NoDevice
from tritonpy.api.engine import MemoryUsage
from tritonpy_workers.process_memory import PROC, process_memory, resident_bytes

MIB = 1 << 20
NO_PROCESS = 2**22 + 1  # more than the number of processes


def proc(folder: Path, **files: str) -> Path:
    (folder / "7").mkdir()
    for name, text in files.items():
        (folder / "7" / name).write_text(text)
    return folder


ROLLUP = (
    "55bb-7ffc ---p 00000000 00:00 0   [rollup]\nRss:   5000 kB\nPss:    3000 kB\nPss_Anon:  1 kB\n"
)


def test_shared_pages_count_in_part(tmp_path: Path) -> None:
    assert (
        resident_bytes(7, proc(tmp_path, smaps_rollup=ROLLUP, statm="9 9 9 9 9 9 9\n"))
        == 3000 * 1024
    )


@pytest.mark.parametrize(
    "files", [{}, {"smaps_rollup": ""}], ids=["no parts", "a process that ends"]
)
def test_without_the_parts_shared_pages_count_in_full(
    tmp_path: Path, files: dict[str, str]
) -> None:
    found = resident_bytes(7, proc(tmp_path, statm="100 25 3 1 0 9 0\n", **files))
    assert found == 25 * os.sysconf("SC_PAGE_SIZE")


def test_the_memory_of_a_dead_process_is_unknown(tmp_path: Path) -> None:
    assert resident_bytes(7, tmp_path) is None
    assert resident_bytes(NO_PROCESS) is None


@pytest.mark.skipif(not (PROC / "self" / "statm").exists(), reason="needs /proc")
def test_resident_bytes_match_the_process() -> None:
    before = resident_bytes(os.getpid())
    with mmap.mmap(-1, 64 * MIB, mmap.MAP_PRIVATE) as memory:
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        grown = resident_bytes(os.getpid())
    assert before is not None
    assert grown is not None
    assert 50 * MIB < grown - before < 80 * MIB


def test_host_memory_is_measured_and_other_memory_reported_by_the_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported = [MemoryUsage("CPU", 0, 1), MemoryUsage("CPU_PINNED", 0, 2), MemoryUsage("GPU", 3, 4)]
    monkeypatch.setattr("tritonpy_workers.process_memory.resident_bytes", lambda pid: 1000 + pid)
    assert list(process_memory(7, reported, NoDevice())) == [
        MemoryUsage("CPU", 0, 1007),
        *reported[1:],
    ]


def test_gpu_memory_not_reported_by_the_backend_comes_from_the_driver() -> None:
    gpus = ToyDevice()
    gpus.by_process = {0: 9, 1: 5}
    by_driver = [MemoryUsage("GPU", 0, 9), MemoryUsage("GPU", 1, 5)]
    assert list(process_memory(NO_PROCESS, [], gpus)) == by_driver
    assert list(process_memory(NO_PROCESS, [MemoryUsage("CPU_PINNED", 0, 2)], gpus)) == [
        MemoryUsage("CPU_PINNED", 0, 2),
        *by_driver,
    ]
    reported = [MemoryUsage("GPU", 1, 3)]
    assert list(process_memory(NO_PROCESS, reported, gpus)) == reported


def test_without_a_measurement_the_backends_report_is_used() -> None:
    reported = [MemoryUsage("CPU", 0, 1), MemoryUsage("GPU", 3, 4)]
    assert list(process_memory(NO_PROCESS, reported, NoDevice())) == reported
