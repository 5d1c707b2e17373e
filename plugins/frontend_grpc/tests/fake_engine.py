"""A fake engine, and a gRPC frontend for it on a free port."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from tritonpy import (
    AlreadyExists,
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    Internal,
    InvalidArgument,
    MemoryUsage,
    Tensor,
    TritonError,
    Unavailable,
)
from tritonpy.frontend import (
    CudaRegion,
    Frontend,
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
from tritonpy.metrics import (
    BatchStatistics,
    Duration,
    FamilySnapshot,
    InferStatistics,
    ModelGauges,
    ModelStatistics,
    ResponseStatistics,
)
from tritonpy.repository import ModelIndex
from tritonpy.tracing import TraceChanges, Tracer, TraceSettings
from tritonpy_frontend_grpc.grpcio.frontend import GrpcFrontend
from tritonpy_frontend_grpc.h2.frontend import H2GrpcFrontend
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import ToyEngine

WAIT_S = 20


class FakeEngine(Engine):
    """An engine with fake models.

    "identity" echoes immediately, requests of "later" and "decoupled" wait in `held`, "failing" responds
    with an error, and "broken" raises an exception.
    """

    def __init__(self) -> None:
        self.toy = ToyEngine()  # stores the settings
        self.ready = True
        self.exiting = False
        self.refused: TritonError | None = None  # raised for otherwise valid requests
        self.held: list[InferRequest] = []
        self.calls: list[tuple[Any, ...]] = []

    def infer(self, request: InferRequest) -> None:
        model = request.model_name
        if model == "identity":
            request.respond(echo(request))
        elif model == "failing":
            request.respond(InferResponse.failed(request, Internal("the model failed")))
        elif model == "broken":
            raise ZeroDivisionError("a secret")
        elif model == "decoupled" and not request.accepts_decoupled:
            raise DecoupledRefused("any number of responses")
        elif self.refused is not None:
            raise self.refused
        elif model in ("later", "decoupled"):
            self.held.append(request)
        else:
            raise InvalidArgument(f"Request for unknown model: '{model}' is not found")

    def trace_settings(self, model_name: str = "") -> TraceSettings:
        return self.toy.trace_settings(model_name)

    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        self.toy.change_trace_settings(changes, model_name)

    def log_settings(self) -> LogSettings:
        return self.toy.log_settings()

    def change_log_settings(self, changes: LogChanges) -> None:
        self.toy.change_log_settings(changes)

    def server_metadata(self) -> ServerMetadata:
        return ServerMetadata("triton", "2.0", ["classification", "sequence"])

    def is_live(self) -> bool:
        return True

    def is_ready(self) -> bool:
        if self.exiting:
            raise Unavailable("Server exiting")
        return self.ready

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        self.calls.append(("is_model_ready", name, version))
        if name != "identity":
            raise InvalidArgument(f"Request for unknown model: '{name}' is not found")
        return version in (-1, 1)

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        tensor = TensorMetadata("X", "FP32", [-1, 4])
        return ModelMetadata(
            name,
            ["1", "3"],
            "onnxruntime_onnx",
            [tensor],
            [tensor, TensorMetadata("Y", "BYTES", [])],
        )

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        return ModelConfig(name=name, max_batch_size=8, backend="onnxruntime")

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        self.calls.append(("statistics", name, version))
        one, inference = (
            Duration(1, 2),
            InferStatistics(*(Duration(count, 2**40) for count in range(8))),
        )
        response_stats = {"0": ResponseStatistics(one, one, one, one, one, one)}
        batches, memory = [BatchStatistics(4, one, one, one)], [MemoryUsage("GPU", 1, 2**33)]
        return [
            ModelStatistics(
                name, "1", 1_700_000_000_000, 9, 3, inference, response_stats, batches, memory
            )
        ]

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        return {}

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return []

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        loaded = ModelIndex("identity", "1", "READY", "")
        return [loaded] if ready else [loaded, ModelIndex("never")]

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        self.calls.append(
            ("load_model", name, config, files, *([list(versions)] if versions else []))
        )
        if name == "bad":
            raise Internal("failed to load 'bad', " + "because " * 2000)

    def unload_model(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        self.calls.append(
            ("unload_model", name, unload_dependents, *([list(versions)] if versions else []))
        )

    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        self.calls.append(("regions", kind, name))
        if kind == "cuda":
            return [CudaRegion("on a GPU", 1, 2**40)]
        return [SystemRegion("one", "/one", 4096, 2**40), SystemRegion("two", "two", 0, 1)]

    def check_region(self, kind: RegionKind, name: str) -> None:
        raise AssertionError("only HTTP checks regions before reading the body")

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


class RecordingEngine(FakeEngine):
    """Records its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[InferRequest] = []

    def infer(self, request: InferRequest) -> None:
        self.requests.append(request)
        super().infer(request)


def echo(request: InferRequest, *, final: bool = True) -> InferResponse:
    """Return a response with the inputs as outputs."""
    tensors = [
        Tensor(item.name, item.datatype, item.shape, item.data) for item in request.inputs.values()
    ]
    return InferResponse(tensors, request.model_name, 1, request.id, final=final)


def number(request: InferRequest, value: int, *, final: bool = False) -> InferResponse:
    """Return a response with one number."""
    tensor = Tensor.from_numpy("OUT", np.array([value], np.int32))
    return InferResponse([tensor], request.model_name, 1, request.id, final=final)


def frontend_class() -> type[Frontend]:
    """Return the tested class: the same tests run on both gRPC servers."""
    return GrpcFrontend if os.environ.get("TRITONPY_TEST_TRANSPORT") == "grpcio" else H2GrpcFrontend


@asynccontextmanager
async def serving(
    engine: Engine,
    authorizer: Any = None,
    tracer: Tracer | None = None,
    memory: RequestMemory | None = None,
    **options: Any,
) -> AsyncIterator[Frontend]:
    """Run the frontend on the running event loop."""
    context = FrontendContext(
        "127.0.0.1",
        logging.getLogger("tritonpy.grpc"),
        authorizer,
        tracer or Tracer(),
        memory=memory or RequestMemory(),
    )
    frontend = frontend_class()(GrpcOptions(port=0, **options), context)
    await frontend.start(engine)
    try:
        yield frontend
    finally:
        await frontend.stop()


async def eventually(
    condition: Callable[[], object],
    state: Callable[[], object] = lambda: "the condition never became true",
) -> None:
    """Wait until `condition()` is true; fail with `state()` after a timeout."""
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, state()
        await asyncio.sleep(0.001)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test."""

    async def bounded() -> None:
        await asyncio.wait_for(scenario(), 2 * WAIT_S)

    asyncio.run(bounded())
