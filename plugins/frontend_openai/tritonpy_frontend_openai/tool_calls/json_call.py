"""Incremental reading of one tool call that is a JSON object with a name and arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tritonpy_frontend_openai.output import CallArguments, CallStart, OutputEvent

_ARGUMENTS = frozenset({"arguments", "parameters"})
_NAME = "name"
_NOT_SPACE = re.compile(r"\S")
_STRING_MARK = re.compile(r'["\\]')
_NESTED_MARK = re.compile(r'["{}\[\]]')
_SCALAR_END = re.compile(r'[\s,:{}\[\]"]')


class JsonCall:
    """Reads `{"name": ..., "arguments": {...}}` part by part, and reports the call as it grows.

    The arguments are passed on as they are written. `rest` is the text after the object, once it is
    `done`: with `ends_with_arguments`, after the arguments. `failed` is set if the text is no such
    object. Each character is read once.
    """

    def __init__(self, index: int, *, ends_with_arguments: bool = False) -> None:
        self.done = False
        self.failed = False
        self.has_started = False  # its name was reported
        self.rest = ""
        self.text = ""
        self._index = index
        self._ends_with_arguments = ends_with_arguments
        self._position = 0
        self._depth = 0
        self._string_start = -1
        self._key: str | None = None
        self._after_colon = False
        self._value_start = -1
        self._name: str | None = None
        self._arguments = (-1, -1)  # start and end of their text; -1 if unknown
        self._sent = 0  # end of the part of the arguments that was reported

    @property
    def has_name(self) -> bool:
        """Whether the name of the function is known."""
        return self._name is not None

    def feed(self, text: str) -> Sequence[OutputEvent]:
        """Read the next part of the text and return the events that it completes."""
        self.text += text
        while not (self.done or self.failed) and self._step():
            pass
        if self.done:
            self.rest = self.text[self._position :]
            self.failed = self._name is None
        return () if self.failed else self._events()

    def _step(self) -> bool:
        """Read one mark. Returns False if more text is needed."""
        if self._string_start >= 0:
            return self._read_string()
        if self._depth > 1:
            found = _NESTED_MARK.search(self.text, self._position)
        else:
            found = _NOT_SPACE.search(self.text, self._position)
        if found is None:
            self._position = len(self.text)
            return False
        mark, self._position = found[0], found.start()
        if self._depth == 0 and mark != "{":
            self.failed = True
        elif mark == '"':
            if self._depth == 1 and self._after_colon:
                self._begin_value()
            self._string_start = self._position
            self._position += 1
        elif mark in "{[":
            if self._depth == 1:
                if not self._after_colon:
                    self.failed = True
                self._begin_value()
            self._depth += 1
            self._position += 1
        elif mark in "}]":
            self._close()
        else:
            return self._read_scalar(mark)
        return True

    def _read_string(self) -> bool:
        found = _STRING_MARK.search(self.text, self._position)
        if found is None:
            self._position = len(self.text)
            return False
        if found[0] == "\\":
            if found.end() == len(self.text):  # the escaped character has not arrived
                self._position = found.start()
                return False
            self._position = found.end() + 1
            return True
        self._position = found.end()
        start, self._string_start = self._string_start, -1
        if self._depth == 1:
            if self._after_colon:
                self._end_value(self._position)
            else:
                self._key = _decoded(self.text[start : self._position])
                self.failed = self._key is None
        return True

    def _read_scalar(self, mark: str) -> bool:
        if mark == ":":
            self._after_colon = True
            self._position += 1
            return True
        if mark == ",":
            self._key, self._after_colon, self._value_start = None, False, -1
            self._position += 1
            return True
        if not self._after_colon:
            self.failed = True
            return True
        self._begin_value()
        found = _SCALAR_END.search(self.text, self._position)
        if found is None:
            self._position = len(self.text)
            return False
        self._position = found.start()
        self._end_value(self._position)
        return True

    def _close(self) -> None:
        self._depth -= 1
        self._position += 1
        if self._depth == 1:
            self._end_value(self._position)
        self.done = self.done or self._depth == 0

    def _begin_value(self) -> None:
        if self._value_start < 0:
            self._value_start = self._position
            if self._key in _ARGUMENTS and self._arguments[0] < 0:
                self._arguments = (self._position, -1)
                self._sent = self._position

    def _end_value(self, end: int) -> None:
        start = self._value_start
        if start < 0:
            return
        if self._key == _NAME and self._name is None:
            name = _decoded(self.text[start:end])
            self._name = name if isinstance(name, str) else None
        elif self._arguments == (start, -1):
            self._arguments = (start, end)
            self.done = self._ends_with_arguments

    def _events(self) -> list[OutputEvent]:
        events: list[OutputEvent] = []
        if self._name is None:
            return events
        if not self.has_started:
            self.has_started = True
            events.append(CallStart(self._index, self._name))
        start, end = self._arguments
        if start < 0:
            if self.done:
                events.append(CallArguments(self._index, "{}"))
            return events
        if self.text[start] == '"':  # the object is written as a string
            if end >= 0 and self._sent < end:
                self._sent = end
                events.append(CallArguments(self._index, _decoded(self.text[start:end]) or ""))
            return events
        until = self._position if end < 0 else end
        if until > self._sent:
            events.append(CallArguments(self._index, self.text[self._sent : until]))
            self._sent = until
        return events


def _decoded(text: str) -> str | None:
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
