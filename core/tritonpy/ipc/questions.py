"""Questions from one end to the other that are not about inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

    def take(self, reply: Frame) -> None:
        self.reply.append(reply)
        self.waiter.wake()


class Questions:
    """Asks and waits, from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._open: dict[int, Callable[[Frame], None]] = {}
        channel.on(Kind.REPLY, self._replied)

    def ask(self, verb: str, arguments: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Frame:
        """Return the reply: its JSON has "value", or "error" with a code and a text. What came with it is the caller's to take.

        `descriptors` go with the question and are closed here. Raises ChannelClosed.
        """
        question = _Question()
        self.ask_later(verb, arguments, question.take, descriptors)
        self._channel.wait(question.waiter, question.reply.__len__)
        return question.reply[0]

    def ask_later(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        replied: Callable[[Frame], None],
        descriptors: Sequence[int] = (),
    ) -> None:
        """Ask and go on; `replied` gets the reply, in the thread that reads: it must neither wait nor call the model's code. Raises ChannelClosed."""
        number = next(self._numbers)
        self._open[number] = replied
        self._channel.send(Kind.ASK, [number], extras={"verb": verb, "arguments": arguments}, descriptors=descriptors)

    def _replied(self, frame: Frame) -> None:
        replied = self._open.pop(frame.words[0], None)
        if replied is not None:
            replied(frame)
