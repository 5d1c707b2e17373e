"""SageMaker's routes, content type and statuses."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tritonpy import AlreadyExists, Code, TritonError
from tritonpy.frontend import internal_error
from tritonpy_frontend_sagemaker.model_store import ModelStore, UnknownModel
from tritonpy_frontend_sagemaker.options import SageMakerOptions
from tritonpy_http_api import json_document as document
from tritonpy_http_api.dialect import (
    HEADER_LENGTH,
    Dialect,
    forwarded,
    send_response,
    translate_binary_type,
)
from tritonpy_http_api.encode import HttpResponse, encode_error
from tritonpy_http_api.errors import error_body, status_of
from tritonpy_http_api.http_service import HttpService
from tritonpy_http_api.infer_calls import Target

BINARY_TYPE = b"application/vnd.sagemaker-triton.binary+json;json-header-size="
_TARGET_MODEL = b"x-amzn-sagemaker-target-model"
_MODELS = re.compile(r"/models(?:/)?(?P<name>[^/]+)?(?P<invoke>/invoke)?")
_OUT_OF_MEMORY_STATUS = 507  # SageMaker then unloads models that are not in use
# Statuses that stay; all other errors get 400.
_KEPT_STATUSES = frozenset({401, 403, 405, 413, 415, 429, 503, _OUT_OF_MEMORY_STATUS})
# Texts that report a lack of memory, from frameworks and from the operating system.
_OUT_OF_MEMORY = re.compile(
    rb"(?i:out of memory|outofmemory|failed to allocate memory|no space left on device"
    rb"|(?:dst|src) tensor is not initialized)"
    rb"|MemoryError|CUDA_OUT_OF_MEMORY|\bOOM\b|CNMEM_STATUS_OUT_OF_MEMORY"
    rb"|CUDNN_STATUS_NOT_INITIALIZED|CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
)


class SageMakerDialect(Dialect):
    """Serves `/ping`, `/invocations` and `/models` with the calls of Triton's protocol."""

    def __init__(
        self,
        store: ModelStore,
        service: HttpService,
        options: SageMakerOptions,
        log: logging.Logger,
    ) -> None:
        self._store = store
        self._service = service
        self._options = options
        self._log = log

    def infer_target(self, path: str, headers: Mapping[bytes, bytes]) -> Target | None:
        """Return the default model, or the model of a multi-model endpoint."""
        if path == "/invocations":
            infers = self._options.inference_type == "infer"
            return (self._options.default_model, "") if infers else None
        call = _MODELS.fullmatch(path)
        if call is None or not call["invoke"] or not call["name"]:
            return None
        name = self._store.served_name(call["name"])
        if name is None:
            return None
        self._log.debug("Invoking SageMaker TargetModel: %s", name)
        return name, ""

    def translate_headers(self, headers: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
        """Read the length of the JSON from SageMaker's content type of binary tensors."""
        return translate_binary_type(headers, BINARY_TYPE)

    def translate_response(self, response: HttpResponse) -> HttpResponse:
        """Write the length of the JSON into the content type, and map the status of an error."""
        headers = dict(response.headers)
        if response.status != 200:
            status = _status(response.status, b"".join(response.parts))
            return HttpResponse(status, response.headers, response.parts, response.size)
        length = headers.pop(HEADER_LENGTH, None)
        if length is None:
            return response
        headers[b"content-type"] = BINARY_TYPE + length
        return HttpResponse(200, list(headers.items()), response.parts, response.size)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the other routes."""
        path, method = scope["path"], scope["method"]
        if path == "/ping":
            ping = forwarded(scope, method, f"/v2/health/{self._options.ping_mode}")
            await self._service.application(ping, receive, send)
        elif path == "/invocations":
            call = f"/v2/models/{self._options.default_model}/{self._options.inference_type}"
            await self._service.application(
                forwarded(scope, method, call), receive, _mapping_status(send)
            )
        elif (models := _MODELS.fullmatch(path)) is not None:
            try:
                await self._manage(models, scope, receive, send)
            except Exception as caught:
                await self._send_error(send, caught)
        else:
            await send_response(send, 400, error_body("Bad Request"))

    async def _manage(self, models: re.Match[str], scope: Any, receive: Any, send: Any) -> None:
        name, method = models["name"] or "", scope["method"]
        if models["invoke"]:  # inference calls of known models do not arrive here
            self._authorize(scope, f"/v2/models/{name}/infer")
            raise UnknownModel(name) if method == "POST" else _BadMethod(method)
        target = dict(scope["headers"]).get(_TARGET_MODEL, b"").decode("latin-1")
        if method == "GET":
            self._authorize(scope, "/v2/repository/index")
            listed = self._store.describe(name) if name else await self._store.list_models()
            await send_response(send, 200, msgspec.json.encode(listed))
        elif method == "POST" and not name:
            self._authorize(scope, "/v2/repository/index")
            body = await self._service.bodies.management_body(scope, receive)
            read = document.parse(body) if body else {}
            name, url = _text(read, "model_name"), _text(read, "url")
            # The target may be a path in the bucket, which is no name of a model.
            served = target if target and "/" not in target else name
            self._authorize(scope, f"/v2/repository/models/{served}/load")
            self._log.info("Loading SageMaker TargetModel: %s", target or name)
            await self._store.load(name, url, served)
            await send_response(send, 200)
        elif method == "DELETE":
            served = self._store.served_name(name) or name
            self._authorize(scope, f"/v2/repository/models/{served}/unload")
            await self._store.unload(name)
            await send_response(send, 200)
        else:
            raise _BadMethod(method)

    def _authorize(self, scope: Any, path: str) -> None:
        access = self._service.access
        if access is not None:
            refusal = access.check_request(forwarded(scope, "POST", path))
            if refusal is not None:
                raise refusal

    async def _send_error(self, send: Any, caught: Exception) -> None:
        if isinstance(caught, AlreadyExists):
            await send_response(send, 409, error_body(caught.message))
        elif isinstance(caught, UnknownModel):
            await send_response(send, 404, error_body(caught.message))
        else:
            error = (
                caught
                if isinstance(caught, TritonError)
                else internal_error(self._log, "a call of SageMaker", caught)
            )
            body, status = b"".join(encode_error(error).parts), status_of(error)
            if error.code is Code.RESOURCE_EXHAUSTED:
                status = _OUT_OF_MEMORY_STATUS
            await send_response(send, _status(status, body), body)


class _BadMethod(TritonError):
    """A method that a route does not have."""

    def __init__(self, method: str) -> None:
        super().__init__(f"Bad Request: unexpected method {method}")


def _text(read: Any, member: str) -> str:
    return document.as_string(read[member]) if document.has(read, member) else ""


def _status(status: int, body: bytes) -> int:
    """Return SageMaker's status of an error."""
    if _OUT_OF_MEMORY.search(body):
        return _OUT_OF_MEMORY_STATUS
    return status if status in _KEPT_STATUSES else 400


def _mapping_status(send: Any) -> Any:
    """Return an ASGI `send` that maps the status of an error response.

    The status depends on the body, so the head is sent with it.
    """
    head: Any = None

    async def send_mapped(message: Any) -> None:
        nonlocal head
        if message["type"] == "http.response.start" and message["status"] >= 400:
            head = message
            return
        if head is not None:
            await send({**head, "status": _status(head["status"], message.get("body", b""))})
            head = None
        await send(message)

    return send_mapped
