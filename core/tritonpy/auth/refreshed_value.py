"""A value that is read again while the server runs, such as a file of API keys or a key set."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
Signature = tuple[int, int, int, int]


class RefreshedValue(Generic[T]):
    """A value that a background thread reads again every `period_s` seconds.

    `value` is the last result of `read`, which returns None if nothing changed. A failed read is
    logged and keeps the value. `request_refresh` requests an earlier read; two reads are at least
    `pause_s` apart. `what` names the value in the log.
    """

    def __init__(
        self,
        value: T,
        read: Callable[[], T | None],
        what: str,
        period_s: float,
        log: logging.Logger,
        pause_s: float = 0,
    ) -> None:
        self.value = value
        self._read = read
        self._what = what
        self._period_s = period_s
        self._pause_s = pause_s
        self._log = log
        self._requested = threading.Event()
        self._closed = threading.Event()
        self._last_error = ""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, which runs until `close`."""
        self._thread = threading.Thread(target=self._run, name=f"refresh {self._what}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread. A read in progress may finish later."""
        self._closed.set()
        self._requested.set()
        if self._thread is not None:
            self._thread.join(1)

    def request_refresh(self) -> None:
        """Request a read soon, for example after a failed look-up. Returns immediately."""
        self._requested.set()

    def refresh(self) -> None:
        """Read now. Never raises."""
        try:
            found = self._read()
        except Exception as error:
            self._log_error(f"{type(error).__name__}: {error}")
            return
        self._last_error = ""
        if found is not None:
            self.value = found
            self._log.info("%s: read again", self._what)

    def _log_error(self, text: str) -> None:
        if text != self._last_error:  # log a repeated error only once
            self._log.error(
                "%s: read failed, the previous value stays in use: %s", self._what, text
            )
        self._last_error = text

    def _run(self) -> None:
        while not self._closed.wait(self._pause_s):
            self._requested.wait(self._period_s)
            self._requested.clear()
            if not self._closed.is_set():
                self.refresh()


class ChangedFile(Generic[T]):
    """Reads a file when it has changed, for `RefreshedValue`.

    A change counts after two checks with the same result, so that a file is not read while it is
    being written.
    """

    def __init__(self, path: Path, parse: Callable[[str], T]) -> None:
        self._path = path
        self._parse = parse
        self._read: Signature | None = None
        self._seen: Signature | None = None

    def first(self) -> T:
        """Return the current content. Raises OSError, and the errors of `parse`."""
        self._read = self._seen = self._signature()
        return self._content()

    def __call__(self) -> T | None:
        """Return the new content, or None if the file is unchanged. Raises like `first`."""
        now = self._signature()
        settled, self._seen = now == self._seen, now
        if not settled or now == self._read:
            return None
        content = self._content()
        self._read = now
        return content

    def _content(self) -> T:
        return self._parse(self._path.read_text("utf-8"))

    def _signature(self) -> Signature:
        found = self._path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
