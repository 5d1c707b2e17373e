"""What a model needs of the world outside: the way from the pb_utils objects to the server."""

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
from .failure import failure_of

if TYPE_CHECKING:
    from .api.call import CallSpec
    from .api.response import InferenceResponse
    from .api.shared_arrays import Array, Named


class Host(ABC):
    """The server as one running model sees it; every method may be called from any thread of the model."""

    name: str = ""  # of the instance, as in "add_0_0"
    model_directory: str = ""  # what get_model_dir() returns: the folder of the version
    decoupled: bool = False
    executing: bool = False  # between initialize and finalize

    def check_executing(self) -> None:
        """Raise TritonModelException where the model may not call others: it is not ready, or not any more."""
        if not self.executing:
            raise TritonModelException("BLS is only supported during the 'execute' function.")

    def free_shared_memory(self) -> int:
        """Return how many bytes of shared memory are kept for outputs and not used now; there are none where tensors are passed as they are."""
        return 0

    def end_abandoned(self, request: int, begun: bool) -> None:
        """Give a request that the model let go of the final answer that it owes: an error, unless it has `begun` to answer."""
        if begun:
            self.send(request, None, True)
        else:
            text = failure_of(self.name) + "the model let go of the request without answering it."
            self.log("ERROR", text)
            self.send(request, failed(text), True)

    @abstractmethod
    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        """Send one answer of the received request of that number; None with `final` only ends it.

        An answer that is not final waits until the client's stream has room for it, or the request is cancelled; in a coroutine of `execute`
        the coroutine waits, at its next step. Raises TritonModelException when the answer cannot be sent.
        """

    @abstractmethod
    def abandon(self, request: int) -> None:
        """Take note that the model let go of a request's sender without the final answer: nobody can send it any more.

        Called by the garbage collector, from any thread and in the middle of anything: it may take no lock and must not raise.
        """

    @abstractmethod
    def is_cancelled(self, request: int) -> bool:
        """Say whether the client gave the request up."""

    @abstractmethod
    def call(self, call: CallSpec) -> InferenceResponse:
        """Run a request on another model and wait for its one response; errors come back inside the response."""

    @abstractmethod
    def call_stream(self, call: CallSpec) -> Iterator[InferenceResponse]:
        """Run a request on a decoupled model: the iterator waits for each response and has a method `cancel`."""

    @abstractmethod
    def call_async(self, call: CallSpec) -> Awaitable[Any]:
        """The same for `async_exec`: awaited on the running event loop, it gives a response, or an iterator of them."""

    @abstractmethod
    def trace_context(self, request: int) -> str | None:
        """Return the context that the client propagated with the received request of that number, as JSON text."""

    @abstractmethod
    def share(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        """Return arrays that all instances of the model have in common; the first that asks for `key` builds them. See `shared_arrays`."""

    @abstractmethod
    def log(self, level: str, message: str) -> None:
        """Write to the server's log: INFO, WARNING, ERROR or VERBOSE."""

    @abstractmethod
    def ask(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Ask the server and wait. Raises TritonModelException with the server's reason.

        "metric_family" {name, description, kind: "COUNTER", "GAUGE" or "HISTOGRAM"}: its number.
        "metric" {family, labels: {text: text}, buckets: a list of numbers, or None}: its number.
        "metric_value" {metric}: a number.
        "load_model" {name, config: JSON text, empty for none, files: {path: content in base64}}: None.
        "unload_model" {name, unload_dependents}: None.
        "is_model_ready" {name, version: -1 is any}: true or false.
        """

    @abstractmethod
    def tell(self, verb: str, arguments: dict[str, Any]) -> None:
        """Tell the server and go on; a destructor may do so too, in the middle of anything.

        "metric_add", "metric_set", "metric_observe" {metric, value}; "metric_drop", "metric_family_drop" {id}.
        """


# Which host the code that runs now belongs to. A worker process has one for good; in the server's own process each call into a model sets its own,
# and threads that a model starts are known by the model's code that they run.
HOST_OF_CODE = "__tritonpy_host__"  # its name among the builtins of a model's modules
_CURRENT: ContextVar[Host | None] = ContextVar("tritonpy_host", default=None)
_process_host: Host | None = None


def find() -> Host | None:
    """Return the host of the calling model, None where no model runs."""
    return _CURRENT.get() or _process_host or _of_code(sys._getframe())


@contextmanager
def using(host: Host) -> Iterator[None]:
    """Let the code inside, and coroutines that it starts, belong to `host`."""
    token = _CURRENT.set(host)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Host:
    """Return the host of the calling model; raises RuntimeError where no model runs."""
    host = find()
    if host is None:
        raise RuntimeError("triton_python_backend_utils reaches the server only from within a model that it runs")
    return host


def set_process_host(host: Host) -> None:
    """Make `host` the only one of this process."""
    global _process_host
    _process_host = host


def _of_code(frame: FrameType | None) -> Host | None:
    while frame is not None:
        host: Host | None = frame.f_builtins.get(HOST_OF_CODE)
        if host is not None:
            return host
        frame = frame.f_back
    return None
