"""Queries from a worker to the server that are not inference requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from .channel import Channel
from .frame import Frame
from .kinds import Kind
from .waiter import Waiter


class _PendingCall:
    def __init__(self) -> None:
        self.waiter = Waiter()
        self.reply: list[Frame] = []

    def take(self, reply: Frame) -> None:
        self.reply.append(reply)
        self.waiter.wake()


class RpcClient:
    """Sends queries and waits for their results, from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._open: dict[int, Callable[[Frame], None]] = {}
        channel.on(Kind.QUERY_RESULT, self._handle_result)

    def call(
        self, verb: str, arguments: Mapping[str, Any], descriptors: Sequence[int] = ()
    ) -> Frame:
        """Send a query and return its result frame.

        The JSON of the result has "value", or "error" with a code and a text. The caller takes the
        descriptors of the result. `descriptors` are sent with the query and closed here. Raises
        `ChannelClosed`.
        """
        question = _PendingCall()
        self.start_call(verb, arguments, question.take, descriptors)
        self._channel.wait(question.waiter, question.reply.__len__)
        return question.reply[0]

    def start_call(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        on_result: Callable[[Frame], None],
        descriptors: Sequence[int] = (),
    ) -> None:
        """Send a query without waiting.

        The reading thread calls `on_result` with the result; it must neither block nor call the
        model's code. Raises `ChannelClosed`.
        """
        number = next(self._numbers)
        self._open[number] = on_result
        self._channel.send(
            Kind.QUERY,
            [number],
            extras={"verb": verb, "arguments": arguments},
            descriptors=descriptors,
        )

    def _handle_result(self, frame: Frame) -> None:
        on_result = self._open.pop(frame.words[0], None)
        if on_result is not None:
            on_result(frame)
