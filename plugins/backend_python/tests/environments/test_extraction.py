from __future__ import annotations

import logging
import stat
import sys
import tarfile
from pathlib import Path

import pytest

from tritonpy import Internal

from .archives import contents, link, tar_entry, unpack, write_tar, write_zip

Log = logging.LoggerAdapter[logging.Logger]


def test_dangerous_mode_bits_are_removed(tmp_path: Path, log: Log):
    folder = unpack(write_tar(tmp_path / "e.tgz", tar_entry("tool", b"x", mode=0o6755)), log)
    assert stat.S_IMODE((folder / "tool").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([tar_entry("/etc/evil", b"x")], r"'/etc/evil' is rejected: its path is absolute"),
        ([tar_entry("../evil", b"x")], r"its path contains '\.\.'"),
        ([tar_entry("lib/../../evil", b"x")], r"its path contains '\.\.'"),
        ([tar_entry("..", kind=tarfile.DIRTYPE)], r"its path contains '\.\.'"),
        ([tar_entry(".", b"x")], "it replaces the folder itself"),
        ([tar_entry("null", kind=tarfile.CHRTYPE)], "it is a device or pipe"),
        ([tar_entry("disk", kind=tarfile.BLKTYPE)], "it is a device or pipe"),
        ([tar_entry("pipe", kind=tarfile.FIFOTYPE)], "it is a device or pipe"),
        ([link("out", "..")], r"the link 'out' leads out of it"),
        ([link("out", "/etc/passwd")], r"the link 'out' leads out of it, to '/etc/passwd'"),
        ([link("lib/out", "../..")], r"the link 'lib/out' leads out of it"),
        ([link("a", "b/.."), link("b", "c"), link("c", "..")], "leads out of it"),
        ([link("bin/python", "/etc")], "the link 'bin/python' leads out of it, to '/etc'"),
        ([link("bin/pythonic", "/bin/sh")], "the link 'bin/pythonic' leads out of it"),
        ([link("lib/python3", "/bin/sh")], "the link 'lib/python3' leads out of it"),
        ([link("out", ".."), tar_entry("out/evil", b"x")], "'out' is a link or a file"),
        ([link("out", ".."), tar_entry("out/deep/evil", b"x")], "'out' is a link or a file"),
        ([link("out", ".."), tar_entry("out", kind=tarfile.DIRTYPE)], "'out' is a link or a file"),
        ([tar_entry("file", b"x"), tar_entry("file/evil", b"x")], "'file' is a link or a file"),
        ([tar_entry("d", kind=tarfile.DIRTYPE), link("d", "..")], "it replaces a folder"),
        ([tar_entry("hard", kind=tarfile.LNKTYPE, target="/etc/passwd")], "its path is absolute"),
        ([tar_entry("hard", kind=tarfile.LNKTYPE, target="../evil")], r"its path contains '\.\.'"),
        ([tar_entry("hard", kind=tarfile.LNKTYPE, target="none")], "'none', which is not an earlier file of the archive"),
        ([link("out", "/etc/passwd"), tar_entry("hard", kind=tarfile.LNKTYPE, target="out")], "which is not an earlier file"),
        ([link("out", "/etc"), tar_entry("hard", kind=tarfile.LNKTYPE, target="out/passwd")], "which is not an earlier file"),
    ],
)  # fmt: skip
def test_members_outside_of_the_folder_are_rejected(
    tmp_path: Path, log: Log, entries: list, reason: str
):
    (tmp_path / "evil").write_text("untouched")
    with pytest.raises(Internal, match=reason) as raised:
        unpack(write_tar(tmp_path / "e.tgz", *entries), log)
    assert f"Failed to extract {tmp_path / 'e.tgz'}: " in raised.value.message
    assert (tmp_path / "evil").read_text() == "untouched"


def test_a_link_in_a_zip_cannot_lead_out(tmp_path: Path, log: Log):
    path = write_zip(
        tmp_path / "e.zip",
        ("out", b"..", stat.S_IFLNK | 0o777),
        ("out/evil", b"x", stat.S_IFREG | 0o644),
    )
    with pytest.raises(Internal, match="'out' is a link or a file"):
        unpack(path, log)
    assert not (tmp_path / "evil").exists()


def test_a_repeated_member_replaces_the_first_and_follows_no_link(tmp_path: Path, log: Log):
    (tmp_path / "evil").write_text("untouched")
    entries = [
        link("a", "../evil"),
        tar_entry("a", b"second"),
        tar_entry("b", b"first"),
        tar_entry("b", b"second"),
    ]
    path = write_tar(tmp_path / "e.tgz", *entries)
    folder = tmp_path / "out"
    assert contents(unpack(path, log)) == {"a": "second", "b": "second"}
    assert not (folder / "a").is_symlink()
    assert (tmp_path / "evil").read_text() == "untouched"


def test_a_packed_virtual_environment_may_link_to_the_machines_interpreter(
    tmp_path: Path, log: Log
):
    path = write_tar(
        tmp_path / "e.tgz", link("bin/python3", sys.executable), link("bin/python", "python3")
    )
    assert (unpack(path, log) / "bin" / "python").samefile(sys.executable)
