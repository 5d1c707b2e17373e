"""The command `tritonpy chat`: a chat in the terminal with a language model.

Plugin discovery imports this module only.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command."""
    return {"chat": "tritonpy_chat.command:ChatCommand"}
