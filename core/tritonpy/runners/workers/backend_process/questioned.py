"""The server's questions about the instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread

import msgspec

from tritonpy.errors import Code, TritonError, exception_text
from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.channel import Channel

Answer = Callable[[], object]


class Questioned:
    """Answers each on a thread of its own, as the server does with instances of its own process. `answers` are by verb."""

    def __init__(self, channel: Channel, answers: Mapping[str, Answer]) -> None:
        self._channel = channel
        self._answers = answers
        channel.on(Kind.ASK, self._asked)

    def _asked(self, frame: Frame) -> None:
        number, verb = frame.words[0], frame.extras["verb"]
        answer = self._answers.get(verb)
        if answer is None:
            text = f"workers answer {' and '.join(self._answers)} alone"
            self._channel.send(Kind.REPLY, [number], extras={"error": [int(Code.UNSUPPORTED), text]})
            return
        Thread(target=self._answer, args=(number, answer), name=verb, daemon=True).start()

    def _answer(self, number: int, answer: Answer) -> None:
        said: dict[str, object]
        try:
            said = {"value": msgspec.to_builtins(answer())}
        except Exception as error:
            code = error.code if isinstance(error, TritonError) else Code.INTERNAL
            said = {"error": [int(code), exception_text(error)]}
        self._channel.send(Kind.REPLY, [number], extras=said)
