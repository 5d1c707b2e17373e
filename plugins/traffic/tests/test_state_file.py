from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tritonpy import Internal, StartupError
from tritonpy_traffic.canary import CanaryState
from tritonpy_traffic.spec import Canary, RouteSpec, Shadow, Sticky, Tolerance, WeightedTarget
from tritonpy_traffic.state_file import Kept, KeptCanary, KeptRoute, StateFile

SPEC = RouteSpec(
    [WeightedTarget("a", 1, 0.5)],
    Sticky(parameter="p"),
    Canary("b", 2),
    Shadow("c", tolerances={"OUT": Tolerance(1, 2)}),
)
KEPT = Kept(
    7, {"one": KeptRoute(SPEC, None, KeptCanary(CanaryState.ROLLED_BACK, 2, "too slow")), "gone": KeptRoute(None, SPEC)}
)


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "routes.json")
    assert file.load() == Kept()
    file.save(KEPT)
    assert file.load() == KEPT
    assert [path.name for path in tmp_path.iterdir()] == ["routes.json"]


def test_without_a_path_nothing_is_kept() -> None:
    StateFile(None).save(KEPT)
    assert StateFile(None).load() == Kept()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"routes": {"a": 1}}',
        b'{"format": 9}',
        b'{"routes": {"a": {"spec": {"targets": [{"model": "b"}]}, "canary": {"state": "odd", "step": 0}}}}',
        b'{"routes": {"a": {"spec": {"targets": [{"model": "b"}]}, "canary": {"state": "running", "step": -1}}}}',
        b'{"routes": {"a": {"spec": {"targets": [{"model": "b", "weight": 0}]}}}}',
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "routes.json"
    path.write_bytes(content)
    with pytest.raises(StartupError, match=r"routes\.json cannot be read: .* Repair the file, or remove it"):
        StateFile(path).load()


def test_a_folder_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"there is no folder .*nowhere"):
        StateFile(tmp_path / "nowhere" / "routes.json").load()


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = StateFile(tmp_path / "routes.json")
    file.save(KEPT)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Internal, match=r"the routes are changed, but they cannot be kept in .* No space left"):
        file.save(Kept(8))
    assert [path.name for path in tmp_path.iterdir()] == ["routes.json"]
    assert file.load() == KEPT


def test_a_file_that_cannot_be_written_is_told_and_the_old_one_stays(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "folder" / "routes.json")
    with pytest.raises(Internal, match="cannot be kept"):
        file.save(KEPT)
    (tmp_path / "folder").mkdir()
    file.save(KEPT)
    (tmp_path / "folder" / f"routes.json.{os.getpid()}.part").mkdir()
    with pytest.raises(Internal):
        file.save(Kept(8))
    assert file.load() == KEPT
