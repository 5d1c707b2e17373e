"""What is said to a server: plain data, the same bytes for every server that is asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf.message import Message

PATIENCE_S = 60.0
MEMORY_KEY = "conformance-00000"
CONTROL_KEY = ("Control-Key", "open sesame")
"""The header of the suite's own calls: a topic may restrict by it what they need too."""


@dataclass(frozen=True)
class Http:
    """One HTTP request. `patience` is how long its answer is waited for, in seconds; "no answer" is an answer too."""

    path: str
    body: bytes = b""
    method: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    patience: float = PATIENCE_S

    def wire(self) -> bytes:
        """Return the request as it is sent; POST where no method is named and there is a body."""
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
    """Bytes for one HTTP connection, and the methods of the requests in them that are answered, in order."""

    sent: bytes
    methods: tuple[str, ...] = ("POST",)
    patience: float = PATIENCE_S


@dataclass(frozen=True)
class Grpc:
    """One unary gRPC call; `deadline` in seconds travels with it, the server learns of it. `metadata` are its headers.

    `compression` is that of its messages: "gzip" or "deflate".
    """

    method: str
    message: Message
    deadline: float = PATIENCE_S
    metadata: tuple[tuple[str, str], ...] = ()
    compression: str = ""


@dataclass(frozen=True)
class Stream:
    """One ModelStreamInfer call. It is half-closed after its last message, or cancelled after `cancel_after` answers."""

    messages: tuple[Message, ...]
    cancel_after: int | None = None
    patience: float = PATIENCE_S
    metadata: tuple[tuple[str, str], ...] = ()
    compression: str = ""


@dataclass(frozen=True)
class Together:
    """Steps that are under way at the same time; their answers are listed in this order."""

    steps: tuple[Http | Grpc | Stream, ...]


@dataclass(frozen=True)
class Metrics:
    """The samples of the metric families whose name starts with `prefix`."""

    prefix: str


@dataclass(frozen=True)
class Families:
    """Type, help and samples with their labels, of every metric family whose name starts with `prefix`; the samples' values only if asked for."""

    prefix: str
    values: bool = False


@dataclass(frozen=True)
class LogLines:
    """The lines of the server's log since the exchange began that contain `marker`: their level and their text from there on, sorted.
    They are waited for until there are `count`."""

    marker: str
    count: int


@dataclass(frozen=True)
class Counted:
    """The statistics of one model, asked for until they count `requests` and rest: the real Triton counts after it has answered."""

    model: str
    requests: int


@dataclass(frozen=True)
class Listed:
    """What the repository index says of one model."""

    model: str


@dataclass(frozen=True)
class WithMemory:
    """Steps that have an object of shared memory at hand, called `MEMORY_KEY` in what is sent, of `byte_size` bytes that begin with
    `content`; its bytes afterwards are part of the answer. The regions are unregistered in the end."""

    content: bytes
    steps: tuple[Http | Grpc | Stream, ...]
    byte_size: int = 4096


Step = Http | Raw | Grpc | Stream | Together | Metrics | Families | LogLines | Counted | Listed | WithMemory


@dataclass(frozen=True)
class Exchange:
    """Steps that are taken one after the other. `counted` names models and how many requests each of them finishes meanwhile:
    what its statistics and metrics grow by is compared too."""

    name: str
    steps: tuple[Step, ...]
    counted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Topic:
    """Exchanges that need the same models; those are loaded for them and unloaded afterwards. `flags` are what both servers are
    started with besides; servers with other flags are ended for it."""

    name: str
    models: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [exchange.name for exchange in self.exchanges]
        if len(set(names)) != len(names):
            raise ValueError(f"two exchanges of '{self.name}' have one name: {sorted(names)}")


def topic(
    name: str, models: str, exchanges: Iterable[Exchange | Sequence[Exchange]], flags: tuple[str, ...] = ()
) -> Topic:
    """Return the topic of exchanges and groups of them; `models` are names with spaces between them."""
    flat = [one for group in exchanges for one in ([group] if isinstance(group, Exchange) else group)]
    return Topic(name, tuple(models.split()), tuple(flat), flags)


def get(path: str, **options: Any) -> Http:
    """Return a GET request."""
    return Http(path, **options)


def post(path: str, body: Any = None, **options: Any) -> Http:
    """Return a POST request; what is not bytes is sent as JSON."""
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Http(path, sent, "POST", **options)


def keyed(request: Http) -> Http:
    """Return the request as one of the suite's own calls."""
    return replace(request, headers=(*request.headers, CONTROL_KEY))


def load(model: str, config: Mapping[str, Any] | None = None, files: Mapping[str, str] | None = None) -> Http:
    """Return the request that loads a model; `files` are texts in base64."""
    parameters: dict[str, str] = {f"file:{path}": text for path, text in (files or {}).items()}
    if config is not None:
        parameters["config"] = json.dumps(config)
    return post(f"/v2/repository/models/{model}/load", {"parameters": parameters} if parameters else {})


def unload(model: str) -> Http:
    """Return the request that unloads a model."""
    return post(f"/v2/repository/models/{model}/unload", {})
