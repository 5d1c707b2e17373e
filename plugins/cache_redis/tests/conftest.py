"""A real redis-server per test, with the settings of the test."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
import trustme

from tritonpy_cache_redis.cache import RedisCache
from tritonpy_cache_redis.options import RedisCacheOptions
from tritonpy_config.server import decode_options
from tritonpy_testing import free_port

START_S = 20.0


class RunningRedis:
    """A redis-server on a port of 127.0.0.1 that stays the same after a restart.

    With `tls` it listens with TLS only.
    """

    def __init__(self, folder: Path, *settings: str) -> None:
        self.port = free_port()
        self._folder = folder
        port = (
            [] if any(each.startswith("tls-port") for each in settings) else [f"port {self.port}"]
        )
        lines = ["bind 127.0.0.1", 'save ""', "appendonly no", f"dir {folder}", *port]
        lines += [each.replace("PORT", str(self.port)) for each in settings]
        (folder / "redis.conf").write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it. Returns when it listens."""
        self._process = subprocess.Popen(
            ["redis-server", str(self._folder / "redis.conf")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self._process.poll() is None, "redis-server ended immediately"
                assert time.monotonic() < deadline, "redis-server does not listen"
                time.sleep(0.01)
            else:
                return

    def kill(self) -> None:
        """Kill it as a crash does. Its data is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        """Suspend the process. It responds to nothing, and its connections stay open."""
        assert self._process is not None
        self._process.send_signal(19)

    def resume(self) -> None:
        """Resume the process."""
        assert self._process is not None
        self._process.send_signal(18)


@pytest.fixture
def redis(tmp_path):
    """Start servers and stop all of them at the end of the test."""
    if shutil.which("redis-server") is None:
        pytest.skip("needs redis-server, of Debian's package of that name")
    running = []

    def start(*settings):
        folder = tmp_path / f"redis{len(running)}"
        folder.mkdir()
        running.append(RunningRedis(folder, *settings))
        return running[-1]

    yield start
    for each in running:
        each.kill()


def options_of(server, **more):
    """Return the options for a server."""
    return decode_options(
        RedisCacheOptions, {"host": "127.0.0.1", "port": server.port, **more}, "cache.redis"
    )


@pytest.fixture
def connect():
    """Create caches that are closed at the end of the test."""
    made = []

    def make(server, **more):
        made.append(RedisCache(options_of(server, **more)))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Certificates:
    """Certificate files: an authority, and what it issued for Redis and for a client."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.authority = folder / "ca.pem"
        authority.cert_pem.write_to_path(self.authority)
        self.server = self._issued(authority, folder, "redis.test", "127.0.0.1")
        self.client = self._issued(authority, folder, "client.test")
        self.stranger = folder / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(self.stranger)

    @staticmethod
    def _issued(authority: trustme.CA, folder: Path, *names: str) -> tuple[Path, Path]:
        issued = authority.issue_cert(*names)
        chain, key = folder / f"{names[0]}.pem", folder / f"{names[0]}.key"
        issued.cert_chain_pems[0].write_to_path(chain)
        issued.private_key_pem.write_to_path(key)
        return chain, key

    def settings(self, clients: str = "no") -> list[str]:
        """Return the settings of redis-server.

        `clients`: whether client certificates are required.
        """
        chain, key = self.server
        return [
            "port 0", "tls-port PORT", f"tls-cert-file {chain}", f"tls-key-file {key}", f"tls-ca-cert-file {self.authority}",
            f"tls-auth-clients {clients}",
        ]  # fmt: skip


@pytest.fixture
def certificates(tmp_path):
    """Certificates for TLS."""
    return Certificates(tmp_path)
