"""Control client over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tritonpy import StartupError
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.control import (
    LOAD_TIMEOUT_S,
    TIMEOUT_S,
    ControlClient,
    JsonObject,
    RequestRejected,
)
from tritonpy_load_generator.target.metadata import ServerDescription
from tritonpy_load_generator.wire.address import Address, http_address
from tritonpy_load_generator.wire.tls import https_client_context


class HttpControlClient(ControlClient):
    """Sends control calls on one connection, which is reopened after the server closed it."""

    def __init__(self, options: LoadOptions) -> None:
        self._address = http_address(options)
        self._headers = dict(options.headers)
        self._connection = _connection(self._address, options)

    def server(self) -> ServerDescription:
        """Return the server's metadata."""
        plain = self._call("GET", "/v2")
        return ServerDescription(
            str(plain.get("name", "")),
            str(plain.get("version", "")),
            tuple(plain.get("extensions") or ()),
        )

    def metadata(self, model: str, version: str) -> JsonObject:
        """Return a model's metadata."""
        return self._call("GET", model_path(model, version))

    def config(self, model: str, version: str) -> JsonObject:
        """Return a model's configuration."""
        return self._call("GET", f"{model_path(model, version)}/config")

    def statistics(self, model: str, version: str) -> Sequence[JsonObject]:
        """Return a model's statistics, one entry per version; those of all models for ""."""
        path = f"{model_path(model, version)}/stats" if model else "/v2/models/stats"
        response = self._call("GET", path)
        return list(response.get("model_stats") or ())

    def load(self, model: str, config: JsonObject | None = None) -> None:
        """Load a model, with `config` instead of the configuration in its repository."""
        body = {} if config is None else {"parameters": {"config": json.dumps(config)}}
        self._connection.timeout = LOAD_TIMEOUT_S
        self._connection.close()  # the next request connects with the new timeout
        try:
            self._call("POST", f"/v2/repository/models/{quote(model)}/load", body)
        finally:
            self._connection.timeout = TIMEOUT_S
            self._connection.close()

    def infer(self, model: str, request: JsonObject) -> JsonObject:
        """Send an inference request with tensors as JSON, and return the response."""
        return self._call("POST", f"{model_path(model, '')}/infer", request)

    def register(self, region: str, key: str, byte_size: int) -> None:
        """Register system shared memory."""
        path = f"/v2/systemsharedmemory/region/{quote(region)}/register"
        self._call("POST", path, {"key": key, "offset": 0, "byte_size": byte_size})

    def unregister(self, region: str) -> None:
        """Unregister system shared memory."""
        self._call("POST", f"/v2/systemsharedmemory/region/{quote(region)}/unregister")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _call(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        status, content = self._exchange(method, self._address.prefix + path, body)
        if status == 200:
            plain = _plain(content)
            return plain if isinstance(plain, Mapping) else {}
        plain = _plain(content)
        text = plain.get("error") or plain.get("detail") if isinstance(plain, Mapping) else None
        raise RequestRejected(
            (
                f"{method} {path} failed with {status}: "
                f"{text or content.decode('utf-8', 'replace')[:200]}"
            ),
            missing=status in {400, 404, 405, 501},
        )

    def _exchange(self, method: str, path: str, body: JsonObject | None) -> tuple[int, bytes]:
        for attempt in (1, 2):
            try:
                headers = {**self._headers, "Content-Type": "application/json"}
                self._connection.request(
                    method, path, None if body is None else json.dumps(body), headers
                )
                response = self._connection.getresponse()
                return response.status, response.read()
            except (http.client.HTTPException, OSError) as error:
                self._connection.close()
                if isinstance(error, http.client.BadStatusLine) and not isinstance(error, OSError):
                    raise StartupError(
                        f"the server at {self._address} does not speak HTTP: "
                        "is it a gRPC port (-i grpc)?"
                    ) from error
                if attempt == 2 or isinstance(error, ConnectionRefusedError):
                    raise StartupError(
                        f"cannot reach a server over HTTP at {self._address}: "
                        f"{error or type(error).__name__}"
                    ) from error
        raise AssertionError("two attempts end with a response or an error")


def model_path(model: str, version: str) -> str:
    """Return the path of a model, or of one version of it."""
    return f"/v2/models/{quote(model, safe='')}" + (f"/versions/{version}" if version else "")


def _connection(address: Address, options: LoadOptions) -> http.client.HTTPConnection:
    if address.tls:
        context = https_client_context(options)
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=TIMEOUT_S, context=context
        )
    return http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)


def _plain(content: bytes) -> Any:
    try:
        return json.loads(content or b"{}")
    except ValueError:
        return {}
