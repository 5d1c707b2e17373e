"""The sender of a received request's responses."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock
from typing import TYPE_CHECKING

from .arguments import argument_type_error, is_integer
from .constants import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from .errors import TritonModelException
from .response import InferenceResponse

if TYPE_CHECKING:
    from ..host import Host

_SIGNATURE = (
    "(self: c_python_backend_utils.InferenceResponseSender, response: "
    "c_python_backend_utils.InferenceResponse = None, "
    "flags: int = 0) -> None"
)
_REFUSED = "Unable to send response. "


class InferenceResponseSender:
    """Sends the responses of one request until the final one.

    Any thread may use it. The request creates it.
    """

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_closed", "_host", "_lock", "_number", "_output_names", "_sent")

    def __init__(self, host: Host | None, number: int, output_names: Collection[str]) -> None:
        """Prepare to respond to request `number` with `output_names`.

        Without a host, sending fails.
        """
        self._host = host
        self._number = number
        self._output_names = output_names
        self._lock = Lock()
        self._closed = host is None
        self._sent = 0

    @classmethod
    def closed_after_one(cls, host: Host) -> InferenceResponseSender:
        """Return a closed sender that counts as having sent one response."""
        sender = cls(host, -1, ())
        sender._closed, sender._sent = True, 1
        return sender

    def __del__(self) -> None:
        if not self._closed and self._host is not None:
            self._host.abandon(self._number)

    @property
    def closed(self) -> bool:
        """True if the final response was sent."""
        return self._closed

    @property
    def sent(self) -> int:
        """The number of responses, including a final flag without response."""
        return self._sent

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send a response.

        TRITONSERVER_RESPONSE_COMPLETE_FINAL ends the request, with or without a response. Raises
        `TypeError` for arguments of wrong types, and `TritonModelException` if the state of the
        request forbids it or the server rejects it.
        """
        if not (response is None or isinstance(response, InferenceResponse)) or not is_integer(
            flags, 0, 32
        ):
            raise argument_type_error("send", _SIGNATURE, self, response, flags)
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException(_REFUSED + "Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL
        self.count(response, final)
        if self._host is not None:
            self._host.send(
                self._number, response and response.restricted(self._output_names), final
            )

    def count(self, response: InferenceResponse | None, final: bool) -> None:
        """Count a response that is about to be sent, here or by the return value of `execute`.

        Raises `TritonModelException` if the state of the request forbids it.
        """
        if self._host is None:
            raise TritonModelException(
                _REFUSED + "Response sender has no reference to the decoupled state of the model."
            )
        with self._lock:
            if not self._host.decoupled:
                self._check_single(response, final)
            if self._closed:
                raise TritonModelException(_REFUSED + "Response sender has been closed.")
            self._closed = final
            self._sent += 1

    def _check_single(self, response: InferenceResponse | None, final: bool) -> None:
        if response is not None and self._sent:
            raise TritonModelException(
                _REFUSED + "Non-decoupled model cannot send more than one response."
            )
        if response is None and final and not self._sent:
            raise TritonModelException(
                _REFUSED
                + "Non-decoupled model cannot send complete final before sending a response."
            )

    def close(self) -> None:
        """Reject further responses, because the request had its response in another way."""
        with self._lock:
            self._closed = True

    def is_cancelled(self) -> bool:
        """Return true if the request was cancelled."""
        return self._host is not None and self._host.is_cancelled(self._number)
