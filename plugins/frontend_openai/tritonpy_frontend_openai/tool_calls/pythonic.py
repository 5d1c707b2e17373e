"""Tool calls as a Python list: `[get_weather(city="Paris"), get_time()]`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence

from tritonpy_frontend_openai.output import (
    CallArguments,
    CallStart,
    Content,
    OutputEvent,
    OutputParser,
)

_BEGIN = re.compile(r"\s*(?:<\|python_start\|>)?\s*\[\s*[A-Za-z_][\w.]*\s*\(")
_MAYBE_BEGIN = re.compile(
    r"\s*(?:<\|?p?y?t?h?o?n?_?s?t?a?r?t?\|?>?)?\s*(?:\[\s*(?:[A-Za-z_][\w.]*\s*)?)?"
)
_MARK = re.compile(r"[\"'\\()\[\]{}]")
_QUOTE_MARK = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}


class PythonicCalls(OutputParser):
    """Reads calls one by one. Text that does not begin with a list of calls is content."""

    def __init__(self) -> None:
        self._text = ""
        self._position = 0
        self._start = 0  # of the call that is being read
        self._depth = 0
        self._quote = ""
        self._count = 0
        self._is_content: bool | None = None  # None: undecided
        self._is_over = False

    def feed(self, text: str) -> Sequence[OutputEvent]:
        if self._is_over:
            return ()
        if self._is_content:
            return (Content(text),) if text else ()
        self._text += text
        if self._is_content is None:
            self._is_content = self._decide()
        if self._is_content is None:
            return ()
        if self._is_content:
            held, self._text = self._text, ""
            return (Content(held),)
        return self._read_calls()

    def finish(self) -> Sequence[OutputEvent]:
        if self._is_over or self._is_content or not self._text.strip():
            return ()
        return () if self._count else (Content(self._text),)

    def _decide(self) -> bool | None:
        """Return whether the text is content; None if more text is needed."""
        if _BEGIN.match(self._text) is not None:
            self._position = self._start = self._text.index("[") + 1
            return False
        return None if _MAYBE_BEGIN.fullmatch(self._text) else True

    def _read_calls(self) -> list[OutputEvent]:
        events: list[OutputEvent] = []
        while True:
            marks = _QUOTE_MARK[self._quote] if self._quote else _MARK
            found = marks.search(self._text, self._position)
            if found is None:
                self._position = len(self._text)
                break
            mark, self._position = found[0], found.end()
            if mark == "\\":
                if self._position == len(self._text):
                    self._position -= 1
                    break
                self._position += 1
            elif self._quote:
                self._quote = ""
            elif mark in "\"'":
                self._quote = mark
            elif mark in "([{":
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if not self._depth and not self._add_call(events):
                    break
            else:
                self._is_over = True
                break
        self.held_bytes = 0 if self._is_over else len(self._text) - self._start
        return events

    def _add_call(self, events: list[OutputEvent]) -> bool:
        """Add the call that has ended. Returns False if it is no call: the rest is content."""
        call = _parsed(self._text[self._start : self._position].lstrip(", \n\t"))
        if call is None:
            events.append(Content(self._text[self._start :] if self._count else self._text))
            self._is_content, self._text = True, ""
            return False
        events += [CallStart(self._count, call[0]), CallArguments(self._count, call[1])]
        self._count += 1
        self._start = self._position
        return True


def _parsed(text: str) -> tuple[str, str] | None:
    """Return name and arguments as JSON of a call with literal keyword arguments, else None."""
    try:
        node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Call) or node.args:
            return None
        name = ast.unparse(node.func)
        arguments = {each.arg: _literal(each.value) for each in node.keywords if each.arg}
        return name, json.dumps(arguments, ensure_ascii=False)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _literal(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id in {"true", "false", "null"}:
        return {"true": True, "false": False, "null": None}[node.id]
    return ast.literal_eval(node)
