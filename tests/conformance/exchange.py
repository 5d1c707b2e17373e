"""Steps of exchanges as plain data: the same bytes for every server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf.message import Message

WAIT_S = 60.0
MEMORY_KEY = "conformance-00000"
CONTROL_KEY = ("Control-Key", "open sesame")
"""The header of the suite's own calls: a topic may restrict calls that the suite needs, too."""


@dataclass(frozen=True)
class Http:
    """An HTTP request with a timeout in seconds; "no answer" is also a valid result."""

    path: str
    body: bytes = b""
    method: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    timeout_s: float = WAIT_S

    def wire(self) -> bytes:
        """Return the bytes of the request; the default method is POST if there is a body."""
        method = self.method or ("POST" if self.body else "GET")
        head = [
            f"{method} {self.path} HTTP/1.1",
            "Host: localhost",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if self.body or method == "POST":
            head.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*head, "Connection: close", "", ""]).encode("latin-1") + self.body


@dataclass(frozen=True)
class Raw:
    """Bytes for one HTTP connection, and the methods of the requests in them, in order."""

    sent: bytes
    methods: tuple[str, ...] = ("POST",)
    timeout_s: float = WAIT_S


@dataclass(frozen=True)
class Grpc:
    """A unary gRPC call; `deadline` in seconds is sent to the server. `metadata` are its headers.

    `compression` applies to its messages: "gzip" or "deflate".
    """

    method: str
    message: Message
    deadline: float = WAIT_S
    metadata: tuple[tuple[str, str], ...] = ()
    compression: str = ""


@dataclass(frozen=True)
class Stream:
    """A ModelStreamInfer call, half-closed or cancelled after `cancel_after` responses."""

    messages: tuple[Message, ...]
    cancel_after: int | None = None
    timeout_s: float = WAIT_S
    metadata: tuple[tuple[str, str], ...] = ()
    compression: str = ""


@dataclass(frozen=True)
class Concurrent:
    """Concurrent steps; their responses are listed in this order."""

    steps: tuple[Http | Grpc | Stream, ...]


@dataclass(frozen=True)
class Metrics:
    """The samples of the metric families whose name starts with `prefix`."""

    prefix: str


@dataclass(frozen=True)
class Families:
    """Type, help and labeled samples of the metric families whose name starts with `prefix`.

    `values` includes the values of the samples.
    """

    prefix: str
    values: bool = False


@dataclass(frozen=True)
class LogLines:
    """The sorted log lines of the exchange from `marker` on, with their levels.

    The step waits for `count` lines.
    """

    marker: str
    count: int


@dataclass(frozen=True)
class ModelStatistics:
    """The statistics of one model, read until they count `requests` and are stable.

    The real Triton counts after it has responded.
    """

    model: str
    requests: int


@dataclass(frozen=True)
class IndexEntry:
    """The repository index entry of one model."""

    model: str


@dataclass(frozen=True)
class SharedMemorySteps:
    """Steps with a shared memory object, named `MEMORY_KEY` in requests.

    It has `byte_size` bytes that begin with `content`; its final bytes are part of the result. The
    regions are unregistered at the end.
    """

    content: bytes
    steps: tuple[Http | Grpc | Stream, ...]
    byte_size: int = 4096


Step = (
    Http
    | Raw
    | Grpc
    | Stream
    | Concurrent
    | Metrics
    | Families
    | LogLines
    | ModelStatistics
    | IndexEntry
    | SharedMemorySteps
)


@dataclass(frozen=True)
class Exchange:
    """Steps in order; `counted` maps models to the number of requests that they finish.

    The increments of their statistics and metrics are compared, too.
    """

    name: str
    steps: tuple[Step, ...]
    counted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Topic:
    """Exchanges that need the same models, which are loaded before and unloaded afterwards.

    `flags` are additional flags of both servers; servers with other flags are stopped first.
    """

    name: str
    models: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [exchange.name for exchange in self.exchanges]
        if len(set(names)) != len(names):
            raise ValueError(f"two exchanges of '{self.name}' have one name: {sorted(names)}")


def topic(
    name: str,
    models: str,
    exchanges: Iterable[Exchange | Sequence[Exchange]],
    flags: tuple[str, ...] = (),
) -> Topic:
    """Return the topic of exchanges and groups of them; `models` are names separated by spaces."""
    flat = [
        one for group in exchanges for one in ([group] if isinstance(group, Exchange) else group)
    ]
    return Topic(name, tuple(models.split()), tuple(flat), flags)


def get(path: str, **options: Any) -> Http:
    """Return a GET request."""
    return Http(path, **options)


def post(path: str, body: Any = None, **options: Any) -> Http:
    """Return a POST request; a body that is not bytes is sent as JSON."""
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Http(path, sent, "POST", **options)


def keyed(request: Http) -> Http:
    """Return the request with the header of the suite's own calls."""
    return replace(request, headers=(*request.headers, CONTROL_KEY))


def load(
    model: str, config: Mapping[str, Any] | None = None, files: Mapping[str, str] | None = None
) -> Http:
    """Return the request that loads a model; `files` are base64 strings by path."""
    parameters: dict[str, str] = {f"file:{path}": text for path, text in (files or {}).items()}
    if config is not None:
        parameters["config"] = json.dumps(config)
    return post(
        f"/v2/repository/models/{model}/load", {"parameters": parameters} if parameters else {}
    )


def unload(model: str) -> Http:
    """Return the request that unloads a model."""
    return post(f"/v2/repository/models/{model}/unload", {})
