"""The machine is described by what this process may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_checks import machine
from tritonpy_checks.machine import read_kernel_file, size_text, this_machine


def test_a_container_limits_cores_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "memory.max").write_text("1048576\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert this_machine().cores == 1
    assert this_machine().memory == 1 << 20
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert this_machine().memory > 1 << 20


def test_gpus_are_those_that_are_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("0000:01", "0000:02"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(machine, "_NVIDIA", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert this_machine().gpus == (0, 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert this_machine().gpus == (0,)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert this_machine().gpus == ()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 20, "1 MiB"), (5 << 40, "5120 GiB")],
)
def test_sizes_are_texts(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_file_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert read_kernel_file(tmp_path / "none") == ""
