"""Inspection of interpreters: version, packages, and whether models can run in them."""

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
# In a syntax that every Python understands, so that an old one can report its version.
_INSPECTION_CODE = """\
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
    "base": [
        getattr(sys, "base_prefix", sys.prefix),
        sys.version,
        sysconfig.get_platform(),
        platform.libc_ver(),
    ],
    "site_packages": getattr(site, "getsitepackages", list)(),
    "numpy": numpy_version,
    "numpy_error": numpy_error,
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """The properties of an interpreter.

    Interpreters with equal `identity` can share compiled packages.
    """

    version: tuple[int, int, int]
    executable: str
    identity: str
    site_packages: tuple[str, ...]
    numpy: str
    numpy_error: str

    @property
    def version_text(self) -> str:
        """The version as text, such as `3.11.7`."""
        return ".".join(map(str, self.version))

    @property
    def has_numpy(self) -> bool:
        """True if it can import a numpy that is new enough."""
        return tuple(map(int, re.findall(r"\d+", self.numpy)[:2])) >= OLDEST_NUMPY


_known: dict[tuple[object, ...], Interpreter] = {}
_known_lock = threading.Lock()


def interpreter_of(environment: Environment) -> Interpreter:
    """Return the properties of the environment's interpreter.

    A usable one is inspected once per process. Raises `Internal` if it cannot be started or does
    not respond, and `InvalidArgument` if it is too old for models.
    """
    key = _key(environment)
    with _known_lock:
        known = _known.get(key)
    if known is not None:
        return known
    interpreter = _inspect(environment)
    if interpreter.version < OLDEST:
        raise InvalidArgument(
            f"{environment.description} has Python {interpreter.version_text} "
            f"({interpreter.executable}), {NEEDED}"
        )
    # Else it is inspected again, because it may be repaired in the meantime.
    if interpreter.has_numpy:
        with _known_lock:
            _known[key] = interpreter
    return interpreter


def require_numpy(environment: Environment, interpreter: Interpreter) -> None:
    """Raise `Internal` with a repair command if numpy is missing, broken or too old."""
    if interpreter.has_numpy:
        return
    oldest = ".".join(map(str, OLDEST_NUMPY))
    found = (
        f"has numpy {interpreter.numpy}"
        if interpreter.numpy
        else f"has no numpy ({interpreter.numpy_error})"
    )
    remedy = environment.remedy.format(
        interpreter=interpreter.executable, package=f"numpy>={oldest}"
    )
    raise Internal(f"{environment.description} {found}, models need {oldest} or newer: {remedy}")


def _key(environment: Environment) -> tuple[object, ...]:
    path = shutil.which(environment.interpreter) or environment.interpreter
    try:
        status = os.stat(path)
    except OSError:
        return (path,)
    return (path, environment.activate, status.st_dev, status.st_ino, status.st_mtime_ns)


def _inspect(environment: Environment) -> Interpreter:
    try:
        done = subprocess.run(
            environment.command(["-c", _INSPECTION_CODE]),
            env=environment.process_variables(),
            cwd="/",  # -c puts the working folder on sys.path
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
        return _parse_properties(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise _cannot_start(environment, f"no answer after {_TIMEOUT_SECONDS} s") from error
    except subprocess.CalledProcessError as error:
        raise _cannot_start(
            environment, f"status {error.returncode}: {error.stderr.strip()}"
        ) from error
    except (OSError, ValueError, LookupError) as error:
        raise _cannot_start(environment, str(error)) from error


def _parse_properties(output: str) -> Interpreter:
    # An activate script may have printed lines before.
    properties = json.loads(output.splitlines()[-1])
    return Interpreter(
        version=tuple(properties["version"]),
        executable=properties["executable"],
        identity=json.dumps(properties["base"]),
        site_packages=tuple(properties["site_packages"]),
        numpy=properties["numpy"],
        numpy_error=properties["numpy_error"],
    )


def _cannot_start(environment: Environment, reason: str) -> Internal:
    return Internal(
        f"{environment.description}: its interpreter {environment.interpreter} cannot be "
        f"started: {reason}"
    )
