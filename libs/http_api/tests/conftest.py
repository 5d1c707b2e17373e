"""A fake engine, and the real HTTP frontend on the event loop of a separate thread."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trustme
from hypothesis import HealthCheck, settings

from tritonpy import (
    AlreadyExists,
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    NotFound,
    Tensor,
    Unsupported,
)
from tritonpy.frontend import (
    CudaRegion,
    FrontendContext,
    LogChanges,
    LogSettings,
    ModelMetadata,
    RegionKind,
    RequestMemory,
    ServerMetadata,
    SystemRegion,
    TensorMetadata,
)
from tritonpy.metrics import Duration, FamilySnapshot, InferStatistics, ModelGauges, ModelStatistics
from tritonpy.repository import ModelIndex
from tritonpy.tracing import TraceChanges, Tracer, TraceSettings
from tritonpy_http_api.frontend import HttpApiFrontend
from tritonpy_http_api.options import HttpApiOptions
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import ToyEngine

# No deadlines: loaded machines are slow.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


class FakeEngine(Engine):
    """Returns the inputs of model "echo" as outputs, immediately or when `release` is called."""

    def __init__(self) -> None:
        self.toy = ToyEngine()  # stores the settings
        self.requests: list[InferRequest] = []
        self.hold = False
        self.held: list[InferRequest] = []
        self.arrived = threading.Event()
        self.answer: Callable[[InferRequest], Sequence[InferResponse]] = self.echo
        self.error: Exception | None = None
        self.ready = True
        self.calls: list[tuple[Any, ...]] = []
        self.loads: list[tuple[Any, ...]] = []
        self.config = ModelConfig(name="echo", max_batch_size=0)
        given = self.config.input.add()
        given.name, given.data_type = "X", 11  # FP32
        given.dims.append(-1)

    def echo(self, request: InferRequest) -> Sequence[InferResponse]:
        names = request.inputs if request.outputs is None else request.outputs
        outputs = [request.inputs[name] for name in names if name in request.inputs]
        return [InferResponse(outputs, request.model_name, 1, request.id)]

    def infer(self, request: InferRequest) -> None:
        self._find(request.model_name)
        if self.error is not None:
            raise self.error
        self.requests.append(request)
        self.held.append(request)
        self.arrived.set()
        if not self.hold:
            self.release()

    def release(self) -> None:
        held, self.held = self.held, []
        for request in held:
            for response in self.answer(request):
                request.respond(response)

    def _find(self, name: str) -> None:
        if name == "decoupled":
            raise DecoupledRefused("decoupled")
        if name != "echo":
            raise NotFound(f"Request for unknown model: '{name}' is not found")

    def trace_settings(self, model_name: str = "") -> TraceSettings:
        return self.toy.trace_settings(model_name)

    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        self.toy.change_trace_settings(changes, model_name)

    def log_settings(self) -> LogSettings:
        return self.toy.log_settings()

    def change_log_settings(self, changes: LogChanges) -> None:
        self.toy.change_log_settings(changes)

    def server_metadata(self) -> ServerMetadata:
        return ServerMetadata("triton", "1.2.3", ["classification"])

    def is_live(self) -> bool:
        return True

    def is_ready(self) -> bool:
        return self.ready

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        return name == "echo" and version in (-1, 1)

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        self._find(name)
        tensors = [TensorMetadata("X", "FP32", [-1])]
        return ModelMetadata(name, ["1"], "fake", tensors, tensors)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        if name == "decoupled":
            return ModelConfig(name=name, model_transaction_policy={"decoupled": True})
        self._find(name)
        return self.config

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        stats = InferStatistics(*[Duration() for _ in range(8)])
        return [ModelStatistics("echo", "1", 0, 0, 0, stats, {}, [], [])]

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        return {}

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return []

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        index = [ModelIndex("echo", "1", "READY"), ModelIndex("never")]
        return index[:1] if ready else index

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        self._find(name)
        self.loads.append((name, config, files, *([list(versions)] if versions else [])))

    def unload_model(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        self.loads.append((name, unload_dependents, *([list(versions)] if versions else [])))

    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        self.calls.append(("regions", kind, name))
        if kind == "cuda":
            return [CudaRegion("on a GPU", 1, 2**40)]
        return [SystemRegion("one", "/one", 4096, 2**40), SystemRegion("two", "two", 0, 1)]

    def check_region(self, kind: RegionKind, name: str) -> None:
        self.calls.append(("check_region", kind, name))
        if name == "refused":
            raise Unsupported("not here")

    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        self.calls.append(("register_system_region", name, key, offset, byte_size))
        if name == "taken":
            raise AlreadyExists("shared memory region 'taken' already in manager")

    def register_cuda_region(
        self, name: str, handle: bytes, device_id: int, byte_size: int
    ) -> None:
        self.calls.append(("register_cuda_region", name, handle, device_id, byte_size))

    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        self.calls.append(("unregister_regions", kind, name))


class ClientResponse:
    """A complete HTTP response."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class LiveServer:
    """The real frontend on an event loop in a thread."""

    def __init__(
        self,
        engine: FakeEngine,
        authorizer: Any = None,
        tracer: Any = None,
        loop_factory: Any = None,
        memory: Any = None,
        **options: Any,
    ) -> None:
        self.engine = engine
        self.loop = (loop_factory or asyncio.new_event_loop)()
        self.thread = threading.Thread(target=self.loop.run_forever, name="http-test-loop")
        self.thread.start()
        context = FrontendContext(
            "127.0.0.1",
            logging.getLogger("tritonpy.test.http"),
            authorizer,
            tracer or Tracer(),
            memory=memory or RequestMemory(),
        )
        self.frontend = HttpApiFrontend(HttpApiOptions(**{"port": 0, **options}), context)
        try:
            self.run(self.frontend.start(engine))
        except BaseException:
            self.close()
            raise
        address = self.frontend.address()
        self.port = 0 if address.startswith("unix:") else int(address.rpartition(":")[2])

    def run(self, coroutine: Any, timeout: float = 30) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def begin_draining(self) -> threading.Event:
        """Start to drain the frontend and return an event that is set when it is drained.

        New requests are refused when this returns.
        """
        drained = threading.Event()

        async def drain() -> None:
            await self.frontend.drain()
            drained.set()

        async def begin() -> asyncio.Task[None]:
            task = self.loop.create_task(drain())
            await asyncio.sleep(0)
            return task

        self._draining = self.run(begin())
        return drained

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> ClientResponse:
        connection = self.connect()
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            connection.request(method, path, data, dict(headers or {}))
            return ClientResponse(connection.getresponse())
        finally:
            connection.close()

    def infer(
        self, body: Any, headers: Mapping[str, str] | None = None, model: str = "echo"
    ) -> ClientResponse:
        return self.call("POST", f"/v2/models/{model}/infer", body, headers)

    def close(self) -> None:
        self.run(self.frontend.stop())
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def server(engine: FakeEngine) -> Iterator[LiveServer]:
    live = LiveServer(engine)
    yield live
    live.close()


@pytest.fixture
def start_server(engine: FakeEngine) -> Iterator[Callable[..., LiveServer]]:
    started: list[LiveServer] = []

    def start(authorizer: Any = None, **options: Any) -> LiveServer:
        started.append(LiveServer(engine, authorizer, **options))
        return started[-1]

    yield start
    for live in started:
        live.close()


@pytest.fixture
def tensor() -> Callable[..., Tensor]:
    return lambda name, values, dtype=np.float32: Tensor.from_numpy(name, np.asarray(values, dtype))


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """The certificate authority that test clients trust."""
    return trustme.CA()


class PemFiles:
    """Certificate, key and root certificate files as TLS options; `renew` replaces the first two."""

    def __init__(self, folder: Path, authority: trustme.CA) -> None:
        self.folder = folder
        self.options = {
            "certificate_file": str(folder / "certificate.pem"),
            "key_file": str(folder / "key.pem"),
            "client_ca_file": str(folder / "root.pem"),
        }
        authority.cert_pem.write_to_path(folder / "root.pem")
        self.renew(authority)

    def renew(self, authority: trustme.CA) -> None:
        made = authority.issue_cert("localhost", "127.0.0.1")
        (self.folder / "certificate.pem").write_bytes(
            b"".join(blob.bytes() for blob in made.cert_chain_pems)
        )
        made.private_key_pem.write_to_path(self.folder / "key.pem")

    def context(self, client: trustme.LeafCert | None = None) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts the root certificate."""
        context = ssl.create_default_context(cafile=self.options["client_ca_file"])
        if client is not None:
            client.configure_cert(context)
        return context


@pytest.fixture
def pem(tmp_path: Path, authority: trustme.CA) -> PemFiles:
    """TLS files for a server."""
    return PemFiles(tmp_path, authority)
