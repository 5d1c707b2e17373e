"""The error with all problems of a server configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tritonpy_config.problem import ConfigProblem
from tritonpy_types.errors import StartupError


class InvalidServerConfig(StartupError):
    """An invalid server configuration; the text lists each problem on a separate line."""

    def __init__(
        self, problems: Sequence[ConfigProblem], source: str = "the server's configuration"
    ) -> None:
        self.problems = tuple(problems)
        self.source = source
        count = len(self.problems)
        lines = [
            f"{source} has {count} problem{'s' if count != 1 else ''}:",
            *[f"  {each}" for each in self.problems],
        ]
        super().__init__("\n".join(lines))

    def located(
        self, locate: Callable[[ConfigProblem], ConfigProblem], source: str
    ) -> InvalidServerConfig:
        """Return the same error with problems mapped by `locate`, which adds positions."""
        return InvalidServerConfig([locate(problem) for problem in self.problems], source)

    @classmethod
    def joined(cls, errors: Iterable[InvalidServerConfig]) -> InvalidServerConfig:
        """Return one error with the problems of all `errors`."""
        return cls([problem for error in errors for problem in error.problems])
