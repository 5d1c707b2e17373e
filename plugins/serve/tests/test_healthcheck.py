from __future__ import annotations

import http.server
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import trustme

from tritonpy import StartupError
from tritonpy_serve.healthcheck import configured_url, default_url, request_status


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({"/v2/health/ready": 200, "/v2/health/live": 400}[self.path])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def port():
    with serving(http.server.HTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield server.server_address[1]


def healthcheck(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tritonpy", "healthcheck", *arguments],
        capture_output=True,
        text=True,
        env=environment or None,
        check=False,
    )


def test_the_exit_status_is_the_health(port):
    url = f"http://127.0.0.1:{port}/v2/health/ready"
    assert healthcheck("--url", url).returncode == 0
    assert healthcheck(TRITONPY_HEALTH_URL=url).returncode == 0
    bad = healthcheck("--url", url.replace("ready", "live"))
    assert (bad.returncode, bad.stderr.strip().endswith("HTTP status 400")) == (1, True)


def test_a_server_that_does_not_run_is_unhealthy_and_named():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/v2/health/ready"
    done = healthcheck("--url", url)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{url}: ")
    assert "Connection refused" in done.stderr


def test_tls_and_unix_sockets_are_used(tmp_path):
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("elsewhere").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server):
        url = f"https://localhost:{server.server_address[1]}/v2/health/ready"
        assert request_status(url, 5) == 200

    class UnixServer(socketserver.UnixStreamServer):
        def get_request(self):
            request, _ = super().get_request()
            return request, ("local", 0)

    with serving(UnixServer(str(tmp_path / "s"), Handler)):
        assert request_status(f"unix:{tmp_path / 's'}", 5) == 200


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("{}", "http://127.0.0.1:8000/v2/health/ready"),
        ("host: 0.0.0.0\nfrontends: {http: {port: 9}}", "http://127.0.0.1:9/v2/health/ready"),
        ("frontends: {http: {host: '::'}}", "http://[::1]:8000/v2/health/ready"),
        ("frontends: {http: {host: 'unix:/run/t.sock'}}", "unix:/run/t.sock"),
        (
            "frontends: {http: {tls: {certificate_file: a, key_file: b}}}",
            "https://127.0.0.1:8000/v2/health/ready",
        ),
    ],
)
def test_the_configuration_gives_address_and_tls(tmp_path, text, url):
    (tmp_path / "server.yaml").write_text(text, encoding="utf-8")
    assert configured_url(tmp_path / "server.yaml") == url


def test_the_environment_gives_the_default_route():
    assert default_url({}) == "http://127.0.0.1:8000/v2/health/ready"
    vertex = {"AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": "5234", "AIP_HEALTH_ROUTE": "/h"}
    assert default_url(vertex) == "http://127.0.0.1:5234/h"
    assert default_url({**vertex, "TRITONPY_HEALTH_URL": "unix:/x"}) == "unix:/x"


def test_a_configuration_without_http_says_what_to_do(tmp_path):
    (tmp_path / "server.yaml").write_text("frontends: {http: false}", encoding="utf-8")
    with pytest.raises(StartupError, match="pass the URL of another health route in --url"):
        configured_url(tmp_path / "server.yaml")
