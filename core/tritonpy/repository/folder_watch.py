"""File system notifications for local repositories, with the package watchfiles if installed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonpy.installation import install_command

if TYPE_CHECKING:
    from typing import Self

log = logging.getLogger("tritonpy.repository")

_QUIET_MS = 500  # pause that ends a burst of changes, such as copying a model
_LONGEST_MS = 5_000  # longest wait for that pause


class FolderWatch:
    """Calls `changed` after changes anywhere below a folder, on its own thread."""

    def __init__(self, watch: Callable[..., Any], folder: Path, changed: Callable[[], None]) -> None:
        self._watch = watch
        self._folder = folder
        self._changed = changed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {folder}", daemon=True)

    @classmethod
    def start(cls, folder: Path, changed: Callable[[], None]) -> Self | None:
        """Start a watch, or return None if watchfiles is not installed.

        `changed` is called once per burst of changes.
        """
        try:
            from watchfiles import watch
        except ImportError:
            log.debug(
                "install watchfiles to detect changes of '%s' immediately: %s",
                folder,
                install_command("tritonpy[watch]"),
            )
            return None
        started = cls(watch, folder, changed)
        started._thread.start()
        return started

    def stop(self) -> None:
        """Stop; `changed` is not called any more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for _ in self._watch(
                self._folder,
                watch_filter=None,
                debounce=_LONGEST_MS,
                step=_QUIET_MS,
                stop_event=self._stopped,
                rust_timeout=_QUIET_MS,
                raise_interrupt=False,
            ):
                self._changed()
        except Exception as error:
            log.warning("cannot watch '%s', changes are detected by polling: %s", self._folder, error)
