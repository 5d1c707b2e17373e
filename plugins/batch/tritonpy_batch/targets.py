"""Where requests go: a model in this process, a server, or HTTP paths of a server."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import urllib3
from google.protobuf.json_format import MessageToDict

from tritonpy import (
    DATATYPES,
    CallbackSink,
    Engine,
    InferRequest,
    InferResponse,
    Internal,
    InvalidArgument,
    NotFound,
    OutputSpec,
    RunningServer,
    Tensor,
    TritonError,
    Unavailable,
    now_ns,
    running_server,
)
from tritonpy_batch.model_interface import ModelInterface, read_interface
from tritonpy_batch.options import BatchOptions, InvalidJob
from tritonpy_batch.tasks import Done, HttpCall, HttpReply, TensorTask, Work
from tritonpy_config.server.relative_paths import anchor_paths
from tritonpy_config.server.server_yaml import read_server_yaml

MAX_CONNECTIONS = 64
_TIMEOUT = urllib3.Timeout(connect=10, read=600)
NO_SOCKETS = {"http": False, "grpc": False, "metrics": False}


class ServerLost(Unavailable):
    """The server cannot be reached, so that no row is to blame."""


class JobTarget(ABC):
    """Takes requests from any thread. `limit` is the highest number that may be in flight."""

    limit = 256

    @abstractmethod
    def submit(self, work: Work, done: Done) -> None:
        """Start a request; `done` is called exactly once, perhaps before this returns."""

    def busy_ns(self) -> int:
        """Return how long instances have executed requests in all, 0 if unknown."""
        return 0


class EngineTarget(JobTarget):
    """A model of an engine in this process."""

    def __init__(self, engine: Engine, options: BatchOptions) -> None:
        self._engine = engine
        self._name, self._version = options.model, options.version
        self._task: TensorTask | None = None
        self._outputs: dict[str, OutputSpec] | None = None

    def interface(self) -> ModelInterface:
        """Return the interface of the model. Raises InvalidJob if there is no such model."""
        try:
            metadata = self._engine.model_metadata(self._name, self._version)
        except NotFound as error:
            known = ", ".join(sorted(each.name for each in self._engine.repository_index()))
            raise InvalidJob(f"{error.message}; the repository has: {known}") from error
        config = self._engine.model_config(self._name, self._version)
        return read_interface(
            msgspec.to_builtins(metadata),
            MessageToDict(config, preserving_proto_field_name=True),
        )

    def use(self, task: TensorTask, outputs: Mapping[str, int]) -> None:
        """Send requests of `task` for these outputs, with a number of classes or 0."""
        self._task = task
        self._outputs = {name: OutputSpec(name, top) for name, top in outputs.items()}

    def submit(self, work: Work, done: Done) -> None:
        """Start an inference."""
        task = self._task
        if task is None:
            raise RuntimeError("call use() first")

        def deliver(_: InferRequest, response: InferResponse) -> None:
            if response.error is not None:
                done(None, response.error)
            else:
                done({tensor.name: tensor for tensor in response.outputs}, None)

        request = InferRequest(
            self._name,
            task.tensors(work),
            CallbackSink(deliver),
            model_version=self._version,
            outputs=self._outputs,
            classifies=any(each.classification for each in (self._outputs or {}).values()),
            received_ns=now_ns(),
        )
        try:
            self._engine.infer(request)
        except TritonError as error:
            done(None, error)

    def busy_ns(self) -> int:
        """Return the time in executions of the model."""
        return sum(
            each.inference_stats.compute_infer.ns
            for each in self._engine.statistics(self._name)
        )  # fmt: skip


class HttpClient:
    """Calls a server over HTTP on connections that stay open. Raises ServerLost."""

    def __init__(self, url: str, headers: Sequence[tuple[str, str]], ca_file: str = "") -> None:
        self._base = (url if "://" in url else f"http://{url}").rstrip("/")
        self._headers = dict(headers)
        self._pool = urllib3.PoolManager(
            num_pools=1, maxsize=MAX_CONNECTIONS, retries=False, timeout=_TIMEOUT,
            ca_certs=ca_file or None,
        )  # fmt: skip

    def call(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        """Send a request and return the complete response."""
        try:
            return self._pool.request(
                method,
                f"{self._base}{path}",
                body=body,
                headers={**self._headers, **(headers or {})},
            )
        except urllib3.exceptions.HTTPError as error:
            raise ServerLost(f"{self._base}: {error}") from error

    def read(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path."""
        response = self.call("GET", path)
        if response.status != 200:
            raise InvalidJob(
                f"{self._base}{path}: status {response.status}: {_error_text(response)}"
            )
        return dict(json.loads(response.data))

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()


class ThreadedTarget(JobTarget):
    """Sends requests from threads, one for each in flight."""

    limit = MAX_CONNECTIONS

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._threads = ThreadPoolExecutor(MAX_CONNECTIONS, thread_name_prefix="batch-http")

    def submit(self, work: Work, done: Done) -> None:
        """Start a request."""
        self._threads.submit(self._run, work, done)

    def _run(self, work: Work, done: Done) -> None:
        try:
            result = self._exchange(work)
        except TritonError as error:
            done(None, error)
        except Exception as error:
            done(None, Internal(f"{type(error).__name__}: {error}"))
        else:
            done(result, None)

    @abstractmethod
    def _exchange(self, work: Work) -> Any:
        """Send a request and return the result. Raises TritonError."""

    def close(self) -> None:
        """Wait for requests in flight and close the connections."""
        self._threads.shutdown()
        self._client.close()


class RemoteTarget(ThreadedTarget):
    """A model of a server of the v2 protocol, with tensors in binary form."""

    def __init__(self, client: HttpClient, options: BatchOptions) -> None:
        super().__init__(client)
        version = f"/versions/{options.version}" if options.version > 0 else ""
        self._path = f"/v2/models/{quote(options.model, safe='')}{version}"
        self._task: TensorTask | None = None
        self._outputs: list[dict[str, Any]] = []

    def interface(self) -> ModelInterface:
        """Return the interface of the model."""
        metadata = self._client.read(self._path)
        return read_interface(metadata, self._client.read(f"{self._path}/config"))

    def use(self, task: TensorTask, outputs: Mapping[str, int]) -> None:
        """Send requests of `task` for these outputs, with a number of classes or 0."""
        self._task = task
        self._outputs = [
            {
                "name": name,
                "parameters": {"binary_data": True, **({"classification": top} if top else {})},
            }
            for name, top in outputs.items()
        ]

    def _exchange(self, work: Work) -> dict[str, Tensor]:
        if self._task is None:
            raise RuntimeError("call use() first")
        tensors = self._task.tensors(work).values()
        contents = [each.data.tobytes() for each in tensors]
        document = {
            "inputs": [
                {
                    "name": each.name, "datatype": each.datatype, "shape": list(each.shape),
                    "parameters": {"binary_data_size": len(content)},
                }
                for each, content in zip(tensors, contents, strict=True)
            ],
            "outputs": self._outputs,
        }  # fmt: skip
        text = msgspec.json.encode(document)
        headers = {
            "Inference-Header-Content-Length": str(len(text)),
            "Content-Type": "application/octet-stream",
        }
        response = self._client.call(
            "POST", f"{self._path}/infer", b"".join((text, *contents)), headers
        )
        if response.status != 200:
            kind = Unavailable if response.status in (429, 503) else InvalidArgument
            raise (Internal if response.status >= 500 and kind is InvalidArgument else kind)(
                _error_text(response)
            )
        return _decode_outputs(response)


class RequestTarget(ThreadedTarget):
    """Sends the requests of an OpenAI batch file to the paths that they name.

    Paths below /v2/ go to `protocol`, the client of another port, if there is one.
    """

    def __init__(self, client: HttpClient, protocol: HttpClient | None = None) -> None:
        super().__init__(client)
        self._protocol = protocol or client

    def _exchange(self, work: Work) -> HttpReply:
        call: HttpCall = work.payload
        client = self._protocol if call.url.startswith("/v2/") else self._client
        response = client.call(
            call.method.upper(), call.url, bytes(call.body), {"Content-Type": "application/json"}
        )
        if response.status in (429, 503):
            raise Unavailable(_error_text(response))
        try:
            body = msgspec.json.decode(response.data)
        except msgspec.DecodeError:
            body = response.data.decode("utf-8", "replace")
        request_id = response.headers.get("x-request-id", "")
        return HttpReply(response.status, request_id, body)


def _decode_outputs(response: urllib3.BaseHTTPResponse) -> dict[str, Tensor]:
    size = response.headers.get("Inference-Header-Content-Length")
    data = memoryview(response.data)
    at = len(data) if size is None else int(size)
    found = {}
    for output in json.loads(bytes(data[:at])).get("outputs", ()):
        name, datatype, shape = output["name"], output["datatype"], tuple(output["shape"])
        if datatype not in DATATYPES:
            raise InvalidArgument(f"output '{name}' has the unknown datatype {datatype}")
        binary = output.get("parameters", {}).get("binary_data_size")
        if binary is None:
            raise InvalidArgument(f"output '{name}' is not in binary form")
        found[name] = Tensor.from_buffer(name, datatype, shape, data[at : at + binary])
        at += binary
    return found


def _error_text(response: urllib3.BaseHTTPResponse) -> str:
    try:
        document = json.loads(response.data)
        error = document.get("error") or document.get("detail")
        if isinstance(error, Mapping):
            error = error.get("message")
    except (ValueError, AttributeError):
        error = None
    return str(error or response.data[:200].decode("utf-8", "replace") or response.status)


@contextmanager
def open_model(options: BatchOptions) -> Iterator[EngineTarget | RemoteTarget]:
    """Yield the model of a job: of the server at `url`, or of a server without sockets in here.

    Raises InvalidJob, and StartupError if the model cannot be loaded.
    """
    if options.url:
        target = RemoteTarget(HttpClient(options.url, options.headers, options.ca_file), options)
        try:
            yield target
        finally:
            target.close()
        return
    with running_model(options, NO_SOCKETS) as server:
        yield EngineTarget(server.engine, options)


@contextmanager
def open_requests(options: BatchOptions) -> Iterator[RequestTarget]:
    """Yield where the requests of an OpenAI batch file go.

    Without `url` a server on a free port of this machine serves them. Raises as `open_model`.
    """
    if options.url:
        target = RequestTarget(HttpClient(options.url, options.headers, options.ca_file))
        try:
            yield target
        finally:
            target.close()
        return
    local = {"host": "127.0.0.1", "port": 0}
    with running_model(options, {**NO_SOCKETS, "http": local, "openai": local}) as server:
        protocol = HttpClient(server.http, ())
        target = RequestTarget(HttpClient(server.address("openai"), ()), protocol)
        try:
            yield target
        finally:
            target.close()
            protocol.close()


@contextmanager
def running_model(options: BatchOptions, frontends: Mapping[str, Any]) -> Iterator[RunningServer]:
    """Yield a server in this process that has only the model of the options.

    Raises as `open_model`.
    """
    if options.server_yaml:
        file = Path(options.server_yaml)
        config = anchor_paths(read_server_yaml(file)[0], file.resolve().parent)
    else:
        config = {"repositories": [{"url": options.repository or "models"}]}
    if not isinstance(config, dict):
        raise InvalidJob(f"--config {options.server_yaml}: expected a mapping")
    config["frontends"] = dict(frontends)
    config["control"] = {**config.get("control", {}), "mode": "explicit", "load": [options.model]}
    with running_server(config) as server:
        yield server
