"""Texts that wait, and the threads that continue them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from tritonpy import Internal, TritonError
from tritonpy_backend_transformer.continuation import Continuation
from tritonpy_backend_transformer.lot import Scores
from tritonpy_backend_transformer.sharing import Pace, can_join, fitting, shared_options, worth_joining
from tritonpy_backend_transformer.writers import Writer


class Desk:
    """Where texts wait for a lane. Its lanes take them in their order, each with those behind it that fit; what runs may be joined."""

    def __init__(self, most: int) -> None:
        self.waiting: list[Continuation] = []  # replaced as a whole: a running call looks at it without the lock
        self.most = most
        self._changed = threading.Condition()
        self._closed = False

    def submit(self, texts: Sequence[Continuation]) -> None:
        """Let `texts` wait."""
        with self._changed:
            self.waiting = [*self.waiting, *texts]
            self._changed.notify()

    def take(self) -> list[Continuation]:
        """Wait for texts and return those that one call takes in; none when the desk is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.waiting or self._closed)
            if not self.waiting:
                return []
            first, *others = self.waiting
            taken = self._remove([first, *fitting(first, others, self.most - 1)])
            if self.waiting:
                self._changed.notify()  # those that it did not take may be for another lane
            return taken

    def joined(self, running: list[Continuation]) -> list[Continuation]:
        """Return `running` with those that wait and fit."""
        if not self.waiting or not running or not can_join(running[0]):
            return running
        with self._changed:
            return running + self._remove(self.newcomers(running))

    def newcomers(self, running: Sequence[Continuation]) -> list[Continuation]:
        """Return those that wait and fit to `running`, as many as there is room for: none before it is the turn of one that does not fit."""
        waiting = self.waiting
        shortest = min(running, key=lambda text: text.length)
        found = fitting(shortest, waiting, self.most - len(running))
        return found if found and found[0] is waiting[0] else []

    def close(self) -> None:
        """Send the lanes home, once nothing waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _remove(self, texts: list[Continuation]) -> list[Continuation]:
        self.waiting = [text for text in self.waiting if text not in texts]
        return texts


class Lane:
    """A thread that continues texts, those of one call of the library at a time."""

    def __init__(self, name: str, desk: Desk, writer: Writer, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self._desk = desk
        self._writer = writer
        self._log = log
        self._pace = Pace()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until it went home."""
        self._thread.join()

    def _live(self) -> None:
        while texts := self._desk.take():
            self._finish(texts)

    def _finish(self, texts: list[Continuation]) -> None:
        while texts:
            try:
                self._call(texts)
            except Exception as error:
                self._fail(texts, error)
                return
            texts = self._desk.joined([text for text in texts if text.finish is None])

    def _call(self, texts: Sequence[Continuation]) -> None:
        texts = [text for text in texts if _wanted(text)]
        if not texts:
            return
        if texts[0].searched:
            for text, hypotheses in zip(texts, self._writer.search(texts), strict=True):
                text.listener.found(hypotheses)
            return
        before = sum(len(text.numbers) for text in texts)
        call = _Call(texts, self._desk, self._pace)
        self._writer.write(texts, shared_options(texts[0]), call.on_token)
        open_texts = [text for text in texts if text.finish is None]
        if open_texts and sum(len(text.numbers) for text in texts) == before:
            raise Internal("CTranslate2 ended a text without a token and without a reason")

    def _fail(self, texts: Sequence[Continuation], error: Exception) -> None:
        failure = error if isinstance(error, TritonError) else Internal(f"CTranslate2 failed: {error}")
        self._log.debug("a call for %d texts failed", len(texts), exc_info=error)
        for text in texts:
            if text.finish is None:
                text.cancel()
                text.listener.failed(failure)


class _Call:
    """One call of the library as it runs: hands each token to its text, and ends the call where others should join."""

    def __init__(self, texts: Sequence[Continuation], desk: Desk, pace: Pace) -> None:
        self._texts = texts
        self._desk = desk
        self._pace = pace
        self._last = len(texts)  # the place of the text that had a token last: in a step they come in their order
        self._ending = False
        self._can_join = can_join(texts[0])
        self._steps = 0
        self._tokens = sum(len(text.prompt.source) or text.length for text in texts)
        self._begun = self._step_begun = time.perf_counter()

    def on_token(self, place: int, number: int, log_prob: float | None, scores: Scores | None) -> bool:
        """Hand on one token; return True where its text takes no more in this call."""
        if place <= self._last:
            self._begin_step()
        self._last = place
        text = self._texts[place]
        if not _wanted(text):
            return True
        over = text.add(number, log_prob) if scores is None else text.look(number, scores, log_prob)
        text.listener.heard()
        return over or self._ending

    def _begin_step(self) -> None:
        now = time.perf_counter()
        if self._steps == 0:
            self._pace.read(self._tokens, now - self._begun)
        elif self._steps % 8 == 0:
            self._pace.stepped(8, now - self._step_begun)
        if self._steps % 8 == 0:
            self._step_begun = now
        self._steps += 1
        if self._can_join and self._desk.waiting:
            running = [text for text in self._texts if text.finish is None]
            newcomers = self._desk.newcomers(running) if running else []
            self._ending = bool(newcomers) and worth_joining(running, len(newcomers), self._pace, now - self._begun)


def _wanted(text: Continuation) -> bool:
    """Say whether the text is wanted; one that is not ends here."""
    if text.finish is None and not text.listener.wanted():
        text.cancel()
        text.listener.heard()
    return text.finish is None
