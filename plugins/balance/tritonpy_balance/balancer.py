"""The control loop: polls the servers and changes Envoy's clusters and routes."""

from __future__ import annotations

import logging
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tritonpy import StartupError
from tritonpy_balance.envoy_process import EnvoyProcess
from tritonpy_balance.options import BalanceOptions, InvalidBackend
from tritonpy_balance.routes import ModelRoutes, make_table
from tritonpy_balance.servers import BackendSource, ServerPoller, ServerStatus

_LOG = logging.getLogger("tritonpy.balance")


class Balancer:
    """Envoy in front of the servers of `options`; a context manager.

    Entering it starts Envoy and raises StartupError if it cannot start. Leaving it drains.
    """

    def __init__(self, options: BalanceOptions) -> None:
        self._options = options
        self._source = BackendSource(options)
        self._poller = ServerPoller(options)
        self._temporary = tempfile.TemporaryDirectory(prefix="tritonpy-balance-")
        folder = Path(options.folder or self._temporary.name)
        folder.mkdir(parents=True, exist_ok=True)
        self.envoy = EnvoyProcess(options, folder.resolve())
        self._table: ModelRoutes | None = None
        self._ready: dict[str, bool] = {}
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        try:
            table = make_table(self._poll())
            self.envoy.start(table)
        except (InvalidBackend, OSError) as error:
            self._close()
            raise StartupError(f"no servers to balance: {error}") from error
        except BaseException:
            self._close()
            raise
        self._table = table
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.envoy.drain()
        self.envoy.stop()
        self._close()

    def run(self) -> int:
        """Follow the servers until `stop` is called; return the exit status.

        Envoy's own end is an error: it is logged, and the status is 1.
        """
        while not self._stopping.wait(self._options.poll_s):
            if self.envoy.poll() is not None:
                _LOG.error("Envoy ended with %s:\n%s", self.envoy.poll(), self.envoy.log_text())
                return 1
            self.refresh()
        return 0

    def refresh(self) -> None:
        """Poll the servers once, and change the routes if something changed."""
        table = make_table(self._poll())
        if table != self._table:
            _LOG.info(
                "routes: %d servers, %d models with servers of their own",
                len(table.pools[0].backends), len(table.models),
            )  # fmt: skip
            self.envoy.apply(table)
            self._table = table

    def stop(self) -> None:
        """End `run`, from any thread or signal handler."""
        self._stopping.set()

    def _poll(self) -> list[ServerStatus]:
        states = self._poller.poll(self._source.read())
        now = {state.backend.name: state.ready for state in states}
        for name, ready in now.items():
            if self._ready.get(name) != ready:
                _LOG.info("server %s is %s", name, "ready" if ready else "not ready")
        for name in self._ready.keys() - now.keys():
            _LOG.info("server %s was removed", name)
        self._ready = now
        return states

    def _close(self) -> None:
        self._poller.close()
        self._temporary.cleanup()
