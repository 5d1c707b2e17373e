"""Questions from one end to the other that are not about inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from .channel import Channel
from .frame import Frame
from .kinds import Kind
from .waiter import Waiter


class _Question:
    def __init__(self) -> None:
        self.waiter = Waiter()
        self.reply: list[Frame] = []


class Questions:
    """Asks and waits, from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._open: dict[int, _Question] = {}
        channel.on(Kind.REPLY, self._replied)

    def ask(self, verb: str, arguments: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Frame:
        """Return the reply: its JSON has "value", or "error" with a code and a text. What came with it is the caller's to take.

        `descriptors` go with the question and are closed here. Raises ChannelClosed.
        """
        question = _Question()
        number = next(self._numbers)
        self._open[number] = question
        self._channel.send(Kind.ASK, [number], extras={"verb": verb, "arguments": arguments}, descriptors=descriptors)
        self._channel.wait(question.waiter, question.reply.__len__)
        return question.reply[0]

    def _replied(self, frame: Frame) -> None:
        question = self._open.pop(frame.words[0], None)
        if question is not None:
            question.reply.append(frame)
            question.waiter.wake()
