"""The routes of shared memory as Litestar handlers."""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from litestar import Request, Response, get, post

from tritonpy import Engine, InvalidArgument
from tritonpy.frontend import CudaRegion, RegionKind, SystemRegion
from tritonpy_http_api import json_document as document
from tritonpy_http_api.generate.body import BodyReader

_HANDLE_BYTES = 64


class SharedMemoryRoutes:
    """Routes for system and CUDA shared memory.

    They return the status, register and unregister, for one region or all.

    As in Triton, the name of a region is not unescaped.
    """

    def __init__(self, engine: Engine, bodies: BodyReader) -> None:
        self._engine = engine
        self._bodies = bodies

    def handlers(self) -> list[Any]:
        """Return the route handlers for a Litestar application."""
        return [
            *self._handlers(RegionKind.SYSTEM, self._register_system),
            *self._handlers(RegionKind.CUDA, self._register_cuda),
        ]

    def _handlers(self, kind: RegionKind, register: Callable[[str, Any], None]) -> list[Any]:
        engine = self._engine

        @get(_paths(kind, "status"), name=f"{kind} shared memory status", sync_to_thread=False)
        def status(request: Request[Any, Any, Any]) -> list[SystemRegion | CudaRegion]:
            """List the registered regions."""
            return list(engine.regions(kind, _region(request)))

        @post(_paths(kind, "register"), name=f"{kind} shared memory register", status_code=200)
        async def register_region(request: Request[Any, Any, Any]) -> Response[str]:
            """Register a region for inputs and outputs."""
            name = _region(request)
            await asyncio.to_thread(engine.check_region, kind, name)
            await asyncio.to_thread(
                register,
                name,
                document.parse(await self._bodies.management_body(request.scope, request.receive)),
            )
            return _done()

        @post(
            _paths(kind, "unregister"),
            name=f"{kind} shared memory unregister",
            status_code=200,
            sync_to_thread=False,
        )
        def unregister(request: Request[Any, Any, Any]) -> Response[str]:
            """Unregister a region, or all. Requests in flight keep using it."""
            engine.unregister_regions(kind, _region(request))
            return _done()

        return [status, register_region, unregister]

    def _register_system(self, name: str, body: Any) -> None:
        key = document.as_string(_field(body, "key"))
        offset = document.as_uint(body["offset"]) if document.has(body, "offset") else 0
        byte_size = document.as_uint(_field(body, "byte_size"))
        self._engine.register_system_region(name, key, offset, byte_size)

    def _register_cuda(self, name: str, body: Any) -> None:
        handle = document.as_string(document.member(_field(body, "raw_handle"), "b64"))
        byte_size = document.as_uint(document.member(body, "byte_size"))
        device_id = document.as_uint(document.member(body, "device_id"))
        self._engine.register_cuda_region(name, _decode_handle(handle), device_id, byte_size)


def _paths(kind: RegionKind, action: str) -> list[str]:
    return [
        f"/v2/{kind}sharedmemory/{action}",
        f"/v2/{kind}sharedmemory/region/{{region:str}}/{action}",
    ]


def _region(request: Request[Any, Any, Any]) -> str:
    """Return the region in the path, "" for none."""
    parts: list[str] = request.scope["raw_path"].decode("latin-1").split("/")
    return parts[4] if parts[3] == "region" else ""


def _field(body: Any, name: str) -> Any:
    if not document.has(body, name):
        raise InvalidArgument(f"Shared memory register request has no '{name}' field")
    return body[name]


def _decode_handle(text: str) -> bytes:
    try:
        handle = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        handle = b""
    if len(handle) != _HANDLE_BYTES:
        raise InvalidArgument("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")
    return handle


def _done() -> Response[str]:
    return Response("", status_code=200, media_type="application/json")
