"""Unix domain sockets as addresses of frontends: `unix:/run/tritonpy.sock`."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator

from tritonpy.api.claim import Claim, Claimed
from tritonpy.errors import StartupError

_PREFIX = "unix:"


def unix_path(host: str) -> str:
    """Return the path of an address `unix:/path` or `unix:///path`, "" where `host` is no such address."""
    if not host.startswith(_PREFIX):
        return ""
    return os.path.abspath(host.removeprefix(_PREFIX).removeprefix("//"))


class UnixSocket:
    """The file of a socket that this process listens on; `mode` is its permission bits."""

    def __init__(self, path: str, mode: int) -> None:
        self.path = path
        self._mode = mode
        self._made: tuple[int, int] | None = None

    @property
    def address(self) -> str:
        """How clients name it; gRPC's clients take it as a target."""
        return _PREFIX + self.path

    @contextlib.contextmanager
    def claimed(self) -> Iterator[str]:
        """Let the caller bind a socket to the path it gets, and listen, before the block ends.

        A file that a dead server left is removed. Raises StartupError where somebody listens there, where another file is in
        the way, and where a socket cannot be made.
        """
        try:
            with _only_one(os.path.dirname(self.path)), _permissions(self._mode):
                self._make_way()
                yield self.path
                there = os.stat(self.path)
        except OSError as error:
            raise StartupError(f"cannot listen on {self.address}: {error.strerror or error}") from error
        self._made = (there.st_dev, there.st_ino)

    def listen(self, backlog: int) -> socket.socket:
        """Return a socket that listens there, with so many connections waiting to be accepted. Raises StartupError."""
        listening = socket.socket(socket.AF_UNIX)
        try:
            with self.claimed() as path:
                listening.bind(path)
                listening.listen(backlog)
        except BaseException:
            listening.close()
            raise
        listening.setblocking(False)
        return listening

    def claim(self, backlog: int) -> Claimed:
        """Listen for several processes that will accept from one socket. Raises StartupError."""
        listening = self.listen(backlog)

        def close() -> None:
            listening.close()
            self.remove()

        return Claimed(Claim(self.address, listening=listening), close)

    def remove(self) -> None:
        """Remove the file, unless it is not the one that was made: then it is somebody else's by now."""
        with contextlib.suppress(OSError):
            there = os.lstat(self.path)
            if self._made == (there.st_dev, there.st_ino):
                os.unlink(self.path)
        self._made = None

    def _make_way(self) -> None:
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise StartupError(f"cannot listen on {self.address}: a file that is no socket is in the way")
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            answer = probe.connect_ex(self.path)
        if answer == errno.EACCES:
            raise PermissionError(answer, os.strerror(answer))
        if answer != errno.ECONNREFUSED:  # it is listened on, even if its queue is full
            raise StartupError(
                f"cannot listen on {self.address}: another server listens there; stop it, or choose another path"
            )
        os.unlink(self.path)


@contextlib.contextmanager
def _only_one(folder: str) -> Iterator[None]:
    """Hold the folder's lock: two servers that start together must not take each other's new socket for a dead one."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _permissions(mode: int) -> Iterator[None]:
    """Let files be made with this mode: set afterwards, there would be a moment in which others can connect."""
    before = os.umask(0o777 & ~mode)
    try:
        yield
    finally:
        os.umask(before)
