"""Stop strings, which end a text and may arrive in pieces. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Passes a text on piece by piece and holds back a possible beginning of a stop string.

    `matched` is the stop string that ended the text, or None.
    """

    def __init__(self, strings: Sequence[str], keep: bool = False) -> None:
        self.matched: str | None = None
        self._strings = strings
        self._keep = keep  # keep the stop string in the text
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text that can be sent now; nothing after a match."""
        if self.matched is not None:
            return ""
        if not self._strings:
            return text
        held = self._held + text
        found = min(
            (
                (held.find(string), -len(string), string)
                for string in self._strings
                if string in held
            ),
            default=None,
        )
        if found is not None:
            at, _, self.matched = found
            self._held = ""
            return held[: at + len(self.matched) if self._keep else at]
        safe = len(held) - max(_overlap(held, string) for string in self._strings)
        self._held = held[safe:]
        return held[:safe]

    def flush(self) -> str:
        """Return the text that was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, string: str) -> int:
    """Return the number of characters at the end of `text` that begin `string`."""
    return next(
        (
            size
            for size in range(min(len(text), len(string) - 1), 0, -1)
            if text.endswith(string[:size])
        ),
        0,
    )
