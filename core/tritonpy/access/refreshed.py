"""A value that is read anew while the server runs: a file of keys, a key set behind a URL."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
Signature = tuple[int, int, int, int]


class Refreshed(Generic[T]):
    """`value` is what `read` returned last; it is replaced as a whole. A reading that fails is logged and changes nothing.

    `read` returns None where nothing changed. A thread of its own reads every `period_s` seconds, and sooner after `ask`, but never
    twice within `pause_s`. `what` names the value in the log.
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
        self._asked = threading.Event()
        self._closed = threading.Event()
        self._complaint = ""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look; the thread ends with `close`."""
        self._thread = threading.Thread(target=self._run, name=f"refresh {self._what}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; a reading that is under way may go on for a moment without it."""
        self._closed.set()
        self._asked.set()
        if self._thread is not None:
            self._thread.join(1)

    def ask(self) -> None:
        """Ask for a reading soon: something was looked for and not found. Returns at once."""
        self._asked.set()

    def look(self) -> None:
        """Read now. Never raises."""
        try:
            found = self._read()
        except Exception as error:
            self._complain(f"{type(error).__name__}: {error}")
            return
        self._complaint = ""
        if found is not None:
            self.value = found
            self._log.info("%s: read anew", self._what)

    def _complain(self, text: str) -> None:
        if text != self._complaint:  # a file that stays broken is told of once
            self._log.error("%s: not read, what was read before stays in force: %s", self._what, text)
        self._complaint = text

    def _run(self) -> None:
        while not self._closed.wait(self._pause_s):
            self._asked.wait(self._period_s)
            self._asked.clear()
            if not self._closed.is_set():
                self.look()


class ChangedFile(Generic[T]):
    """Reads a file when it changed, for `Refreshed`.

    A change counts once two looks in a row have found the same: who writes a file in place is not read in the middle of it.
    """

    def __init__(self, path: Path, parse: Callable[[str], T]) -> None:
        self._path = path
        self._parse = parse
        self._read: Signature | None = None
        self._seen: Signature | None = None

    def first(self) -> T:
        """Read it as it is now; raises OSError, and what `parse` raises."""
        self._read = self._seen = self._signature()
        return self._content()

    def __call__(self) -> T | None:
        """Return the new content, None where there is none yet; raises as `first` does."""
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
