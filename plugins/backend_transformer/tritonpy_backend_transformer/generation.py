"""A request for generated text: collects its texts and sends the responses."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tritonpy import Cancelled, InferRequest, InferResponse, ModelContext, TritonError
from tritonpy_backend_transformer.continuation import Continuation, Hypothesis
from tritonpy_backend_transformer.outputs import ResponseContent, TextFormat, tensors_of


class Generation:
    """The texts of one request, all with the same prompt.

    A stream gets a response with the new text every few tokens; other requests get one response. A
    slow client gets fewer, longer responses: new text is collected here until the client is ready.
    So the other texts of a call do not wait for that client.
    """

    def __init__(
        self,
        request: InferRequest,
        model: ModelContext,
        outputs: Sequence[str],
        interval: int | None,
        text_format: TextFormat,
    ) -> None:
        """`interval` is the number of tokens per response, or None for one response at the end.

        A thread of CTranslate2 may release the last reference to this object. So nothing that owns
        the library's model may be reachable from here: the thread would wait for its own end.
        """
        self.texts: list[Continuation] = []
        self._request = request
        self._model = model
        self._outputs = outputs
        self._interval = interval
        self._wording = text_format
        self._lock = threading.RLock()  # several lanes may generate its texts

    def is_active(self) -> bool:
        """Return true while the client waits."""
        return not self._request.cancelled

    def on_progress(self) -> None:
        """Respond if the texts ended, or in a stream if enough is new and the client is ready."""
        with self._lock:
            if self._request.finished:
                return
            if all(text.finish is not None for text in self.texts):
                self._end()
            elif (
                self._interval is not None
                and self._is_due(self._interval)
                and self._request.sink.ready(self._request)
            ):
                self._respond(final=False)

    def on_search_results(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Handle the results of a beam search, best first."""
        for text, hypothesis in zip(self.texts, hypotheses, strict=True):
            text.add_hypothesis(hypothesis)
        self.on_progress()

    def on_error(self, error: TritonError) -> None:
        """Respond with `error` and end the request's other texts."""
        with self._lock:
            for text in self.texts:
                text.cancel()
            if not self._request.finished:
                self._request.respond(InferResponse.failed(self._request, error))
            self.texts.clear()

    def _is_due(self, interval: int) -> bool:
        """Return true if enough is new. Text that is held back is not worth a response."""
        return any(text.unsent_count >= interval and text.has_delta for text in self.texts)

    def _end(self) -> None:
        if any(text.finish == "cancelled" for text in self.texts):
            self.on_error(Cancelled("Request cancelled"))
        else:
            self._respond(final=True)

    def _respond(self, final: bool) -> None:
        request, model = self._request, self._model
        if request.batch is not None and not request.batch.counted:
            request.batch.stamp()
        content = ResponseContent(
            self.texts, [text.take_delta() for text in self.texts], self._wording
        )
        outputs = tensors_of(self._outputs, content)
        request.respond(InferResponse(outputs, model.name, model.version, request.id, final=final))
        if final:
            # Breaks a reference cycle, which would keep the model until a garbage collection.
            self.texts.clear()
