"""Questions to the server, whose refusals a model sees as exceptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .api.errors import TritonModelException
from .ipc import Frame, questions


class Questions(questions.Questions):
    """Asks and waits, from any thread."""

    def ask(self, verb: str, arguments: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Frame:
        """Return the reply; its descriptors are the caller's to take. Raises TritonModelException with the server's reason, and ChannelClosed."""
        reply = super().ask(verb, arguments, descriptors)
        error = reply.extras.get("error")
        if error is not None:
            raise TritonModelException(error[1])
        return reply
