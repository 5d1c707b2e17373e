"""The way of a received request's answers."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock
from typing import TYPE_CHECKING

from .arguments import is_integer, mismatch
from .constants import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from .errors import TritonModelException
from .response import InferenceResponse

if TYPE_CHECKING:
    from ..host import Host

_SIGNATURE = (
    "(self: c_python_backend_utils.InferenceResponseSender, response: c_python_backend_utils.InferenceResponse = None, "
    "flags: int = 0) -> None"
)
_REFUSED = "Unable to send response. "


class InferenceResponseSender:
    """Sends answers of one request until the final one; any thread may use it. Made by the request."""

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_closed", "_host", "_lock", "_number", "_sent", "_wanted")

    def __init__(self, host: Host | None, number: int, wanted: Collection[str]) -> None:
        """Answer the received request of that number with the `wanted` outputs; without a host there is nobody to answer."""
        self._host = host
        self._number = number
        self._wanted = wanted
        self._lock = Lock()
        self._closed = host is None
        self._sent = 0

    @classmethod
    def spent(cls, host: Host) -> InferenceResponseSender:
        """Return a sender that has sent its one answer, whatever request it stands for."""
        sender = cls(host, -1, ())
        sender._closed, sender._sent = True, 1
        return sender

    def __del__(self) -> None:
        if not self._closed and self._host is not None:
            self._host.abandon(self._number)

    @property
    def closed(self) -> bool:
        """Whether the final answer is on its way."""
        return self._closed

    @property
    def sent(self) -> int:
        """How many answers were counted, a lone final flag included."""
        return self._sent

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send a response; the flag TRITONSERVER_RESPONSE_COMPLETE_FINAL ends the request, with or without a response.

        Raises TypeError for other types of arguments, TritonModelException where the state of the request forbids it and where the server refuses.
        """
        if not (response is None or isinstance(response, InferenceResponse)) or not is_integer(flags, 0, 32):
            raise mismatch("send", _SIGNATURE, self, response, flags)
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException(_REFUSED + "Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL
        self.count(response, final)
        if self._host is not None:
            self._host.send(self._number, response and response.restricted(self._wanted), final)

    def count(self, response: InferenceResponse | None, final: bool) -> None:
        """Note an answer that is about to be sent, here or in the return value of `execute`.

        Raises TritonModelException where the state of the request forbids it.
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
            raise TritonModelException(_REFUSED + "Non-decoupled model cannot send more than one response.")
        if response is None and final and not self._sent:
            raise TritonModelException(
                _REFUSED + "Non-decoupled model cannot send complete final before sending a response."
            )

    def close(self) -> None:
        """Let nothing more pass: the request was answered in another way."""
        with self._lock:
            self._closed = True

    def is_cancelled(self) -> bool:
        """Say whether the client gave the request up."""
        return self._host is not None and self._host.is_cancelled(self._number)
