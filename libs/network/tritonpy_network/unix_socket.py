"""Unix domain sockets as addresses of frontends: `unix:/run/tritonpy.sock`."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator

from tritonpy_network.port_claim import Claim, ClaimedAddress
from tritonpy_types.errors import StartupError

_PREFIX = "unix:"


def unix_path(host: str) -> str:
    """Return the path of an address `unix:/path` or `unix:///path`, "" for other addresses."""
    if not host.startswith(_PREFIX):
        return ""
    return os.path.abspath(host.removeprefix(_PREFIX).removeprefix("//"))


class UnixSocket:
    """The file of a listening socket of this process. `mode` has its permission bits."""

    def __init__(self, path: str, mode: int) -> None:
        self.path = path
        self._mode = mode
        self._created: tuple[int, int] | None = None

    @property
    def address(self) -> str:
        """The address for clients, also valid as a gRPC target."""
        return _PREFIX + self.path

    @contextlib.contextmanager
    def claimed(self) -> Iterator[str]:
        """Let the caller bind a socket to the yielded path and listen before the block ends.

        Removes the stale file of a dead server. Raises StartupError if another server listens,
        another file exists at the path, or the socket cannot be created.
        """
        try:
            with _folder_lock(os.path.dirname(self.path)), _file_mode(self._mode):
                self._remove_stale_file()
                yield self.path
                there = os.stat(self.path)
        except OSError as error:
            raise StartupError(
                f"cannot listen on {self.address}: {error.strerror or error}"
            ) from error
        self._created = (there.st_dev, there.st_ino)

    def listen(self, backlog: int) -> socket.socket:
        """Return a listening socket with the given backlog. Raises StartupError."""
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

    def claim(self, backlog: int) -> ClaimedAddress:
        """Listen for several processes that accept from one socket. Raises StartupError."""
        listening = self.listen(backlog)

        def close() -> None:
            listening.close()
            self.remove()

        return ClaimedAddress(Claim(self.address, listening=listening), close)

    def remove(self) -> None:
        """Remove the file, unless another process has replaced it."""
        with contextlib.suppress(OSError):
            there = os.lstat(self.path)
            if self._created == (there.st_dev, there.st_ino):
                os.unlink(self.path)
        self._created = None

    def _remove_stale_file(self) -> None:
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise StartupError(
                f"cannot listen on {self.address}: the path exists and is not a socket"
            )
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            result = probe.connect_ex(self.path)
        if result == errno.EACCES:
            raise PermissionError(result, os.strerror(result))
        if result != errno.ECONNREFUSED:  # a server listens, even if its queue is full
            raise StartupError(
                f"cannot listen on {self.address}: another server listens there; "
                "stop it or choose another path"
            )
        os.unlink(self.path)


@contextlib.contextmanager
def _folder_lock(folder: str) -> Iterator[None]:
    """Hold the folder's lock.

    Without it, a starting server could remove the new socket of another one as stale.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _file_mode(mode: int) -> Iterator[None]:
    """Create files with this mode.

    A later chmod would leave a window in which others can connect.
    """
    before = os.umask(0o777 & ~mode)
    try:
        yield
    finally:
        os.umask(before)
