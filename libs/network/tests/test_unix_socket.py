from __future__ import annotations

import contextlib
import os
import re
import socket
import threading

import pytest

from tritonpy import StartupError
from tritonpy_network.unix_socket import UnixSocket, unix_path


@contextlib.contextmanager
def listening(file):
    with file.listen(16) as listener:
        yield listener


def refused(file, text):
    with (
        pytest.raises(StartupError, match=re.escape(f"cannot listen on unix:{file.path}: {text}")),
        listening(file),
    ):
        pass


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("unix:/run/a.sock", "/run/a.sock"),
        ("unix:///run/a.sock", "/run/a.sock"),
        ("unix:/run/../b", "/b"),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("unixhost", ""),
    ],
)
def test_unix_addresses_have_a_path(host, path):
    assert unix_path(host) == path


def test_a_relative_path_is_one_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert unix_path("unix:a.sock") == str(tmp_path / "a.sock")


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_a_socket_is_created_with_its_mode_and_other_files_keep_theirs(tmp_path, mode):
    before = os.umask(0o022)
    try:
        file = UnixSocket(str(tmp_path / "a"), mode)
        with listening(file):
            assert os.stat(file.path).st_mode & 0o777 == mode
            (tmp_path / "b").touch()
            assert (tmp_path / "b").stat().st_mode & 0o777 == 0o644
        file.remove()
        assert not os.path.exists(file.path)
    finally:
        os.umask(before)


def test_the_file_of_a_dead_server_is_replaced(tmp_path):
    path = str(tmp_path / "a")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    with listening(UnixSocket(path, 0o600)), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def test_the_socket_of_a_live_server_is_kept(tmp_path):
    file = UnixSocket(str(tmp_path / "a"), 0o600)
    with listening(file), socket.socket(socket.AF_UNIX) as client:
        refused(
            UnixSocket(file.path, 0o600),
            "another server listens there; stop it or choose another path",
        )
        client.connect(file.path)


def test_another_file_is_kept(tmp_path):
    (tmp_path / "a").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for name in ("a", "link"):
        refused(UnixSocket(str(tmp_path / name), 0o600), "the path exists and is not a socket")
    assert (tmp_path / "a").read_text() == "precious"


def test_a_missing_folder_is_named(tmp_path):
    refused(UnixSocket(str(tmp_path / "nowhere" / "a"), 0o600), "No such file or directory")


def test_a_path_that_is_too_long_is_named(tmp_path):
    refused(UnixSocket(str(tmp_path / ("a" * 110)), 0o600), "AF_UNIX path too long")


def test_a_replaced_socket_is_kept(tmp_path):
    mine = UnixSocket(str(tmp_path / "a"), 0o600)
    with listening(mine):
        os.unlink(mine.path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(mine.path)
            mine.remove()
            assert os.path.exists(mine.path)


def test_remove_works_without_a_socket(tmp_path):
    UnixSocket(str(tmp_path / "a"), 0o600).remove()


def test_only_one_of_many_starting_servers_gets_the_socket(tmp_path):
    path, count = str(tmp_path / "a"), 12
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    barrier, found, listeners = threading.Barrier(count), [], []

    def start():
        listener = socket.socket(socket.AF_UNIX)
        listeners.append(listener)
        barrier.wait()
        try:
            with UnixSocket(path, 0o600).claimed():
                listener.bind(path)
                listener.listen()
            found.append("listens")
        except StartupError as error:
            found.append(str(error).partition(": ")[2][:14])

    threads = [threading.Thread(target=start) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for listener in listeners:
        listener.close()
    assert sorted(found) == ["another server"] * (count - 1) + ["listens"]


def test_a_claimed_socket_is_reachable_and_removed_with_the_claim(tmp_path):
    claimed = UnixSocket(str(tmp_path / "a"), 0o600).claim(16)
    assert claimed.claim.address == f"unix:{tmp_path / 'a'}"
    assert not claimed.claim.listening.getblocking()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(tmp_path / "a"))
    claimed.close()
    assert claimed.claim.listening.fileno() == -1
    assert not (tmp_path / "a").exists()
