"""Poll mode: the operating system tells when a local folder changes, where the package watchfiles is installed."""

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

_QUIET_MS = 500  # so long nothing may happen before a change is told: copying a model is many changes
_LONGEST_MS = 5_000  # and so long it is waited for that quiet


class FolderWatch:
    """Tells of changes anywhere below a folder, from a thread of its own."""

    def __init__(self, watch: Callable[..., Any], folder: Path, changed: Callable[[], None]) -> None:
        self._watch = watch
        self._folder = folder
        self._changed = changed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {folder}", daemon=True)

    @classmethod
    def start(cls, folder: Path, changed: Callable[[], None]) -> Self | None:
        """Begin, and call `changed` once a change is over; None where watchfiles is not installed."""
        try:
            from watchfiles import watch
        except ImportError:
            log.debug("changes of '%s' are noticed at once with: %s", folder, install_command("tritonpy[watch]"))
            return None
        started = cls(watch, folder, changed)
        started._thread.start()
        return started

    def stop(self) -> None:
        """End; `changed` is not called any more."""
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
            log.warning("changes of '%s' cannot be watched, polls find them: %s", self._folder, error)
