"""Requests: those that a model receives, and those that it makes to other models."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import host as hosts
from .arguments import (
    argument_type_error,
    cast_error,
    has_truth_value,
    is_integer,
    is_sequence_of,
    text,
)
from .call import CallSpec
from .constants import TRITONSERVER_REQUEST_RELEASE_ALL
from .errors import TritonModelException
from .parameters import Parameters, as_received_text, as_text, check_parameters
from .preferred_memory import PreferredMemory
from .response_iterator import ResponseIterator
from .response_sender import InferenceResponseSender
from .tensor import Tensor
from .trace import InferenceTrace

if TYPE_CHECKING:
    from ..host import Host

_SIGNATURE = (
    "c_python_backend_utils.InferenceRequest(request_id: str = '', correlation_id: object = 0, "
    "inputs: list[c_python_backend_utils.Tensor], requested_output_names: list[str], model_name: "
    "str, "
    "model_version: int = -1, flags: int = 0, timeout: int = 0, "
    "preferred_memory: c_python_backend_utils.PreferredMemory = "
    "<c_python_backend_utils.PreferredMemory object>, "
    "trace: c_python_backend_utils.InferenceTrace = <c_python_backend_utils.InferenceTrace "
    "object>, "
    "parameters: object = None)"
)
_SELF = "self: c_python_backend_utils.InferenceRequest"
_TYPES: dict[str, Callable[[Any], bool]] = {
    "request_id": lambda given: text(given) is not None,
    "correlation_id": lambda given: given is not None,
    "inputs": lambda given: is_sequence_of(given, Tensor, type(None)),
    "requested_output_names": lambda given: is_sequence_of(given, str),
    "model_name": lambda given: text(given) is not None,
    "model_version": lambda given: is_integer(given, -(1 << 63), 64),
    "flags": lambda given: is_integer(given, 0, 32),
    "timeout": lambda given: is_integer(given, 0, 64),
    "preferred_memory": lambda given: given is None or isinstance(given, PreferredMemory),
    "trace": lambda given: given is None or isinstance(given, InferenceTrace),
}
_making_sender = Lock()


class _Target(NamedTuple):
    """The target of a request that the model makes."""

    model_name: str
    model_version: int
    preferred_memory: PreferredMemory | None
    trace: InferenceTrace


class InferenceRequest:
    """Inputs, requested outputs, and metadata of a request.

    A received request has a `_number` from the runtime. A request that the model makes has
    `_number` None and a `_target`.
    """

    __module__ = "c_python_backend_utils"
    __slots__ = (
        "__weakref__",
        "_correlation_id",
        "_flags",
        "_host",
        "_inputs",
        "_number",
        "_output_names",
        "_parameters",
        "_release_flags",
        "_request_id",
        "_sender",
        "_target",
        "_timeout",
    )

    def __init__(
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] | None = None,  # required; the position is Triton's
        requested_output_names: Sequence[str] | None = None,
        model_name: str | None = None,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        """Create a request to another model of the server.

        `timeout` is in microseconds. With version -1 the server chooses. Raises `TypeError` for
        arguments of wrong types, and `TritonModelException` for None or empty names in lists and
        bad parameters.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        if not all([fits(given[name]) for name, fits in _TYPES.items()]):
            raise argument_type_error("__init__", _SIGNATURE, **given)
        self._parameters: Parameters = check_parameters(parameters)
        self._correlation_id = _correlation_id(correlation_id)
        self._inputs: Sequence[Tensor] = _present("Input tensor", inputs, request_id, model_name)
        self._output_names: Collection[str] = _present(
            "Requested output name", requested_output_names, request_id, model_name
        )
        self._request_id = str(text(request_id))
        self._flags = int(flags)
        self._timeout = int(timeout)
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        self._host = hosts.find()
        self._number: int | None = None
        self._target = _Target(
            str(text(model_name)), int(model_version), preferred_memory, trace or InferenceTrace()
        )
        self._sender: InferenceResponseSender | None = None

    @classmethod
    def received(
        cls,
        host: Host,
        number: int,
        request_id: str,
        correlation_id: int | str,
        inputs: Sequence[Tensor],
        output_names: Collection[str],
        parameters: Parameters,
        flags: int,
        timeout: int,
    ) -> InferenceRequest:
        """Return the received request with the runtime's `number`.

        `output_names` names all outputs to send, `timeout` is in microseconds. A request of a
        decoupled model has its sender from the start: deleting the sender informs the host that
        no more responses can come.
        """
        request = cls.__new__(cls)
        request._host = host
        request._number = number
        request._request_id = request_id
        request._correlation_id = correlation_id
        request._inputs = inputs
        request._output_names = output_names
        request._parameters = parameters
        request._flags = flags
        request._timeout = timeout
        request._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        request._sender = (
            InferenceResponseSender(host, number, output_names) if host.decoupled else None
        )
        return request

    @property
    def number(self) -> int | None:
        """The runtime's number of a received request."""
        return self._number

    @property
    def output_names(self) -> Collection[str]:
        """The names of the outputs to send."""
        return self._output_names

    @property
    def release_flags(self) -> int:
        """What to do with a received request after `execute` returned."""
        return self._release_flags

    def inputs(self) -> list[Tensor]:
        """Return the inputs."""
        return list(self._inputs)

    def request_id(self) -> str:
        """Return the client's ID of the request, which may be empty."""
        return self._request_id

    def correlation_id(self) -> int | str:
        """Return the sequence of the request; 0 and the empty string mean none."""
        return self._correlation_id

    def flags(self) -> int:
        """Return the flags TRITONSERVER_REQUEST_FLAG_*."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        """Set the flags. Raises `TypeError` for anything but an unsigned 32-bit integer."""
        self._flags = _flags("set_flags", self, flags)

    def timeout(self) -> int:
        """Return the timeout in microseconds, 0 for none."""
        return self._timeout

    def parameters(self) -> str:
        """Return the parameters as JSON text."""
        return (
            as_text(self._parameters)
            if self._number is None
            else as_received_text(self._parameters)
        )

    def trace(self) -> InferenceTrace:
        """Return the trace of the request, for requests that are made on its behalf."""
        if self._number is None or self._host is None:
            return self._target.trace
        return InferenceTrace.received(self._host, self._number)

    def requested_output_names(self) -> set[str]:
        """Return the names of the outputs to send."""
        return set(self._output_names)

    def set_release_flags(self, flags: int) -> None:
        """Set TRITONSERVER_REQUEST_RELEASE_* flags for the time after `execute`.

        Raises `TypeError` for anything but an unsigned 32-bit integer.
        """
        self._release_flags = _flags("set_release_flags", self, flags)

    def get_response_sender(self) -> InferenceResponseSender:
        """Return the request's only sender.

        The sender of a request that the model made rejects all responses.
        """
        with _making_sender:
            if self._sender is None:
                host, number = (None, 0) if self._number is None else (self._host, self._number)
                self._sender = InferenceResponseSender(host, number, self._output_names)
            return self._sender

    def is_cancelled(self) -> bool:
        """Return true if a received request was cancelled."""
        return (
            self._number is not None
            and self._host is not None
            and self._host.is_cancelled(self._number)
        )

    def exec(self, decoupled: bool = False) -> Any:
        """Execute the request and return its response, or a `ResponseIterator` if `decoupled`.

        Errors of the execution are in the response. Raises `TritonModelException` outside of
        `execute`.
        """
        call = self._call("exec", decoupled)
        host = self._host or hosts.current()
        return ResponseIterator(host.call_stream(call)) if call.decoupled else host.call(call)

    def async_exec(self, decoupled: bool = False) -> Awaitable[Any]:
        """Start the request on the running event loop. The awaitable returns what `exec` returns.

        Raises `RuntimeError` if no event loop is running.
        """
        call = self._call("async_exec", decoupled)
        asyncio.get_running_loop()
        host = self._host or hosts.current()
        return asyncio.ensure_future(_awaited(host.call_async(call), call.decoupled))

    def _call(self, function: str, decoupled: Any) -> CallSpec:
        if not has_truth_value(decoupled):
            raise argument_type_error(
                function, f"({_SELF}, decoupled: bool = False) -> object", self, decoupled
            )
        if self._number is not None:
            raise TritonModelException(
                "A received request cannot be executed: create a new InferenceRequest with its "
                "inputs."
            )
        return CallSpec(
            model_name=self._target.model_name,
            model_version=self._target.model_version,
            request_id=self._request_id,
            inputs=tuple(self._inputs),
            requested_output_names=tuple(dict.fromkeys(self._output_names)),
            correlation_id=self._correlation_id,
            flags=self._flags,
            timeout=self._timeout,
            parameters=self._parameters,
            preferred_memory=self._target.preferred_memory,
            trace=self._target.trace.request,
            decoupled=bool(decoupled),
        )


async def _awaited(answer: Awaitable[Any], decoupled: bool) -> Any:
    result = await answer
    return ResponseIterator(result) if decoupled else result


def _flags(function: str, request: InferenceRequest, flags: Any) -> int:
    if not is_integer(flags, 0, 32):
        raise argument_type_error(function, f"({_SELF}, arg0: int) -> None", request, flags)
    return int(flags)


def _correlation_id(given: Any) -> int | str:
    if isinstance(given, str):
        try:
            given.encode()
        except UnicodeEncodeError:  # a lone surrogate, which no protocol can carry
            raise cast_error() from None
        return given
    if not isinstance(given, int):
        raise TritonModelException("Correlation ID must be integer or string")
    if not is_integer(given, 0, 64):
        raise cast_error()
    return int(given)


def _present(
    what: str, values: Sequence[Any] | None, request_id: str, model_name: str | None
) -> tuple[Any, ...]:
    values = values or ()
    if None in values or "" in values:
        raise TritonModelException(
            f"{what} for request with id '{request_id}' and model name '{model_name}' should not "
            "be empty."
        )
    return tuple(values)
