"""The server's answers to questions, or its errors."""

from __future__ import annotations

from typing import Any

from tritonpy.errors import error_of
from tritonpy.ipc.questions import Questions
from tritonpy.runners.workers.asked_engine import Ask


def asker(questions: Questions) -> Ask:
    """Return a function that asks `verb` with keyword arguments and returns the value; it raises the TritonError that the server answers."""

    def ask(verb: str, **arguments: Any) -> Any:
        said = questions.ask(verb, arguments).extras
        if "error" in said:
            raise error_of(*said["error"])
        return said["value"]

    return ask
