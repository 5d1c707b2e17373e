"""The interfaces of transports: what carries the protocols of frontends, in the server's process or in one that it runs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from tritonpy.api.options import NoOptions, Options
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server.invalid import InvalidServerConfig
from tritonpy.errors import StartupError


@dataclass(frozen=True, slots=True)
class Launch:
    """What a transport with a process of its own is to start. `frontends` has the options of those that it carries, by name, `host` where they listen that
    say nothing.

    `document` is the server's configuration, which `Embedded` takes in the new process.
    """

    document: bytes
    host: str
    frontends: Mapping[str, Any]
    exit_timeout_s: float


class Failure(msgspec.Struct, frozen=True):
    """Why a server could not start, in a form that another process can be told: a text, or what is wrong in its configuration."""

    text: str
    problems: list[ConfigProblem] = []

    @classmethod
    def of(cls, error: StartupError) -> Failure:
        """Return that of an error."""
        problems = error.problems if isinstance(error, InvalidServerConfig) else ()
        return cls(str(error), list(problems))

    def error(self) -> StartupError:
        """Return the error again."""
        return InvalidServerConfig(self.problems) if self.problems else StartupError(self.text)


class Transport(ABC):
    """Carries the protocols of frontends in place of their own listeners; `carries` are the classes that do it, by the frontends' names.

    They take the same options, and are made where the frontends would be. With `shares_ports` those frontends may have one port together.
    """

    Options: ClassVar[type[Options]] = NoOptions
    carries: ClassVar[Mapping[str, str]] = {}
    shares_ports: ClassVar[bool] = False

    def __init__(self, options: Any) -> None:
        self.options = options


class ProcessTransport(Transport):
    """Carries them in a process of another kind, in which the server runs and whose listeners bring the requests."""

    @abstractmethod
    def run(self, launch: Launch) -> int:
        """Serve in a process of the transport's own until a signal ends it; return the exit status.

        Raises StartupError where that process or the server in it cannot start.
        """
