"""The positions of a configuration's keys in its text."""

from __future__ import annotations

import re
from typing import NamedTuple

_SEGMENT = re.compile(r'\.?[A-Za-z_]\w*|\["(?:[^"\\]|\\.)*"\]|\[[^"\]]*\]', re.DOTALL)


class Position(NamedTuple):
    """A position in a text; both numbers start at 1, columns count characters."""

    line: int
    column: int


class Positions(dict[str, Position]):
    """Maps key paths to positions; empty for a configuration that was not parsed from a text.

    A list has one entry for its key (`input`) and one per element (`input[0]`), a map likewise
    (`parameters["a"]`).
    """

    def nearest(self, path: str) -> Position | None:
        """Return the position of `path` or of its innermost part that the text contains."""
        while path:
            if path in self:
                return self[path]
            path = parent(path)
        return None


def parent(path: str) -> str:
    """Return the parent of a path, empty for a single name.

    It is `input[0]` for `input[0].dims`, and `input` for `input[0]`.
    """
    return "".join(_SEGMENT.findall(path)[:-1])


def child(path: str, name: str) -> str:
    """Return the path of a field of the message at `path`."""
    return f"{path}.{name}" if path else name


def entry(path: str, key: str | float) -> str:
    """Return the path of the map entry `key` of `path`; string keys are quoted and escaped."""
    if not isinstance(key, str):
        return f"{path}[{key}]"
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'{path}["{quoted}"]'
