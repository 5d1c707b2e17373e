from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tritonpy_backend_python.environments import digests as module
from tritonpy_backend_python.environments.digests import Digests


@pytest.fixture
def digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Digests:
    monkeypatch.setattr(module, "_WORTH_REMEMBERING", 10)
    return Digests(tmp_path / "cache" / "digests")


def test_a_digest_is_of_the_content(tmp_path: Path, digests: Digests):
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").write_bytes(b"content")
    assert (
        digests.of(tmp_path / "a")
        == digests.of(tmp_path / "b")
        == hashlib.sha256(b"content").hexdigest()
    )


def test_a_large_file_is_read_once(
    tmp_path: Path, digests: Digests, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "large").write_bytes(b"x" * 100)
    first = digests.of(tmp_path / "large")
    monkeypatch.setattr(module, "_read", lambda _file: pytest.fail("the value is cached"))
    assert digests.of(tmp_path / "large") == first


@pytest.mark.parametrize("replace", [True, False], ids=["another file", "the same file"])
def test_a_change_with_equal_size_and_time_is_detected(
    tmp_path: Path, digests: Digests, replace: bool
):
    path = tmp_path / "large"
    path.write_bytes(b"x" * 100)
    os.utime(path, (1, 1))
    first = digests.of(path)
    other = tmp_path / "other" if replace else path
    other.write_bytes(b"y" * 100)
    os.utime(other, (1, 1))
    other.rename(path)
    assert digests.of(path) != first
    assert digests.of(path) == hashlib.sha256(b"y" * 100).hexdigest()


def test_a_damaged_cache_entry_is_ignored(tmp_path: Path, digests: Digests):
    (tmp_path / "large").write_bytes(b"x" * 100)
    first = digests.of(tmp_path / "large")
    for memory in (tmp_path / "cache" / "digests").iterdir():
        memory.write_text('{"state": [')
    assert digests.of(tmp_path / "large") == first


def test_an_unwritable_cache_is_ignored(tmp_path: Path, digests: Digests):
    (tmp_path / "cache").touch()
    (tmp_path / "large").write_bytes(b"x" * 100)
    assert digests.of(tmp_path / "large") == hashlib.sha256(b"x" * 100).hexdigest()


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ("src/a.py", True),
        ("src/new.py", True),
        ("build/x.py", False),
        ("x.egg-info/PKG", False),
        (".git/HEAD", False),
    ],
)
def test_the_digest_of_a_folder_ignores_build_artifacts(
    tmp_path: Path, digests: Digests, change: str, counts: bool
):
    (tmp_path / "package" / "src").mkdir(parents=True)
    (tmp_path / "package" / "src" / "a.py").write_text("a = 1")
    (tmp_path / "package" / "broken").symlink_to("nowhere")
    first = digests.of(tmp_path / "package")
    (tmp_path / "package" / change).parent.mkdir(exist_ok=True)
    (tmp_path / "package" / change).write_text("a = 2")
    assert (digests.of(tmp_path / "package") != first) == counts
