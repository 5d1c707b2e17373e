"""The error that carries everything that is wrong in a server configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tritonpy.config.problem import ConfigProblem
from tritonpy.errors import StartupError


class InvalidServerConfig(StartupError):
    """A server configuration with all of its problems; the text names each of them on a line of its own."""

    def __init__(self, problems: Sequence[ConfigProblem], source: str = "the server's configuration") -> None:
        self.problems = tuple(problems)
        self.source = source
        count = len(self.problems)
        lines = [f"{source} has {count} problem{'s' if count != 1 else ''}:", *[f"  {each}" for each in self.problems]]
        super().__init__("\n".join(lines))

    def located(self, locate: Callable[[ConfigProblem], ConfigProblem], source: str) -> InvalidServerConfig:
        """Return the same error with each problem passed through `locate`, which knows where a key was written."""
        return InvalidServerConfig([locate(problem) for problem in self.problems], source)

    @classmethod
    def joined(cls, errors: Iterable[InvalidServerConfig]) -> InvalidServerConfig:
        """Return one error with the problems of all `errors`."""
        return cls([problem for error in errors for problem in error.problems])
