"""Servers, and Envoy in front of them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TIMEOUT_S, Models
from tests.sequence_models import CONTROLS, FACTOR
from tritonpy_balance.balancer import Balancer
from tritonpy_balance.options import BalanceOptions

SEQUENCE = f'''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Folds the values of a sequence."""

    def initialize(self, args):
        self.totals = {{}}

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        value, start, ready = (
            int(pb_utils.get_input_tensor_by_name(request, name).as_numpy()[0, 0])
            for name in ("IN", "START", "READY")
        )
        if not ready:  # a slot without data
            return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros((1, 1), np.int64))])
        number = request.correlation_id()
        total = (0 if start else self.totals[number]) * {FACTOR} + value
        self.totals[number] = total
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([[total]], np.int64))])
'''
SEQUENCE_CONFIG = f"""
backend: "python"
max_batch_size: 4
input {{ name: "IN" data_type: TYPE_INT64 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_INT64 dims: 1 }}
sequence_batching {{ direct {{ }} {CONTROLS} }}
"""


class Cluster:
    """`count` servers with the repository `models`, each in a process that can be killed."""

    def __init__(self, serve: Any, models: Models, stack: contextlib.ExitStack) -> None:
        self._serve = serve
        self._models = models
        self._stack = stack
        self.servers: list[Any] = []

    def add(self, *flags: str) -> Any:
        """Start another server."""
        manager = self._serve(f"--model-repository={self._models.path}", *flags)
        server = self._stack.enter_context(manager)
        self.servers.append(server)
        return server

    def restart(self, server: Any) -> Any:
        """Start a server on the ports of one that ended."""
        ports = server.ports
        flags = (f"--http-port={ports['http']}", f"--grpc-port={ports['grpc']}", "--metrics-port=0")
        manager = self._serve(f"--model-repository={self._models.path}", *flags, ports=False)
        return self._stack.enter_context(manager)

    def backends(self) -> tuple[str, ...]:
        """Return the servers for the options of a balancer."""
        return tuple(backend_of(server) for server in self.servers)


def backend_of(server: Any) -> str:
    """Return a server for the options of a balancer."""
    return f"127.0.0.1:{server.ports['http']}:{server.ports['grpc']}"


def kill(server: Any) -> None:
    """End a server as `kill -9` does."""
    os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait()


@pytest.fixture
def cluster(serve: Any, tmp_path: Path) -> Iterator[Cluster]:
    models = Models(tmp_path / "models")
    models.example("add_sub")
    models.example("digits")
    with contextlib.ExitStack() as stack:
        yield Cluster(serve, models, stack)


Balance = Callable[..., contextlib.AbstractContextManager[Balancer]]


@pytest.fixture
def balance(free_ports: Any) -> Balance:
    """`with balance(backends, **options) as balancer`: its port is in `balancer.port`."""

    @contextlib.contextmanager
    def start(backends: tuple[str, ...] = (), wait: bool = True, **options: Any) -> Iterator[Any]:
        (port,) = free_ports(1)
        options = {"drain_s": 2.0, "health_interval_s": 0.1, "slow_start_s": 0.0, **options}
        made = Balancer(BalanceOptions(backends=backends, port=port, **options))
        with made as balancer:
            balancer.port = port  # type: ignore[attr-defined]
            if wait:
                wait_for_servers(balancer)
            yield balancer

    return start


def wait_for_servers(balancer: Balancer, count: int | None = None) -> None:
    """Wait until Envoy takes all servers, or `count` of them, to be healthy."""

    def healthy() -> bool:
        clusters = balancer.envoy.server_health()
        for kind in ("http-all", "grpc-all"):
            hosts = clusters.get(kind, [])
            good = [each for each in hosts if is_healthy(each)]
            if len(good) != (len(hosts) if count is None else count) or not hosts:
                return False
        return True

    wait_until(healthy, "the servers are healthy", balancer)


def is_healthy(host: dict[str, Any]) -> bool:
    """Return whether Envoy sends calls to a host."""
    status = host.get("health_status") or {}
    return status.get("eds_health_status") == "HEALTHY" and not any(
        status.get(name) for name in ("failed_active_health_check", "failed_outlier_check")
    )


def wait_until(condition: Callable[[], bool], what: str, balancer: Balancer | None = None) -> None:
    """Wait; fail with Envoy's log if it takes too long."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not so\n{balancer.envoy.log_text() if balancer else ''}")
        time.sleep(0.02)
