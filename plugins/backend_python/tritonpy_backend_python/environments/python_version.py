"""Interpreters named by the parameter PYTHON_VERSION."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_python.environments.environment import Environment, foreign_variables
from tritonpy_backend_python.environments.interpreter import (
    NEEDED,
    OLDEST,
    Interpreter,
    interpreter_of,
)

PARAMETER = "PYTHON_VERSION"
_VERSION = re.compile(r"3\.\d+(\.\d+)?")


def named_interpreter(version: str) -> tuple[Environment, Interpreter]:
    """Return an interpreter of `version` (`3.10` or `3.10.13`), preferably the server's.

    Raises `InvalidArgument` if the version is invalid or no such interpreter is found.
    """
    if not _VERSION.fullmatch(version):
        raise InvalidArgument(
            f"{PARAMETER} '{version}' is not a version of Python 3 such as '3.11' or '3.11.7'"
        )
    if _numbers(version) < OLDEST:
        raise InvalidArgument(f"{PARAMETER} '{version}': {NEEDED}")
    for path in _candidates(version):
        environment = Environment(path, f"Python {version} ({path})", variables=foreign_variables())
        try:
            interpreter = interpreter_of(environment)
        except Internal:  # a stub of a version manager that only fails
            continue
        if is_of_version(interpreter, version):
            return environment, interpreter
    raise InvalidArgument(
        f"{PARAMETER} '{version}': no such interpreter is on the server's PATH; install one, "
        "for example with "
        f"`uv python install {version}`"
    )


def is_of_version(interpreter: Interpreter, version: str) -> bool:
    """Return true if an interpreter has `version`; `3.10.13` has version `3.10`."""
    wanted = _numbers(version)
    return interpreter.version[: len(wanted)] == wanted


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    name = "python" + ".".join(version.split(".")[:2])
    for folder in os.get_exec_path():
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            yield os.path.abspath(path)
    yield from _known_to_uv(version)


def _known_to_uv(version: str) -> list[str]:
    try:
        done = subprocess.run(
            ["uv", "python", "find", "--no-project", "--system", version],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return []
    return done.stdout.split("\n")[:1] if done.returncode == 0 else []
