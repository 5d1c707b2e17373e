"""The parts of a chat response: content, reasoning and tool calls, from the text of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Content(NamedTuple):
    """A part of the content for the user."""

    text: str


class Reasoning(NamedTuple):
    """A part of the reasoning before the content."""

    text: str


class CallStart(NamedTuple):
    """The beginning of the tool call `number`, from 0."""

    number: int
    name: str


class CallArguments(NamedTuple):
    """A part of the arguments, which are JSON, of the tool call `number`."""

    number: int
    text: str


OutputEvent = Content | Reasoning | CallStart | CallArguments


class OutputParser(ABC):
    """Splits the text of one response into events while it is generated.

    A parser holds text back only while it may belong to a tool call or a mark. `held_bytes` is the
    length of the tool call that it reads.
    """

    held_bytes = 0

    @abstractmethod
    def feed(self, text: str) -> Sequence[OutputEvent]:
        """Return the events that `text` completes."""

    def finish(self) -> Sequence[OutputEvent]:
        """Return the events for the text that is still held back, at the end of the response."""
        return ()


class PlainOutput(OutputParser):
    """Passes all text on as content."""

    def feed(self, text: str) -> Sequence[OutputEvent]:
        return (Content(text),) if text else ()


class FunctionOutput(OutputParser):
    """Passes all text on as the arguments of one function, which the client has chosen."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_started = False

    def feed(self, text: str) -> Sequence[OutputEvent]:
        events: list[OutputEvent] = []
        if text and not self._has_started:
            self._has_started = True
            events.append(CallStart(0, self._name))
        if text:
            events.append(CallArguments(0, text))
        return events


class ReasoningOutput(OutputParser):
    """Separates text between `<think>` and `</think>`, and passes the rest to another parser.

    With `starts_open`, the prompt has already opened the reasoning.
    """

    _OPEN, _CLOSE = "<think>", "</think>"

    def __init__(self, then: OutputParser, *, starts_open: bool) -> None:
        self._then = then
        self._held = ""
        self._mark = self._CLOSE if starts_open else self._OPEN
        self._is_over = False
        self._skips_newlines = False

    def feed(self, text: str) -> Sequence[OutputEvent]:
        if self._is_over:
            if self._skips_newlines:
                text = text.lstrip("\n")
                self._skips_newlines = not text
            events = self._then.feed(text)
            self.held_bytes = self._then.held_bytes
            return events
        self._held += text
        if self._mark == self._OPEN:
            return self._find_opening()
        return self._find_closing()

    def finish(self) -> Sequence[OutputEvent]:
        held, self._held = self._held, ""
        if self._is_over or self._mark == self._OPEN:
            return [*self._then.feed(held), *self._then.finish()]
        return (Reasoning(held),) if held else ()

    def _find_opening(self) -> Sequence[OutputEvent]:
        stripped = self._held.lstrip()
        if stripped.startswith(self._OPEN):
            self._held = stripped[len(self._OPEN) :]
            self._mark = self._CLOSE
            return self._find_closing()
        if self._OPEN.startswith(stripped):
            return ()
        self._is_over = True
        held, self._held = self._held, ""
        return self._then.feed(held)

    def _find_closing(self) -> Sequence[OutputEvent]:
        before, mark, after = self._held.partition(self._CLOSE)
        if mark:
            self._is_over, self._skips_newlines, self._held = True, True, ""
            return [*_reasoning(before), *self.feed(after)]
        kept = prefix_length(self._held, self._CLOSE)
        ready = self._held[: len(self._held) - kept]
        self._held = self._held[len(ready) :]
        return _reasoning(ready)


def _reasoning(text: str) -> list[OutputEvent]:
    return [Reasoning(text)] if text else []


def prefix_length(text: str, mark: str) -> int:
    """Return the length of the longest end of `text` with which `mark` begins, less than `mark`."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-length:]):
            return length
    return 0


class ParsedMessage:
    """The events of a complete response as one message."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[tuple[str, list[str]]] = []

    def add(self, events: Iterable[OutputEvent]) -> None:
        """Add events in their order."""
        for event in events:
            if isinstance(event, Content):
                self.content.append(event.text)
            elif isinstance(event, Reasoning):
                self.reasoning.append(event.text)
            elif isinstance(event, CallStart):
                self.calls.append((event.name, []))
            else:
                self.calls[event.number][1].append(event.text)
