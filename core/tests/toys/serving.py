"""A server with toy plugins and without frontends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

import tritonpy_rate_limiter
import tritonpy_residency
import tritonpy_workers
from tritonpy.api.backend import Backend
from tritonpy.api.engine import Engine
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.scheduler import Scheduler
from tritonpy.hookspecs import hookimpl
from tritonpy.plugins import PluginManager, make_plugin_manager
from tritonpy.repository import builtin
from tritonpy.server.server import Server, build
from tritonpy_config.server import decode_server_config
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import InferRequest, InferResponse, Tensor

SILENT = {"http": False, "grpc": False, "metrics": False}


class ToyPlugin:
    """Registers the classes that it is created with."""

    def __init__(
        self,
        backends: Mapping[str, type[Backend] | str] | None = None,
        schedulers: Mapping[str, type[Scheduler] | str] | None = None,
    ) -> None:
        self._backends = backends or {}
        self._schedulers = schedulers or {}

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend] | str]:
        return self._backends

    @hookimpl
    def tritonpy_schedulers(self) -> Mapping[str, type[Scheduler] | str]:
        return self._schedulers


def toy_plugins(*plugins: object) -> PluginManager:
    """Return a plugin manager with those of the core, the workers, the rate limiter, the residency policy and `plugins`, without installed plugins."""
    manager = make_plugin_manager(discover=False)
    manager.register(builtin, "core")
    manager.register(tritonpy_workers, "workers")
    manager.register(tritonpy_rate_limiter, "rate limiter")
    manager.register(tritonpy_residency, "residency")
    for number, plugin in enumerate(plugins):
        manager.register(plugin, f"toy{number}")
    manager.check()
    return manager


@contextmanager
def serving(
    repository: ModelRepository,
    plugins: PluginManager,
    *,
    limiter: RateLimiter | None = None,
    **settings: Any,
) -> Iterator[Server]:
    """Start a server of `repository`; at the end drain and stop it, with all its threads."""
    config = decode_server_config(
        {"repositories": [{"url": str(repository.path)}], "frontends": SILENT} | settings
    )
    server = build(config, plugins, limiter)
    with asyncio.Runner() as loop:
        try:
            loop.run(server.start())
            try:
                yield server
            finally:
                drained = loop.run(server.drain(10))
            assert drained, "some requests were never finished"
        finally:
            loop.run(server.stop())


def config_of(
    backend: str,
    *,
    batch: int = 0,
    datatype: str = "TYPE_INT32",
    dims: int = 1,
    instances: int = 1,
    more: str = "",
) -> str:
    """Return the configuration of a model with one input IN and one output OUT."""
    return f"""
        backend: "{backend}"
        max_batch_size: {batch}
        input {{ name: "IN" data_type: {datatype} dims: {dims} }}
        output {{ name: "OUT" data_type: {datatype} dims: {dims} }}
        instance_group {{ count: {instances} kind: KIND_CPU }}
        {more}
    """


def ask(
    engine: Engine, recorder: RecordingSink, model: str, value: npt.ArrayLike, **fields: Any
) -> InferRequest:
    """Send `value` as INT32 input IN to `model`; `recorder` receives the responses."""
    request = request_of(recorder, model, value, **fields)
    engine.infer(request)
    return request


def request_of(
    recorder: RecordingSink, model: str, value: npt.ArrayLike, **fields: Any
) -> InferRequest:
    """Return a request with `value` as INT32 input IN."""
    array = np.atleast_1d(np.asarray(value, np.int32))
    return InferRequest(model, {"IN": Tensor.from_numpy("IN", array)}, recorder.sink, **fields)


def numbers(responses: list[InferResponse]) -> list[list[int]]:
    """Return the numbers of OUT of each response with data.

    Raise the error of a failed response.
    """
    found = []
    for response in responses:
        if response.error is not None:
            raise response.error
        if not response.empty:
            (out,) = response.outputs
            found.append(out.numpy().ravel().tolist())
    return found
