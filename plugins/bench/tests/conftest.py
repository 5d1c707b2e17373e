"""A server with models of every kind for benchmarks."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tritonpy_testing import ModelRepository, RunningServer, running_server

from .bench_models import BenchModels, write_models


@pytest.fixture(scope="session")
def models() -> BenchModels:
    """The plugin of the backends, which records the requests of sequences."""
    return BenchModels()


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, models: BenchModels
) -> Iterator[RunningServer]:
    repository = ModelRepository(tmp_path_factory.mktemp("models"))
    write_models(repository)
    config = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": False},
        "allow_client_shm": True,
    }
    with running_server(config, [models]) as running:
        yield running


@pytest.fixture
def free_port() -> Iterator[int]:
    """A reserved port of this machine without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])
