"""The queue of texts, and the threads that generate them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from tritonpy import Internal, TritonError
from tritonpy_backend_transformer.continuation import Continuation
from tritonpy_backend_transformer.generation_models import GenerationModel
from tritonpy_backend_transformer.shared_calls import (
    CallTimes,
    call_options,
    can_join,
    select_compatible,
    should_join,
)
from tritonpy_backend_transformer.token_sampler import Scores


class TextQueue:
    """The texts that wait for a lane.

    A lane takes the first text and others that fit. Waiting texts can also join a running call.
    """

    def __init__(self, max_texts: int) -> None:
        # Replaced, never changed: a running call reads it without the lock.
        self.waiting: list[Continuation] = []
        self.max_texts = max_texts
        self._changed = threading.Condition()
        self._closed = False

    def submit(self, texts: Sequence[Continuation]) -> None:
        """Append `texts`."""
        with self._changed:
            self.waiting = [*self.waiting, *texts]
            self._changed.notify()

    def take(self) -> list[Continuation]:
        """Wait for texts and return those of one call, or none when the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.waiting or self._closed)
            if not self.waiting:
                return []
            first, *others = self.waiting
            taken = self._remove([first, *select_compatible(first, others, self.max_texts - 1)])
            if self.waiting:
                self._changed.notify()  # another lane can take the rest
            return taken

    def add_waiting(self, running: list[Continuation]) -> list[Continuation]:
        """Return `running` with the waiting texts that fit."""
        if not self.waiting or not running or not can_join(running[0]):
            return running
        with self._changed:
            return running + self._remove(self.candidates(running))

    def candidates(self, running: Sequence[Continuation]) -> list[Continuation]:
        """Return the waiting texts that can join `running`, up to its free places.

        Return none if the first waiting text does not fit, so that texts are not overtaken.
        """
        waiting = self.waiting
        shortest = min(running, key=lambda text: text.length)
        found = select_compatible(shortest, waiting, self.max_texts - len(running))
        return found if found and found[0] is waiting[0] else []

    def close(self) -> None:
        """Stop the lanes once no text waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _remove(self, texts: list[Continuation]) -> list[Continuation]:
        self.waiting = [text for text in self.waiting if text not in texts]
        return texts


class Lane:
    """A thread that generates texts, with one CTranslate2 call at a time."""

    def __init__(
        self,
        name: str,
        queue: TextQueue,
        model: GenerationModel,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        self._queue = queue
        self._model = model
        self._log = log
        self._pace = CallTimes()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def _run(self) -> None:
        while texts := self._queue.take():
            self._finish(texts)

    def _finish(self, texts: list[Continuation]) -> None:
        while texts:
            try:
                self._call(texts)
            except Exception as error:
                self._fail(texts, error)
                return
            texts = self._queue.add_waiting([text for text in texts if text.finish is None])

    def _call(self, texts: Sequence[Continuation]) -> None:
        texts = [text for text in texts if _wanted(text)]
        if not texts:
            return
        if texts[0].uses_beam_search:
            for text, hypotheses in zip(texts, self._model.search(texts), strict=True):
                text.listener.on_search_results(hypotheses)
            return
        before = sum(len(text.token_ids) for text in texts)
        call = _Call(texts, self._queue, self._pace)
        self._model.write(texts, call_options(texts[0]), call.on_token)
        open_texts = [text for text in texts if text.finish is None]
        if open_texts and sum(len(text.token_ids) for text in texts) == before:
            raise Internal("CTranslate2 ended a text without a token and without a reason")

    def _fail(self, texts: Sequence[Continuation], error: Exception) -> None:
        failure = (
            error if isinstance(error, TritonError) else Internal(f"CTranslate2 failed: {error}")
        )
        self._log.debug("a call for %d texts failed", len(texts), exc_info=error)
        for text in texts:
            if text.finish is None:
                text.cancel()
                text.listener.on_error(failure)


class _Call:
    """A running CTranslate2 call.

    It passes tokens to texts and ends the call when texts should join.
    """

    def __init__(
        self, texts: Sequence[Continuation], queue: TextQueue, call_times: CallTimes
    ) -> None:
        self._texts = texts
        self._queue = queue
        self._pace = call_times
        # Index of the text that last had a token: a step goes through them in order.
        self._last = len(texts)
        self._ending = False
        self._can_join = can_join(texts[0])
        self._steps = 0
        self._tokens = sum(len(text.prompt.source) or text.length for text in texts)
        self._begun = self._step_begun = time.perf_counter()

    def on_token(
        self, index: int, token_id: int, log_prob: float | None, scores: Scores | None
    ) -> bool:
        """Add a token to its text. Return true if the text takes no more in this call."""
        if index <= self._last:
            self._begin_step()
        self._last = index
        text = self._texts[index]
        if not _wanted(text):
            return True
        over = (
            text.add(token_id, log_prob)
            if scores is None
            else text.add_from_scores(token_id, scores, log_prob)
        )
        text.listener.on_progress()
        return over or self._ending

    def _begin_step(self) -> None:
        now = time.perf_counter()
        if self._steps == 0:
            self._pace.read(self._tokens, now - self._begun)
        elif self._steps % 8 == 0:
            self._pace.add_steps(8, now - self._step_begun)
        if self._steps % 8 == 0:
            self._step_begun = now
        self._steps += 1
        if self._can_join and self._queue.waiting:
            running = [text for text in self._texts if text.finish is None]
            candidates = self._queue.candidates(running) if running else []
            self._ending = bool(candidates) and should_join(
                running, len(candidates), self._pace, now - self._begun
            )


def _wanted(text: Continuation) -> bool:
    """Return true if the text continues. End it if no client waits for it."""
    if text.finish is None and not text.listener.is_active():
        text.cancel()
        text.listener.on_progress()
    return text.finish is None
