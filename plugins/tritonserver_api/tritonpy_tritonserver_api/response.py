"""Responses, and the iterators that return them."""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import tritonpy
from tritonpy_tritonserver_api.errors import InvalidArgumentError, TritonError, error_of, translated
from tritonpy_tritonserver_api.request import InferenceRequest
from tritonpy_tritonserver_api.tensor import Tensor, of_server

if TYPE_CHECKING:
    from tritonpy_tritonserver_api.model import Model


@dataclass
class InferenceResponse:
    """A response of a model. `final` marks the last one, which may have no outputs."""

    model: Model
    request_id: str | None = None
    parameters: dict[str, str | int | bool | float] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    error: TritonError | None = None
    classification_label: str | None = None
    final: bool = False


class _Call:
    """A request that was sent. It keeps the responses until they are taken."""

    def __init__(self, request: InferenceRequest) -> None:
        self._request = request
        self._lock = threading.Lock()
        self._responses: deque[tritonpy.InferResponse] = deque()
        self._waiting: deque[Future[tritonpy.InferResponse]] = deque()
        with translated():
            sent = request.to_server(tritonpy.CallbackSink(self._put))
            # The server keeps it, and with it this object, until the final response.
            self._sent = weakref.ref(sent)
            request.model.engine.infer(sent)

    def _put(self, _request: tritonpy.InferRequest, response: tritonpy.InferResponse) -> None:
        with self._lock:
            while self._waiting:
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    break
            else:
                self._responses.append(response)
                return
        future.set_result(response)

    def next(self) -> Future[tritonpy.InferResponse]:
        """Return a future for the next response."""
        future: Future[tritonpy.InferResponse] = Future()
        with self._lock:
            if not self._responses:
                self._waiting.append(future)
                return future
            response = self._responses.popleft()
        future.set_result(response)
        return future

    def cancel(self) -> None:
        """Cancel the request. It still gets a final response."""
        sent = self._sent()
        if sent is not None:
            sent.cancel()

    def response_of(self, response: tritonpy.InferResponse) -> InferenceResponse:
        """Return a response of the server as one of the API.

        It has an error if its outputs cannot be in the wanted memory.
        """
        model = self._request.model.with_version(response.model_version)
        made = InferenceResponse(
            model,
            self._request.request_id or "",
            dict(response.parameters),
            final=response.final,
        )
        if response.error is not None:
            made.error = error_of(response.error)
        else:
            outputs = {output.name: of_server(output) for output in response.outputs}
            wanted = self._request.output_memory_type
            try:
                if wanted is not None:
                    outputs = {name: each.to_device(wanted) for name, each in outputs.items()}
                made.outputs = outputs
            except TritonError as error:
                made.error = InvalidArgumentError(f"Memory type {wanted} not supported: {error}")
        if made.error is not None:
            made.error.args += (made,)
        return made


class ResponseIterator:
    """Returns the responses to a request, each when it arrives.

    With a `response_queue` a thread puts them there as well.
    """

    def __init__(self, request: InferenceRequest, raise_on_error: bool) -> None:
        users = request.response_queue
        if isinstance(users, asyncio.Queue):
            raise InvalidArgumentError("the response_queue of infer must be a queue.SimpleQueue")
        self._call = _Call(request)
        self._raise_on_error = raise_on_error
        self._is_complete = False
        self._queue: queue.SimpleQueue[InferenceResponse] | None = None
        if users is not None:
            self._queue = queue.SimpleQueue()
            arguments = (self._call, [self._queue, users])
            threading.Thread(target=_forward, args=arguments, daemon=True).start()

    def __iter__(self) -> ResponseIterator:
        return self

    def __next__(self) -> InferenceResponse:
        if self._is_complete:
            raise StopIteration
        if self._queue is None:
            response = self._call.response_of(self._call.next().result())
        else:
            response = self._queue.get()
        self._is_complete = response.final
        if response.error is not None and self._raise_on_error:
            raise response.error
        return response

    def cancel(self) -> None:
        """Cancel the request. The iterator returns the remaining responses."""
        self._call.cancel()


def _forward(call: _Call, queues: list[queue.SimpleQueue[InferenceResponse]]) -> None:
    final = False
    while not final:
        response = call.response_of(call.next().result())
        final = response.final
        for each in queues:
            each.put(response)


class AsyncResponseIterator:
    """Returns the responses to a request in a coroutine, each when it arrives.

    With a `response_queue` a task puts them there as well.
    """

    def __init__(self, request: InferenceRequest, raise_on_error: bool) -> None:
        users = request.response_queue
        if users is not None and not isinstance(users, asyncio.Queue):
            raise InvalidArgumentError("the response_queue of async_infer must be an asyncio.Queue")
        self._call = _Call(request)
        self._raise_on_error = raise_on_error
        self._is_complete = False
        self._queue: asyncio.Queue[InferenceResponse] | None = None
        if users is not None:
            self._queue = asyncio.Queue()
            self._task = asyncio.get_running_loop().create_task(
                _forward_async(self._call, [self._queue, users])
            )

    def __aiter__(self) -> AsyncResponseIterator:
        return self

    async def __anext__(self) -> InferenceResponse:
        if self._is_complete:
            raise StopAsyncIteration
        if self._queue is None:
            response = self._call.response_of(await asyncio.wrap_future(self._call.next()))
        else:
            response = await self._queue.get()
        self._is_complete = response.final
        if response.error is not None and self._raise_on_error:
            raise response.error
        return response

    def cancel(self) -> None:
        """Cancel the request. The iterator returns the remaining responses."""
        self._call.cancel()


async def _forward_async(call: _Call, queues: list[asyncio.Queue[InferenceResponse]]) -> None:
    final = False
    while not final:
        response = call.response_of(await asyncio.wrap_future(call.next()))
        final = response.final
        for each in queues:
            each.put_nowait(response)
