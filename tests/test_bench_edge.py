"""The benchmark of small servers: its tables. Install sizes are measured manually."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.edge import BACKENDS, Figures, measure, parts, repository, table

MIB = 1 << 20


def test_every_backend_has_a_line_with_its_size() -> None:
    figures = {
        name: Figures({name: 60 * MIB, "numpy": 40 * MIB}, 1.5, 90 * MIB, 95 * MIB)
        for name in BACKENDS
    }
    _head, _rule, *lines = table(figures)
    assert lines[0] == "| onnxruntime | 100 MiB | 60 MiB | 1.5 s | 90 MiB | 95 MiB |"
    assert len(lines) == len(BACKENDS)


def test_the_largest_parts_are_listed_and_the_rest_is_summed() -> None:
    sizes = {f"part{number}": number * MIB for number in range(1, 15)}
    head, first, *_, rest = parts("onnxruntime", sizes)
    assert head == "onnxruntime: 14 distributions"
    assert first.split() == ["14.0", "MiB", "part14"]
    assert rest.split() == ["3.0", "MiB", "2", "others"]


def test_a_server_of_this_environment_is_measured(tmp_path: Path) -> None:
    figures = measure(
        Path(sys.executable), repository(tmp_path, "onnxruntime"), rounds=1, requests=3
    )
    assert figures.sizes["onnxruntime"] > 10 * MIB
    assert 0 < figures.ready_bytes <= figures.used_bytes
    assert figures.ready_s > 0
