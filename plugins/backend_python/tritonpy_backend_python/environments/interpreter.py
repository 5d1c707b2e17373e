"""What an interpreter says of itself, and whether models can run in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_python.environments.environment import Environment

OLDEST = (3, 9)
OLDEST_NUMPY = (1, 21)
NEEDED = f"models need Python {OLDEST[0]}.{OLDEST[1]} or newer"
_TIMEOUT_SECONDS = 120
# In the syntax of every Python there is, so that an old one can say how old it is.
_QUESTIONS = """\
import json, platform, site, sys, sysconfig
numpy_version, numpy_error = "", ""
try:
    import numpy
    numpy_version = numpy.__version__
except Exception as error:
    numpy_error = "%s: %s" % (type(error).__name__, error)
sys.stdout.write("\\n" + json.dumps({
    "version": list(sys.version_info[:3]),
    "executable": sys.executable,
    "base": [getattr(sys, "base_prefix", sys.prefix), sys.version, sysconfig.get_platform(), platform.libc_ver()],
    "site_packages": getattr(site, "getsitepackages", list)(),
    "numpy": numpy_version,
    "numpy_error": numpy_error,
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """An interpreter's answers; `identity` is equal for two that can use each other's compiled packages."""

    version: tuple[int, int, int]
    executable: str
    identity: str
    site_packages: tuple[str, ...]
    numpy: str
    numpy_error: str

    @property
    def version_text(self) -> str:
        """Return `3.11.7`."""
        return ".".join(map(str, self.version))

    @property
    def has_numpy(self) -> bool:
        """Say whether a numpy that is new enough can be imported."""
        return tuple(map(int, re.findall(r"\d+", self.numpy)[:2])) >= OLDEST_NUMPY


_known: dict[tuple[object, ...], Interpreter] = {}
_known_lock = threading.Lock()


def interpreter_of(environment: Environment) -> Interpreter:
    """Return what the environment's interpreter says of itself; one that can serve is asked once per process.

    Raises Internal where it cannot be started or does not answer, InvalidArgument where it is too old for models.
    """
    key = _key(environment)
    with _known_lock:
        known = _known.get(key)
    if known is not None:
        return known
    interpreter = _ask(environment)
    if interpreter.version < OLDEST:
        raise InvalidArgument(
            f"{environment.description} has Python {interpreter.version_text} ({interpreter.executable}), {NEEDED}"
        )
    if interpreter.has_numpy:  # without it, it is asked again: it may be repaired meanwhile
        with _known_lock:
            _known[key] = interpreter
    return interpreter


def require_numpy(environment: Environment, interpreter: Interpreter) -> None:
    """Raise Internal where numpy is missing, broken or too old, with the command that repairs it."""
    if interpreter.has_numpy:
        return
    oldest = ".".join(map(str, OLDEST_NUMPY))
    found = f"has numpy {interpreter.numpy}" if interpreter.numpy else f"has no numpy ({interpreter.numpy_error})"
    remedy = environment.remedy.format(interpreter=interpreter.executable, package=f"numpy>={oldest}")
    raise Internal(f"{environment.description} {found}, models need {oldest} or newer: {remedy}")


def _key(environment: Environment) -> tuple[object, ...]:
    path = shutil.which(environment.interpreter) or environment.interpreter
    try:
        status = os.stat(path)
    except OSError:
        return (path,)
    return (path, environment.activate, status.st_dev, status.st_ino, status.st_mtime_ns)


def _ask(environment: Environment) -> Interpreter:
    try:
        done = subprocess.run(
            environment.command(["-c", _QUESTIONS]),
            env=environment.process_variables(),
            cwd="/",  # -c puts the working folder on sys.path
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
        return _answers(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise _cannot_start(environment, f"no answer after {_TIMEOUT_SECONDS} s") from error
    except subprocess.CalledProcessError as error:
        raise _cannot_start(environment, f"status {error.returncode}: {error.stderr.strip()}") from error
    except (OSError, ValueError, LookupError) as error:
        raise _cannot_start(environment, str(error)) from error


def _answers(output: str) -> Interpreter:
    answers = json.loads(output.splitlines()[-1])  # an activate script may have printed before
    return Interpreter(
        version=tuple(answers["version"]),
        executable=answers["executable"],
        identity=json.dumps(answers["base"]),
        site_packages=tuple(answers["site_packages"]),
        numpy=answers["numpy"],
        numpy_error=answers["numpy_error"],
    )


def _cannot_start(environment: Environment, reason: str) -> Internal:
    return Internal(f"{environment.description}: its interpreter {environment.interpreter} cannot be started: {reason}")
