"""Stores for the tests: real servers of the clouds' protocols, each started on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tritonpy.repository import RepositoryContext
from tritonpy_repo_cloud.credentials import FILE_VARIABLE, VARIABLES
from tritonpy_repo_cloud.repository import CloudRepository

from .stores.azure import Azurite
from .stores.gcs import Gcs
from .stores.proxy import FaultyProxy
from .stores.s3 import Moto, S3rver
from .stores.store_folder import StoreFolder

SERVERS: dict[str, Any] = {"moto": Moto, "s3rver": S3rver, "gcs": Gcs, "azurite": Azurite}


@pytest.fixture(scope="session")
def server_named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """`server_named(name)`: the server of `SERVERS`."""
    running: dict[str, Any] = {}

    def start(name: str) -> Any:
        if name not in running:
            running[name] = SERVERS[name].start(tmp_path_factory.mktemp(name))
        return running[name]

    yield start
    for server in running.values():
        server.end()


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the machine's own credentials and proxies from the tests."""
    for name in (
        FILE_VARIABLE,
        *(name for variables in VARIABLES.values() for name in variables.values()),
    ):
        monkeypatch.delenv(name, raising=False)
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def place_in(
    server_named: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], StoreFolder]:
    """`place_in(name)`: an empty repository on this server, with credentials in the environment."""

    def make(name: str) -> StoreFolder:
        server = server_named(name)
        for variable, value in server.environment.items():
            monkeypatch.setenv(variable, value)
        return StoreFolder(server, tmp_path / "cache")

    return make


@pytest.fixture(params=SERVERS)
def place(request: pytest.FixtureRequest, place_in: Callable[[str], StoreFolder]) -> StoreFolder:
    """An empty repository on each of the servers."""
    return place_in(request.param)


@pytest.fixture
def proxied() -> Iterator[Callable[[StoreFolder], FaultyProxy]]:
    """`proxied(place)`: a proxy in front of its server; pass its port to `place.repository`."""
    with ExitStack() as stack:

        def start(place: StoreFolder) -> FaultyProxy:
            proxy = FaultyProxy(place.server.port)
            stack.callback(proxy.end)
            return proxy

        yield start


@pytest.fixture
def open_url(tmp_path: Path) -> Callable[..., CloudRepository]:
    """`open_url(url, option=value, …)`: a repository anywhere."""

    def start(url: str, **options: Any) -> CloudRepository:
        return CloudRepository(
            CloudRepository.Options(**options), RepositoryContext(url, tmp_path / "cache")
        )

    return start
