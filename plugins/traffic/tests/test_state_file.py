from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tritonpy import Internal, StartupError
from tritonpy_traffic.canary import CanaryState
from tritonpy_traffic.spec import Canary, RouteSpec, Shadow, Sticky, Tolerance, WeightedTarget
from tritonpy_traffic.state_file import SavedCanary, SavedRoute, SavedState, StateFile

SPEC = RouteSpec(
    [WeightedTarget("a", 1, 0.5)],
    Sticky(parameter="p"),
    Canary("b", 2),
    Shadow("c", tolerances={"OUT": Tolerance(1, 2)}),
)
SAVED = SavedState(
    7,
    {
        "one": SavedRoute(SPEC, None, SavedCanary(CanaryState.ROLLED_BACK, 2, "too slow")),
        "gone": SavedRoute(None, SPEC),
    },
)


def test_saved_routes_are_loaded(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "routes.json")
    assert file.load() == SavedState()
    file.save(SAVED)
    assert file.load() == SAVED
    assert [path.name for path in tmp_path.iterdir()] == ["routes.json"]


def test_without_a_path_nothing_is_saved() -> None:
    StateFile(None).save(SAVED)
    assert StateFile(None).load() == SavedState()


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
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "routes.json"
    path.write_bytes(content)
    with pytest.raises(
        StartupError,
        match=r"cannot read routes of .*routes\.json: .* Repair the file, or remove it",
    ):
        StateFile(path).load()


def test_a_missing_folder_fails_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"missing folder .*nowhere"):
        StateFile(tmp_path / "nowhere" / "routes.json").load()


def test_a_full_disk_is_reported_and_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = StateFile(tmp_path / "routes.json")
    file.save(SAVED)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        Internal, match=r"the routes are changed, but cannot be saved in .* No space left"
    ):
        file.save(SavedState(8))
    assert [path.name for path in tmp_path.iterdir()] == ["routes.json"]
    assert file.load() == SAVED


def test_a_failed_write_is_reported_and_the_old_file_stays(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "folder" / "routes.json")
    with pytest.raises(Internal, match="cannot be saved"):
        file.save(SAVED)
    (tmp_path / "folder").mkdir()
    file.save(SAVED)
    (tmp_path / "folder" / f"routes.json.{os.getpid()}.part").mkdir()
    with pytest.raises(Internal):
        file.save(SavedState(8))
    assert file.load() == SAVED
