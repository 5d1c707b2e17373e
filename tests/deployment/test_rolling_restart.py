"""A rolling restart of two servers behind nginx, under load, as a Deployment does it."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tritonpy_testing import free_port

from .kubernetes import ROOT

PRE_STOP_S = 1.5  # the chart's preStop: load balancers notice that the pod leaves
CLIENTS = 8

NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream servers {{ include {folder}/servers.conf; keepalive 8; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://servers;
      proxy_next_upstream error timeout http_503 non_idempotent; proxy_next_upstream_tries 2;
    }}
  }}
}}
"""


class Servers:
    """Two servers and the list of those that nginx uses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> int:
        """Start a server and return its port once it is ready."""
        port = free_port()
        with (self._folder / f"{port}.log").open("wb") as log:
            self.running[port] = subprocess.Popen(
                [sys.executable, "-m", "tritonpy", "serve",
                 "--model-repository", str(ROOT / "examples" / "models"),
                 "--http-port", str(port), "--allow-grpc=false", "--allow-metrics=false"],
                stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while not is_ready(port):
            assert self.running[port].poll() is None, self.log(port)
            assert time.monotonic() < deadline, self.log(port)
            time.sleep(0.05)
        return port

    def log(self, port: int) -> str:
        """What a server has written."""
        return (self._folder / f"{port}.log").read_text(encoding="utf-8", errors="replace")

    def publish(self, nginx: subprocess.Popen[bytes] | None = None) -> None:
        """Write the servers for nginx and let it read them."""
        lines = "".join(f"server 127.0.0.1:{port};\n" for port in self.running)
        (self._folder / "servers.conf").write_text(lines, encoding="utf-8")
        if nginx is not None:
            nginx.send_signal(signal.SIGHUP)

    def replace(self, port: int, nginx: subprocess.Popen[bytes]) -> None:
        """Replace a server: start another, take the old one out of nginx, wait, and stop it."""
        self.start()
        old = self.running.pop(port)
        self.publish(nginx)
        time.sleep(PRE_STOP_S)
        old.send_signal(signal.SIGTERM)
        assert old.wait(timeout=60) == 0, self.log(port)


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v2/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    found = Servers(tmp_path)
    yield found
    for process in found.running.values():
        process.kill()
        process.wait()


@contextlib.contextmanager
def load(port: int) -> Iterator[tuple[list[int], list[str]]]:
    """Send requests from several clients; yield the statuses and the failures."""
    statuses: list[int] = []
    failures: list[str] = []
    ended = threading.Event()
    body = (ROOT / "examples" / "digit.json").read_bytes()

    # A connection per request: when nginx reads its configuration, it closes idle connections, which
    # says nothing about the servers. Its own connections to them stay open.
    def send() -> None:
        while not ended.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                connection.request("POST", "/v2/models/digits/infer", body)
                response = connection.getresponse()
                text = response.read()
                statuses.append(response.status)
                if response.status != 200:
                    failures.append(f"{response.status} {text[:200]!r}")
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))
            finally:
                connection.close()

    threads = [threading.Thread(target=send, daemon=True) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield statuses, failures
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)


def test_a_rolling_restart_loses_no_request(servers: Servers, tmp_path: Path) -> None:
    if shutil.which("nginx") is None:
        pytest.skip("needs nginx: apt install nginx-light")
    old = [servers.start(), servers.start()]
    servers.publish()
    port = free_port()
    text = NGINX.format(folder=tmp_path, port=port)
    (tmp_path / "nginx.conf").write_text(text, encoding="utf-8")
    with subprocess.Popen(["nginx", "-c", str(tmp_path / "nginx.conf")]) as nginx:
        try:
            deadline = time.monotonic() + 30
            while not is_ready(port):
                assert nginx.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            with load(port) as (statuses, failures):
                for each in old:
                    before = len(statuses)
                    servers.replace(each, nginx)
                    while len(statuses) < before + 100:
                        time.sleep(0.01)
        finally:
            nginx.terminate()
    assert failures == []
    assert not set(old) & set(servers.running)
    print(f"{len(statuses)} requests during the restart, none lost")
