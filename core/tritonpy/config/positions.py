"""Where in its text each key of a configuration stands."""

from __future__ import annotations

import re
from typing import NamedTuple

_SEGMENT = re.compile(r'\.?[A-Za-z_]\w*|\["(?:[^"\\]|\\.)*"\]|\[[^"\]]*\]', re.DOTALL)


class Position(NamedTuple):
    """A place in a text; both counted from 1, columns in characters."""

    line: int
    column: int


class Positions(dict[str, Position]):
    """Key path -> position; empty for a configuration that did not come from a text.

    A list has one entry for its key (`input`) and one per element (`input[0]`), a map the same (`parameters["a"]`).
    """

    def nearest(self, path: str) -> Position | None:
        """Return the position of `path` or of the innermost part of it that the text has."""
        while path:
            if path in self:
                return self[path]
            path = parent(path)
        return None


def parent(path: str) -> str:
    """Return `input[0]` for `input[0].dims` and `input` for `input[0]`; empty for a single name."""
    return "".join(_SEGMENT.findall(path)[:-1])


def child(path: str, name: str) -> str:
    """Return the path of a field of the message at `path`."""
    return f"{path}.{name}" if path else name


def entry(path: str, key: str | float) -> str:
    """Return the path of the map entry of `path` under `key`; a string key is quoted, its quotes are escaped."""
    if not isinstance(key, str):
        return f"{path}[{key}]"
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'{path}["{quoted}"]'
