"""Poll mode: looks at the repositories again and again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tritonpy.errors import TritonError

log = logging.getLogger("tritonpy.repository")


class Polling:
    """Calls `poll` every `interval_s`, and when it is woken, on a thread of its own.

    A repository that cannot be read is logged once and what serves goes on.
    """

    def __init__(self, poll: Callable[[], None], interval_s: float) -> None:
        self._poll = poll
        self._interval_s = interval_s
        self._woken = threading.Event()
        self._stopped = False
        self._last_error = ""
        self._thread = threading.Thread(target=self._run, name="poll", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Poll now, or once more after the poll that runs."""
        self._woken.set()

    def finish(self) -> None:
        """Begin no poll any more; one that runs may fail, and nobody needs to hear of it."""
        self._stopped = True
        self._woken.set()

    def stop(self) -> None:
        """End, after the poll that runs."""
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
                    log.error("%s; what is loaded goes on serving", error.message)
                self._last_error = error.message
            except Exception:
                log.exception("polling the model repositories failed")

    def _wait(self) -> bool:
        """Wait for the next poll; return whether there is to be none."""
        self._woken.wait(self._interval_s)
        self._woken.clear()
        return self._stopped
