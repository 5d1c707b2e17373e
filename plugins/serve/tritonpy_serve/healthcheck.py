"""`tritonpy healthcheck`: asks a server on this machine for its health, for container engines."""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tritonpy import Command, StartupError
from tritonpy.config import decode_server_config, read_server_yaml

_VARIABLE = "TRITONPY_HEALTH_URL"
_DEFAULT_URL = "http://127.0.0.1:8000/v2/health/ready"
_PATH = "/v2/health/ready"
_HTTP_PORT = 8000
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class HealthcheckCommand(Command):
    """Exit with 0 if the server on this machine is ready, with 1 if it is not.

        tritonpy healthcheck                          http://127.0.0.1:8000/v2/health/ready
        tritonpy healthcheck --config server.yaml     address and TLS of the configuration
        tritonpy healthcheck --url https://localhost:8443/v2/health/live

    $TRITONPY_HEALTH_URL is the default of --url. A certificate is not verified: the server is on
    this machine.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--config", type=Path, metavar="FILE", help="the server's server.yaml")
        parser.add_argument(
            "--url",
            help="URL of a health route, or unix:/path of a socket "
            f"(default: ${_VARIABLE}, {_DEFAULT_URL})",
        )
        parser.add_argument(
            "--timeout", type=float, default=4.0, metavar="SECONDS", help="default: %(default)s"
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the status if it is bad, and return the exit status."""
        url = arguments.url or default_url(os.environ)
        if arguments.config is not None and not arguments.url:
            url = configured_url(arguments.config)
        try:
            status = request_status(url, arguments.timeout)
        except (OSError, http.client.HTTPException) as error:
            print(f"{url}: {error}", file=sys.stderr)
            return 1
        if status != http.client.OK:
            print(f"{url}: HTTP status {status}", file=sys.stderr)
            return 1
        return 0


def default_url(environment: Mapping[str, str]) -> str:
    """Return the URL of the health route, on Vertex AI that of its endpoint."""
    if given := environment.get(_VARIABLE):
        return given
    route = environment.get("AIP_HEALTH_ROUTE")
    if environment.get("AIP_MODE") == "PREDICTION" and route:
        return f"http://127.0.0.1:{environment.get('AIP_HTTP_PORT') or 8080}{route}"
    return _DEFAULT_URL


def configured_url(file: Path) -> str:
    """Return the URL of the HTTP frontend that server.yaml configures.

    Raises StartupError if HTTP is off, and InvalidServerConfig for an invalid file.
    """
    config = decode_server_config(read_server_yaml(file)[0])
    options: Any = config.frontends.get("http", {})
    if options is False:
        raise StartupError(f"{file} disables HTTP: pass the URL of another health route in --url")
    if not isinstance(options, dict):
        options = {}
    host = str(options.get("host") or config.host)
    if host.startswith("unix:"):
        return host
    host = _EVERY_ADDRESS.get(host, host)
    scheme = "https" if options.get("tls") else "http"
    bracketed = f"[{host}]" if ":" in host else host
    return f"{scheme}://{bracketed}:{options.get('port', _HTTP_PORT)}{_PATH}"


def request_status(url: str, timeout_s: float) -> int:
    """Return the HTTP status of a health route. Raises OSError and HTTPException."""
    if url.startswith("unix:"):
        connection: http.client.HTTPConnection = _UnixConnection(
            url.removeprefix("unix:"), timeout_s
        )
        path = _PATH
    else:
        parts = urlsplit(url)
        path = parts.path or _PATH
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
