"""Traces of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..host import Host


class InferenceTrace:
    """Links a request that the model makes to the trace of a received request, or to none."""

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_host", "_request")

    def __init__(self) -> None:
        self._host: Host | None = None
        self._request: int | None = None  # number of the received request

    @classmethod
    def received(cls, host: Host, request: int) -> InferenceTrace:
        """Return the trace of a received request."""
        trace = cls()
        trace._host = host
        trace._request = request
        return trace

    @property
    def request(self) -> int | None:
        """The number of the received request, or None."""
        return self._request

    def get_context(self) -> str | None:
        """Return the OpenTelemetry context as JSON text, or None if the request is not traced."""
        if self._host is None or self._request is None:
            return None
        return self._host.trace_context(self._request) or None
