from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest

from tritonpy import Internal
from tritonpy_backend_python.environments import archive as module

from .archives import contents, link, tar_entry, unpack, write_tar, write_zip

Log = logging.LoggerAdapter[logging.Logger]
FULL_DISK = """
import logging, sys
from pathlib import Path
from tritonpy import Internal
from tritonpy_backend_python.environments.archive import extract
folder = Path(sys.argv[2])
folder.mkdir()
try:
    with open(sys.argv[1], "rb") as file:
        extract(file, folder, logging.LoggerAdapter(logging.getLogger("x"), {}))
except Internal as error:
    print(error)
"""


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar_archives_of_any_name_are_extracted(tmp_path: Path, log: Log, mode: str):
    path = write_tar(
        tmp_path / "environment",
        tar_entry("./", kind=tarfile.DIRTYPE),
        tar_entry("./bin/tool", b"tool", mode=0o755),
        tar_entry("lib/a.py", b"a", mode=0o444),
        tar_entry("lib/empty", kind=tarfile.DIRTYPE),
        link("lib64", "lib"),
        link("bin/other", "../lib/a.py"),
        tar_entry("lib/b.py", kind=tarfile.LNKTYPE, target="lib/a.py"),
        mode=mode,
    )
    folder = unpack(path, log)
    assert contents(folder) == {
        "bin/tool": "tool",
        "lib/a.py": "a",
        "lib/b.py": "a",
        "bin/other": "a",
    }
    assert (folder / "lib" / "empty").is_dir()
    assert os.readlink(folder / "lib64") == "lib"
    assert (folder / "lib" / "b.py").samefile(folder / "lib" / "a.py")
    assert stat.S_IMODE((folder / "bin" / "tool").stat().st_mode) == 0o755
    assert (folder / "lib" / "a.py").stat().st_mtime == 1_600_000_000


def test_a_zip_is_extracted_with_its_links_and_modes(tmp_path: Path, log: Log):
    path = write_zip(
        tmp_path / "e.zip",
        ("bin/", b"", stat.S_IFDIR | 0o755),
        ("bin/tool", b"tool", stat.S_IFREG | 0o755),
        ("bin/link", b"tool", stat.S_IFLNK | 0o777),
        ("plain", b"no mode", 0),
    )
    folder = unpack(path, log)
    assert contents(folder) == {"bin/tool": "tool", "bin/link": "tool", "plain": "no mode"}
    assert os.readlink(folder / "bin" / "link") == "tool"
    assert stat.S_IMODE((folder / "bin" / "tool").stat().st_mode) == 0o755
    assert (folder / "bin" / "tool").stat().st_mtime == 1_600_000_000


def test_a_tar_that_ends_with_a_zip_is_a_tar(tmp_path: Path, log: Log):
    inner = write_zip(tmp_path / "inner", ("x", b"x", 0)).read_bytes()
    path = write_tar(tmp_path / "e.tar", tar_entry("lib/python.zip", inner), mode="w")
    assert (unpack(path, log) / "lib" / "python.zip").read_bytes() == inner


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x1f\x8b nothing", b"PK\x03\x04"])
def test_other_files_are_rejected(tmp_path: Path, log: Log, content: bytes):
    (tmp_path / "e.tar.gz").write_bytes(content)
    with pytest.raises(
        Internal, match=r"Failed to extract .*e\.tar\.gz: it is neither a tar archive, .* nor a zip"
    ):
        unpack(tmp_path / "e.tar.gz", log)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_truncated_archive_is_an_error(tmp_path: Path, log: Log, mode: str):
    path = write_tar(
        tmp_path / "e",
        tar_entry("a", os.urandom(100_000)),
        tar_entry("b", os.urandom(100_000)),
        mode=mode,
    )
    path.write_bytes(path.read_bytes()[:60_000])
    with pytest.raises(Internal, match="Failed to extract"):
        unpack(path, log)


def test_an_archive_that_changes_during_extraction_is_rejected(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
):
    path = write_tar(tmp_path / "e.tgz", tar_entry("a", b"a"))
    monkeypatch.setattr(module.Extraction, "check_links", lambda _self: os.utime(path))
    with pytest.raises(Internal, match="it changed during extraction; load the model again"):
        unpack(path, log)


def test_the_progress_of_an_extraction_is_logged(
    tmp_path: Path, log: Log, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    path = write_tar(tmp_path / "e.tgz", tar_entry("a", b"a"), tar_entry("b", b"b" * 2_000_000))
    unpack(path, log)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith(f"extracting {path} (0.0 MB) into {tmp_path / 'out'}")
    assert any(
        line.startswith(f"extracting {path}: ") and line.endswith(" %, 1 files") for line in lines
    )
    assert lines[-1].startswith(f"extracted {path}: 2 files, 2.0 MB, ")


def test_a_full_disk_is_reported_with_the_needed_space(tmp_path: Path):
    path = write_tar(
        tmp_path / "e.tgz", tar_entry("a", bytes(100_000)), tar_entry("b", bytes(3_400_000))
    )
    (tmp_path / "disk").mkdir()
    script = 'mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"'
    alone = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "bash",
        "-c",
        script,
        "mount",
        str(tmp_path / "disk"),
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs the right to mount a small disk")
    out = tmp_path / "disk" / "out"
    code = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(path), str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*alone, *code], capture_output=True, text=True, check=True, env=environment
    )
    assert (
        f"Failed to extract {path}: the disk of {out} is full: 3.5 MB are needed, 1.0 MB are free"
        in done.stdout
    )
    assert "environments-dir" in done.stdout
