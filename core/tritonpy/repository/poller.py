"""Poll mode: reads the repositories at regular intervals."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tritonpy_types.errors import TritonError

log = logging.getLogger("tritonpy.repository")


class Poller:
    """Calls `poll` every `interval_s` and when woken, on its own thread.

    An error that repeats is logged once. Loaded models keep serving.
    """

    def __init__(self, poll: Callable[[], None], interval_s: float) -> None:
        self._poll = poll
        self._interval_s = interval_s
        self._woken = threading.Event()
        self._stopped = False
        self._last_error = ""
        self._thread = threading.Thread(target=self._run, name="poll", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Poll now, or once more after the poll in progress."""
        self._woken.set()

    def finish(self) -> None:
        """Start no further poll, and ignore errors of the one in progress."""
        self._stopped = True
        self._woken.set()

    def stop(self) -> None:
        """Stop after the poll in progress."""
        self.finish()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._wait():
            try:
                self._poll()
                self._last_error = ""
            except TritonError as error:
                if error.message != self._last_error and not self._stopped:
                    log.error("%s; loaded models keep serving", error.message)
                self._last_error = error.message
            except Exception:
                log.exception("polling the model repositories failed")

    def _wait(self) -> bool:
        """Wait for the next poll; return whether the poller is stopped."""
        self._woken.wait(self._interval_s)
        self._woken.clear()
        return self._stopped
