"""Problems of a configuration, and the error that contains all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy.errors import InvalidArgument

# a file that is not a configuration at all has a problem in every line
MAX_LISTED = 50


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
        return InvalidArgument(f"[request id: {request_id or '<id_unknown>'}] {self.message}", self.reason)


def refuse_problems(problems: Sequence[ConfigProblem], source: str) -> None:
    """Raise one InvalidConfig with all problems of the configuration `source`, if there are any."""
    if problems:
        raise InvalidConfig(problems, source)
