"""Problems of a configuration, and the error that contains all of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tritonpy_types.errors import InvalidArgument

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

# a file that is not a configuration at all has a problem in every line
MAX_LISTED = 50


_SEGMENT = re.compile(r'\.?[A-Za-z_]\w*|\["(?:[^"\\]|\\.)*"\]|\[[^"\]]*\]', re.DOTALL)


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> str:
    """Return the error text for a name that is not in `valid`: the closest name, or all names."""
    names = list(valid)
    folded = {candidate.lower(): candidate for candidate in names}
    # an abbreviation such as FP32 for TYPE_FP32 is closer in meaning than in letters
    near = [candidate for candidate in names if candidate.lower().endswith(f"_{name.lower()}")]
    near += [
        folded[found]
        for found in difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.7)
    ]
    if near:
        return f"unknown {kind} '{name}'; did you mean '{near[0]}'?"
    if not names:
        return f"unknown {kind} '{name}'; no name is valid here"
    return f"unknown {kind} '{name}'; valid here: {', '.join(names)}"


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


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A problem, its key, and its position if the configuration was parsed from a text."""

    path: str
    """The key: `input[0].dims[1]`, `parameters["a"].string_value`.

    Empty for the whole configuration.
    """
    text: str
    line: int | None = None
    """Starts at 1."""
    column: int | None = None
    """Starts at 1, in characters."""

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}, column {self.column}: "
        key = f"{self.path}: " if self.path else ""
        return f"{place}{key}{self.text}"


class InvalidConfig(InvalidArgument):
    """An invalid configuration; the text lists each problem on a separate line."""

    def __init__(self, problems: Sequence[ConfigProblem], source: str) -> None:
        self.problems = tuple(problems)
        self.source = source
        count = len(self.problems)
        lines = [f"{source} has {count} problem{'s' if count != 1 else ''}:"]
        lines += [f"  {problem}" for problem in self.problems[:MAX_LISTED]]
        if count > MAX_LISTED:
            lines.append(f"  and {count - MAX_LISTED} more")
        super().__init__("\n".join(lines))

    def with_request_id(self, request_id: str) -> InvalidArgument:
        """Return an error with Triton's request prefix; it has the text, but no `problems`."""
        return InvalidArgument(
            f"[request id: {request_id or '<id_unknown>'}] {self.message}", self.reason
        )


def refuse_problems(problems: Sequence[ConfigProblem], source: str) -> None:
    """Raise one InvalidConfig with all problems of the configuration `source`, if there are any."""
    if problems:
        raise InvalidConfig(problems, source)


class ParsedConfig(NamedTuple):
    """The valid part of a configuration and all problems of the rest."""

    config: ModelConfig
    positions: Positions
    problems: list[ConfigProblem]
    """In the order of the text."""

    def checked(self, source: str) -> ModelConfig:
        """Return the configuration; raises InvalidConfig with `source` and all problems, if any."""
        refuse_problems(self.problems, source)
        return self.config
