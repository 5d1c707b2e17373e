"""A request for text: gathers what its texts say, and answers when it is time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tritonpy import Cancelled, InferRequest, InferResponse, ModelContext, TritonError
from tritonpy_backend_transformer.continuation import Continuation, Hypothesis
from tritonpy_backend_transformer.outputs import Telling, Wording, tensors_of


class Generation:
    """The texts that a request asked for, all of one prompt.

    A stream is answered for every few tokens with what is new; without a stream there is one answer. A reader that is slow gets fewer and longer answers: what
    comes meanwhile waits here and goes with the next one, so that the other texts of a call do not wait for that reader.
    """

    def __init__(
        self,
        request: InferRequest,
        model: ModelContext,
        outputs: Sequence[str],
        interval: int | None,
        wording: Wording,
    ) -> None:
        """`interval` is the number of tokens per answer, None for one answer at the end.

        The library's own thread may be the last to hold this: nothing that holds the library may be reached from here, or that thread would wait
        for its own end.
        """
        self.texts: list[Continuation] = []
        self._request = request
        self._model = model
        self._outputs = outputs
        self._interval = interval
        self._wording = wording
        self._lock = threading.RLock()  # its texts may be in the hands of several lanes

    def wanted(self) -> bool:
        """Say whether the client still waits."""
        return not self._request.cancelled

    def heard(self) -> None:
        """Answer if it is time: at the end, or in a stream when enough has come and the client takes it."""
        with self._lock:
            if self._request.answered:
                return
            if all(text.finish is not None for text in self.texts):
                self._end()
            elif (
                self._interval is not None and self._is_due(self._interval) and self._request.sink.ready(self._request)
            ):
                self._respond(final=False)

    def found(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Take the results of a beam search, the best first."""
        for text, hypothesis in zip(self.texts, hypotheses, strict=True):
            text.take(hypothesis)
        self.heard()

    def failed(self, error: TritonError) -> None:
        """Answer with `error`; the request's other texts end too."""
        with self._lock:
            for text in self.texts:
                text.cancel()
            if not self._request.answered:
                self._request.respond(InferResponse.failed(self._request, error))
            self.texts.clear()

    def _is_due(self, interval: int) -> bool:
        """What is held back for a stop string or a character that is not whole is no answer of its own."""
        return any(text.unread >= interval and text.has_news for text in self.texts)

    def _end(self) -> None:
        if any(text.finish == "cancelled" for text in self.texts):
            self.failed(Cancelled("Request cancelled"))
        else:
            self._respond(final=True)

    def _respond(self, final: bool) -> None:
        request, model = self._request, self._model
        if request.batch is not None and not request.batch.counted:
            request.batch.stamp()
        telling = Telling(self.texts, [text.news() for text in self.texts], self._wording)
        outputs = tensors_of(self._outputs, telling)
        request.respond(InferResponse(outputs, model.name, model.version, request.id, final=final))
        if final:
            self.texts.clear()  # they name it too: as a circle they would keep the model until the collector comes
