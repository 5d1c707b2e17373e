from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy import devices


@pytest.mark.parametrize(
    ("present", "chosen", "visible"),
    [
        (0, None, []),
        (2, None, [0, 1]),
        (4, "2,3", [0, 1]),
        (4, "", []),
        (4, "-1", []),
        (1, "0,1", [0]),
        (2, "GPU-1b2c", [0]),
        (0, "0", []),
    ],
)
def test_gpus_are_counted_as_frameworks_do(
    monkeypatch: pytest.MonkeyPatch, present: int, chosen: str | None, visible: list[int]
) -> None:
    monkeypatch.setattr(Path, "glob", lambda path, pattern: iter(range(present)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert devices.visible_gpus() == visible
