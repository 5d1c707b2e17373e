"""One thing that is wrong in a configuration, and the error that carries all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy.errors import InvalidArgument

# a file that is no configuration at all has a problem on every line
SHOWN = 50


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """What is wrong, at which key, and where in the text if it came from one."""

    path: str
    """The key: `input[0].dims[1]`, `parameters["a"].string_value`; empty for the whole configuration."""
    text: str
    line: int | None = None
    """Counted from 1."""
    column: int | None = None
    """Counted from 1, in characters."""

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}, column {self.column}: "
        key = f"{self.path}: " if self.path else ""
        return f"{place}{key}{self.text}"


class InvalidConfig(InvalidArgument):
    """A configuration with all of its problems; the text names each of them on a line of its own."""

    def __init__(self, problems: Sequence[ConfigProblem], source: str) -> None:
        self.problems = tuple(problems)
        self.source = source
        count = len(self.problems)
        lines = [f"{source} has {count} problem{'s' if count != 1 else ''}:"]
        lines += [f"  {problem}" for problem in self.problems[:SHOWN]]
        if count > SHOWN:
            lines.append(f"  and {count - SHOWN} more")
        super().__init__("\n".join(lines))

    def with_request_id(self, request_id: str) -> InvalidArgument:
        """Return an error with Triton's request prefix; its text names the problems, it no longer holds them."""
        return InvalidArgument(f"[request id: {request_id or '<id_unknown>'}] {self.message}", self.reason)


def refuse_problems(problems: Sequence[ConfigProblem], source: str) -> None:
    """Raise one InvalidConfig with all problems of the configuration called `source`, if there are any."""
    if problems:
        raise InvalidConfig(problems, source)
