"""The routes of shared memory."""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from tritonpy import CudaRegion, Engine, InvalidArgument, RegionKind, SystemRegion
from tritonpy_frontend_http import json_document as document
from tritonpy_frontend_http.router import Reply, Request, Route, routes

_HANDLE_BYTES = 64


class SharedMemoryRoutes:
    """Two kinds of memory, three actions each, for one region or for all.

    The name of a region is what stands in the path, escapes included: so Triton keeps it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> list[Route]:
        """Return the routes."""
        system = self._of(RegionKind.SYSTEM, self._register_system, list[SystemRegion])
        return [*system, *self._of(RegionKind.CUDA, self._register_cuda, list[CudaRegion])]

    def _of(self, kind: RegionKind, register: Callable[[str, Any], None], listed: Any) -> list[Route]:
        engine = self._engine

        async def status(request: Request) -> list[SystemRegion | CudaRegion]:
            """List the registered regions."""
            return list(engine.regions(kind, _region(request)))

        async def register_region(request: Request) -> Reply:
            """Register a region: from then on inputs and outputs may lie there."""
            name = _region(request)
            await asyncio.to_thread(engine.check_region, kind, name)
            await asyncio.to_thread(register, name, document.parse(await request.body()))
            return Reply()

        async def unregister(request: Request) -> Reply:
            """Unregister a region, or all; requests in flight keep theirs."""
            engine.unregister_regions(kind, _region(request))
            return Reply()

        return [
            *routes("GET", _paths(kind, "status"), status, listed),
            *routes("POST", _paths(kind, "register"), register_region),
            *routes("POST", _paths(kind, "unregister"), unregister),
        ]

    def _register_system(self, name: str, body: Any) -> None:
        key = document.as_string(_field(body, "key"))
        offset = document.as_uint(body["offset"]) if document.has(body, "offset") else 0
        byte_size = document.as_uint(_field(body, "byte_size"))
        self._engine.register_system_region(name, key, offset, byte_size)

    def _register_cuda(self, name: str, body: Any) -> None:
        handle = document.as_string(document.member(_field(body, "raw_handle"), "b64"))
        byte_size = document.as_uint(document.member(body, "byte_size"))
        device_id = document.as_uint(document.member(body, "device_id"))
        self._engine.register_cuda_region(name, _decoded(handle), device_id, byte_size)


def _paths(kind: RegionKind, action: str) -> list[str]:
    return [f"/v2/{kind}sharedmemory/{action}", f"/v2/{kind}sharedmemory/region/{{region}}/{action}"]


def _region(request: Request) -> str:
    """Return the region that the path names, "" for none."""
    parts: list[str] = request.scope["raw_path"].decode("latin-1").split("/")
    return parts[4] if parts[3] == "region" else ""


def _field(body: Any, name: str) -> Any:
    if not document.has(body, name):
        raise InvalidArgument(f"Shared memory register request has no '{name}' field")
    return body[name]


def _decoded(text: str) -> bytes:
    try:
        handle = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        handle = b""
    if len(handle) != _HANDLE_BYTES:
        raise InvalidArgument("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")
    return handle
