"""Responses that the server keeps, so that clients can retrieve and continue them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tritonpy_frontend_openai.bodies import ChatMessage
from tritonpy_frontend_openai.errors import ApiError, encode


class StoredResponse:
    """One response, and the conversation that it ends. `cancel` is None if it does not run."""

    def __init__(
        self, owner: str, document: dict[str, Any], cancel: Callable[[], None] | None = None
    ) -> None:
        self.owner = owner
        self.document = document
        self.messages: Sequence[ChatMessage] = ()
        self.cancel = cancel
        self.size = 0

    def conversation(self) -> Sequence[ChatMessage]:
        """Return the messages up to the end of the response. Raises ApiError while it runs."""
        if self.cancel is not None:
            raise ApiError(
                f"Response '{self.document['id']}' is not complete: continue it later",
                param="previous_response_id",
            )
        return self.messages


class ResponseStore:
    """Keeps the latest responses, at most `max_responses` with `max_bytes` in all.

    Each principal finds only its own responses. Used on the event loop only.
    """

    def __init__(self, max_responses: int, max_bytes: int) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._stored: OrderedDict[str, StoredResponse] = OrderedDict()
        self._bytes = 0

    def add(self, response: StoredResponse) -> None:
        """Add a response that is complete or runs. Raises ApiError if too many run."""
        if response.cancel is not None and self._running() >= self._max_responses:
            raise ApiError("too many background responses run", 429, retry_after="1")
        self._stored[response.document["id"]] = response
        self._count(response)

    def complete(
        self, response: StoredResponse, document: dict[str, Any], messages: Sequence[ChatMessage]
    ) -> None:
        """Replace a running response by its result."""
        response.document, response.messages, response.cancel = document, messages, None
        if document["id"] in self._stored:
            self._count(response)

    def find(self, name: str, owner: str) -> StoredResponse:
        """Return the response with this id. Raises ApiError if it is unknown to `owner`."""
        response = self._stored.get(name)
        if response is None or response.owner != owner:
            raise ApiError(f"Response with id '{name}' not found.", 404, code="response_not_found")
        return response

    def remove(self, name: str, owner: str) -> None:
        """Remove a response, and cancel it if it runs. Raises ApiError."""
        response = self.find(name, owner)
        if response.cancel is not None:
            response.cancel()
        del self._stored[name]
        self._bytes -= response.size

    def cancel_all(self) -> None:
        """Cancel the responses that run."""
        for response in self._stored.values():
            if response.cancel is not None:
                response.cancel()

    def _running(self) -> int:
        return sum(each.cancel is not None for each in self._stored.values())

    def _count(self, response: StoredResponse) -> None:
        """Update the size of a response, and drop the oldest complete ones beyond the limits."""
        self._bytes -= response.size
        response.size = len(encode(response.document)) + len(encode(response.messages))
        self._bytes += response.size
        for name, each in list(self._stored.items()):
            if len(self._stored) <= self._max_responses and self._bytes <= self._max_bytes:
                return
            if each.cancel is None:
                del self._stored[name]
                self._bytes -= each.size
