"""The interface between pb_utils objects and the server."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

from .api.errors import TritonModelException
from .call_responses import failed
from .failure import failure_prefix

if TYPE_CHECKING:
    from .api.call import CallSpec
    from .api.response import InferenceResponse
    from .api.shared_arrays import Array, Named


class Host(ABC):
    """The server as seen by one running model. Any thread of the model may call any method."""

    name: str = ""  # the name of the instance, such as "add_0_0"
    model_directory: str = ""  # the version's folder, returned by get_model_dir()
    decoupled: bool = False
    executing: bool = False  # between initialize and finalize

    def check_executing(self) -> None:
        """Raise `TritonModelException` if the model is not ready and may not call other models."""
        if not self.executing:
            raise TritonModelException("BLS is only supported during the 'execute' function.")

    def free_shared_memory(self) -> int:
        """Return the unused bytes of shared memory for outputs, 0 without shared memory."""
        return 0

    def end_abandoned(self, request: int, begun: bool) -> None:
        """End a request whose sender was deleted.

        It gets an error, unless it has `begun`: it had a response that was not final.
        """
        if begun:
            self.send(request, None, True)
        else:
            text = failure_prefix(self.name) + "the model released the request without a response."
            self.log("ERROR", text)
            self.send(request, failed(text), True)

    @abstractmethod
    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        """Send a response of a received request. None with `final` only ends the request.

        A response that is not final waits until the client's stream has capacity, or the request is
        cancelled. In a coroutine of `execute`, the coroutine's next step waits instead. Raises
        `TritonModelException` if the response cannot be sent.
        """

    @abstractmethod
    def abandon(self, request: int) -> None:
        """Handle a request whose sender was deleted before its final response.

        The garbage collector calls this, from any thread and during any code: it may not lock or
        raise.
        """

    @abstractmethod
    def is_cancelled(self, request: int) -> bool:
        """Return true if the request was cancelled."""

    @abstractmethod
    def call(self, call: CallSpec) -> InferenceResponse:
        """Run a request on another model and wait for its response. Errors are in the response."""

    @abstractmethod
    def call_stream(self, call: CallSpec) -> Iterator[InferenceResponse]:
        """Run a request on a decoupled model.

        The iterator waits for each response and has a method `cancel`.
        """

    @abstractmethod
    def call_async(self, call: CallSpec) -> Awaitable[Any]:
        """Run a request for `async_exec`.

        Awaited on the running event loop, return a response or an iterator.
        """

    @abstractmethod
    def trace_context(self, request: int) -> str | None:
        """Return the trace context that the client sent with a received request, as JSON text."""

    @abstractmethod
    def share(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        """Return arrays that all instances share.

        The first one that needs `key` builds them. See `shared_arrays`.
        """

    @abstractmethod
    def log(self, level: str, message: str) -> None:
        """Write to the server's log. Levels are INFO, WARNING, ERROR and VERBOSE."""

    @abstractmethod
    def query(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Query the server and wait. Raises `TritonModelException` with the server's reason.

        Each line lists a verb, its arguments and its result:

        "metric_family" {name, description, kind: "COUNTER", "GAUGE" or "HISTOGRAM"}: its number.
        "metric" {family, labels: {text: text}, buckets: a list of numbers, or None}: its number.
        "metric_value" {metric}: a number.
        "load_model" {name, config: JSON text or empty, files: {path: content in base64}}: None.
        "unload_model" {name, unload_dependents}: None.
        "is_model_ready" {name, version: -1 is any}: true or false.
        """

    @abstractmethod
    def notify(self, verb: str, arguments: dict[str, Any]) -> None:
        """Notify the server without waiting, also in a destructor.

        "metric_add", "metric_set", "metric_observe" {metric, value}; "metric_drop",
        "metric_family_drop" {id}.
        """


# The host of the running code. A worker process has one. In the server's process, each call into a
# model sets its own. For threads that a model starts, the model's code on their stack has the host.
HOST_OF_CODE = "__tritonpy_host__"  # name of a builtin of a model's modules
_CURRENT: ContextVar[Host | None] = ContextVar("tritonpy_host", default=None)
_process_host: Host | None = None


def find() -> Host | None:
    """Return the host of the calling model, or None."""
    return _CURRENT.get() or _process_host or _of_code(sys._getframe())


@contextmanager
def using(host: Host) -> Iterator[None]:
    """Make `host` the current host in this context and in coroutines that its code starts."""
    token = _CURRENT.set(host)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Host:
    """Return the host of the calling model. Raises `RuntimeError` if no model calls."""
    host = find()
    if host is None:
        raise RuntimeError(
            "triton_python_backend_utils reaches the server only from a model that the server runs"
        )
    return host


def set_process_host(host: Host) -> None:
    """Set the only host of this process."""
    global _process_host
    _process_host = host


def _of_code(frame: FrameType | None) -> Host | None:
    while frame is not None:
        host: Host | None = frame.f_builtins.get(HOST_OF_CODE)
        if host is not None:
            return host
        frame = frame.f_back
    return None
