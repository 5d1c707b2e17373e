"""Formats whose tool calls are JSON objects: Hermes and Qwen, Llama 3, Mistral, plain arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tritonpy_frontend_openai.output import (
    Content,
    OutputEvent,
    OutputParser,
    prefix_length,
)
from tritonpy_frontend_openai.tool_calls.json_call import JsonCall


class _JsonCalls(OutputParser):
    """What the formats share: the text that waits, and the call that is being read."""

    def __init__(self) -> None:
        self._held = ""
        self._call: JsonCall | None = None
        self._count = 0  # calls that have begun

    def _begin_call(self) -> JsonCall:
        self._call = JsonCall(self._count)
        return self._call

    def _read_call(self) -> tuple[list[OutputEvent], bool]:
        """Read the waiting text into the call. Returns its events and whether it has ended.

        After its end, the text that follows waits. Text that is no call becomes content.
        """
        call = self._call or self._begin_call()
        held, self._held = self._held, ""
        events = list(call.feed(held))
        self.held_bytes = len(call.text)
        if call.failed:
            self._call, self.held_bytes = None, 0
            if call.has_started:  # the client has the call: its text is no content
                self._count += 1
                return [], True
            return [Content(call.text)], True
        if call.done:
            self._count += 1
            self._held, self._call, self.held_bytes = call.rest, None, 0
        return events, call.done

    def finish(self) -> Sequence[OutputEvent]:
        """Return what is held back. A call whose name is unknown becomes content."""
        text = self._held
        if self._call is not None and not self._call.has_name:
            text = self._call.text + text
        self._held, self._call = "", None
        return (Content(text),) if text.strip() else ()


class HermesCalls(_JsonCalls):
    """`<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, the format of Hermes and Qwen."""

    _BEGIN, _END = "<tool_call>", "</tool_call>"

    def __init__(self) -> None:
        super().__init__()
        self._inside = False
        self._had_call = False

    def feed(self, text: str) -> Sequence[OutputEvent]:
        self._held += text
        events: list[OutputEvent] = []
        while (self._held or self._call is not None) and self._step(events):
            pass
        return events

    def _step(self, events: list[OutputEvent]) -> bool:
        """Read the next part. Returns False if more text is needed."""
        if not self._inside:
            return self._find_begin(events)
        if self._call is None:
            held = self._held.lstrip()
            if held.startswith(self._END):
                self._held, self._inside = held[len(self._END) :], False
                return True
            if self._END.startswith(held):
                return False
        found, ended = self._read_call()
        events += found
        return ended

    def _find_begin(self, events: list[OutputEvent]) -> bool:
        before, mark, after = self._held.partition(self._BEGIN)
        if mark:
            _add_content(events, before.rstrip() if not before.strip() else before)
            self._held, self._inside, self._had_call = after, True, True
            return True
        kept = prefix_length(self._held, self._BEGIN)
        if self._had_call and not self._held.strip():
            return False  # space between calls
        ready = self._held[: len(self._held) - kept]
        self._held = self._held[len(ready) :]
        _add_content(events, ready)
        return False


class LlamaJsonCalls(_JsonCalls):
    """`{"name": ..., "parameters": {...}}`, several with `;` between, as Llama 3 models write."""

    _TAG = "<|python_tag|>"

    def __init__(self) -> None:
        super().__init__()
        self._is_content: bool | None = None  # None: undecided

    def feed(self, text: str) -> Sequence[OutputEvent]:
        if self._is_content:
            return (Content(text),) if text else ()
        self._held += text
        events: list[OutputEvent] = []
        while self._held.strip() or self._call is not None:
            if self._call is None and not self._at_object():
                break
            if self._is_content:
                held, self._held = self._held, ""
                return [*events, Content(held)]
            found, ended = self._read_call()
            events += found
            if not ended:
                break
            if found and isinstance(found[-1], Content):
                self._is_content = True
        return events

    def _at_object(self) -> bool:
        """Skip what may precede an object. Returns False if more text is needed."""
        held = self._held.lstrip()
        if self._count:
            held = held.lstrip(";, \n\t")
        elif held.startswith(self._TAG):
            held = held[len(self._TAG) :].lstrip()
        elif held and self._TAG.startswith(held):
            return False
        if not held:
            self._held = held if self._count else self._held
            return False
        if held[0] == "{":
            self._held = held
        else:
            self._is_content = True
        return True


class JsonArrayCalls(_JsonCalls):
    """`[{"name": ..., "parameters": {...}}, ...]`: what a schema for required calls allows."""

    def feed(self, text: str) -> Sequence[OutputEvent]:
        self._held += text
        events: list[OutputEvent] = []
        while self._held or self._call is not None:
            if self._call is None:
                self._held = self._held.lstrip("[, \n\t\r")
                if not self._held:
                    break
                if self._held[0] == "]":
                    self._held = ""
                    break
            found, ended = self._read_call()
            events += found
            if not ended:
                break
        return events


class MistralCalls(OutputParser):
    """`[TOOL_CALLS]` and a JSON array, or `[TOOL_CALLS]name[ARGS]{...}`, the format of Mistral."""

    _BEGIN, _ARGUMENTS = "[TOOL_CALLS]", "[ARGS]"

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._array: JsonArrayCalls | None = None
        self._named: JsonCall | None = None
        self._count = 0

    def feed(self, text: str) -> Sequence[OutputEvent]:
        self._held += text
        events: list[OutputEvent] = []
        if not self._inside and not self._find_begin(events):
            return events
        while self._held or self._named is not None:
            if self._array is None and self._named is None and not self._begin_form():
                break
            held, self._held = self._held, ""
            if self._array is not None:
                events += self._array.feed(held)
                self.held_bytes = self._array.held_bytes
                break
            if self._named is not None and not self._read_named(held, events):
                break
        return events

    def finish(self) -> Sequence[OutputEvent]:
        if self._array is not None:
            return self._array.finish()
        held, self._held = self._held, ""
        if not held.strip():
            return ()
        return (Content(self._BEGIN + held if self._inside else held),)

    def _find_begin(self, events: list[OutputEvent]) -> bool:
        before, mark, after = self._held.partition(self._BEGIN)
        if not mark:
            kept = prefix_length(self._held, self._BEGIN)
            before = self._held[: len(self._held) - kept]
            after = self._held[len(before) :]
        self._held, self._inside = after, bool(mark)
        _add_content(events, before)
        return self._inside

    def _begin_form(self) -> bool:
        """Choose the form of the calls. Returns False if more text is needed."""
        held = self._held.lstrip()
        if self._count:  # each further call has its own mark
            if self._BEGIN.startswith(held):
                return False
            held = held.removeprefix(self._BEGIN)
        elif held.startswith("["):
            self._array = JsonArrayCalls()
            return True
        name, brace, arguments = held.partition("{")
        if not brace:
            return False
        name = name.strip().removesuffix(self._ARGUMENTS).strip()
        # Read as an object of the other form, which ends with its arguments.
        self._named = JsonCall(self._count, ends_with_arguments=True)
        self._held = f'{{"name": {json.dumps(name)}, "arguments": {{{arguments}'
        return True

    def _read_named(self, text: str, events: list[OutputEvent]) -> bool:
        call = self._named
        assert call is not None  # noqa: S101
        events += call.feed(text)
        self.held_bytes = len(call.text)
        if not call.done:
            return False
        self._held = call.rest.lstrip()
        self._named, self.held_bytes = None, 0
        self._count += 1
        return True


def _add_content(events: list[OutputEvent], text: str) -> None:
    if text:
        events.append(Content(text))
