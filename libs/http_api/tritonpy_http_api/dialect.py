"""The paths and headers that a hosting service gives to the calls of Triton's protocol."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from tritonpy import InvalidArgument
from tritonpy_http_api.encode import HttpResponse
from tritonpy_http_api.infer_calls import Target

HEADER_LENGTH = b"inference-header-content-length"
_NUMBER = re.compile(rb"\s*[+-]?[0-9]+")
_INT32_MAX = 2**31 - 1
_PRINTED = 80


class Dialect(ABC):
    """Translates the calls of one hosting service.

    Inference calls do not pass through ASGI: `infer_target` recognizes them, and
    `translate_response` writes their responses. All other requests are passed to the dialect as an
    ASGI application.
    """

    @abstractmethod
    def infer_target(self, path: str, headers: Mapping[bytes, bytes]) -> Target | None:
        """Return model and version of a POST request that is an inference call, or None."""

    @abstractmethod
    def translate_headers(self, headers: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
        """Return the headers of an inference call as Triton's. Raises TritonError."""

    def translate_response(self, response: HttpResponse) -> HttpResponse:
        """Return the response of an inference call as the service expects it."""
        return response

    @abstractmethod
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request that is not an inference call, as an ASGI application does."""


def translate_binary_type(headers: Mapping[bytes, bytes], prefix: bytes) -> Mapping[bytes, bytes]:
    """Return the headers with the length of the JSON that the content type gives.

    The content type of binary tensors is `prefix` and the length. Raises InvalidArgument with
    Triton's text for another form.
    """
    content_type = headers.get(b"content-type", b"")
    if prefix not in content_type:
        return {name: value for name, value in headers.items() if name != HEADER_LENGTH}
    if not content_type.startswith(prefix):
        raise InvalidArgument(
            f"expect MIME type for binary data starts with '{prefix.decode()}', "
            f"got: {_printable(content_type)}"
        )
    length = content_type.removeprefix(prefix)
    number = _NUMBER.match(length)
    if number is None:
        raise InvalidArgument(f"Unable to parse inference header size, got: {_printable(length)}")
    if len(number[0]) > _PRINTED or abs(int(number[0])) > _INT32_MAX:
        raise InvalidArgument(
            "Unable to parse inference header size, value is out of range, got: "
            f"{_printable(length)}"
        )
    return {**headers, HEADER_LENGTH: number[0].strip()}


def forwarded(scope: Mapping[str, Any], method: str, path: str) -> dict[str, Any]:
    """Return the ASGI scope of the same request with another method and path."""
    raw_path = path.encode("latin-1", "replace")
    return {**scope, "method": method, "path": path, "raw_path": raw_path, "query_string": b""}


async def send_response(
    send: Any, status: int, body: bytes = b"", content_type: bytes = b"application/json"
) -> None:
    """Send a response through ASGI."""
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _printable(value: bytes) -> str:
    return value[:_PRINTED].decode("latin-1")
