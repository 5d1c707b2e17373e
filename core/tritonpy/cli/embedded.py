"""The server in a process whose main program is another one, such as that of a transport."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import msgspec

from tritonpy.api.transport import Failure
from tritonpy.cli.lifecycle import Life
from tritonpy.cli.open_files import allow_many_open_files
from tritonpy.config.server import ServerConfig
from tritonpy.errors import StartupError
from tritonpy.logs import configure_logging, log_uncaught_exceptions
from tritonpy.plugins import make_plugin_manager
from tritonpy.server import build

LOG = logging.getLogger("tritonpy.cli")


class Embedded:
    """The server that `document` of a `Launch` describes. All methods but the constructor are called on one event loop.

    `exit_now` ends the process at once. Raises StartupError where the server cannot be built.
    """

    def __init__(self, document: bytes, exit_now: Callable[[int], None] = os._exit) -> None:
        config = msgspec.json.decode(document, type=ServerConfig)
        configure_logging(config.logging)
        log_uncaught_exceptions()
        allow_many_open_files()
        server = build(config, make_plugin_manager(disable=config.plugins.disable))
        self._life = Life(server, config.exit_timeout_s, lambda: None, exit_now)

    async def serve(self) -> tuple[int, Failure | None]:
        """Serve until a signal ends it; return the exit status, and why the server could not start if it could not."""
        try:
            await self._life.serve()
        except StartupError as error:
            return 1, Failure.of(error)
        except Exception:
            LOG.exception("the server ended unexpectedly")
            return 1, None
        finally:
            self._life.over()
        return 0, None

    def signalled(self, number: int) -> None:
        """Take note of a signal that came to the process: the first one drains and stops the server, the second one ends it at once."""
        self._life.signalled(number)
