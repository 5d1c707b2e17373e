"""Environments named by the parameter EXECUTION_ENV_PATH: an archive or a folder."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import replace
from io import BufferedReader
from pathlib import Path

from tritonpy import Internal, InvalidArgument
from tritonpy.config import resolve_model_file
from tritonpy_backend_python.environments.archive import extract
from tritonpy_backend_python.environments.cache import EnvironmentCache
from tritonpy_backend_python.environments.environment import (
    Environment,
    folder_variables,
    foreign_variables,
)
from tritonpy_backend_python.environments.process import CommandFailed, run_logged

PARAMETER = "EXECUTION_ENV_PATH"
MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
REPACK = "install '{package}' in the environment that was packed, and pack it again"


def execution_environment(
    value: str,
    model_directory: Path,
    cache: EnvironmentCache,
    log: logging.LoggerAdapter[logging.Logger],
) -> Environment:
    """Return the environment in `value`, the path of an archive or a folder.

    An archive is extracted once per content. Raises `InvalidArgument` if a path relative to the
    model's folder leads out of it, and `Internal` if there is no environment.
    """
    path = _located(value, model_directory)
    log.info("Using Python execution env %s", path)
    if path.is_dir():
        return folder_environment(path, f"the execution environment {path}")
    with path.open("rb") as file:
        return _packed(file, path, cache, log)


def folder_environment(folder: Path, description: str) -> Environment:
    """Return the conda or virtual environment in `folder`.

    If it has an activate script but no interpreter, `python3` comes from the script's PATH. Raises
    `Internal` if it has neither.
    """
    activate = folder / "bin" / "activate"
    names = (folder / "bin" / name for name in ("python", "python3"))
    interpreter = next((str(path) for path in names if os.path.lexists(path)), "")
    if not activate.exists():
        if not interpreter:
            raise Internal(
                f"Path {activate} does not exist. The Python environment should contain an "
                "'activate' script."
            )
        return Environment(
            interpreter, description, variables=folder_variables(folder, foreign_variables())
        )
    if shutil.which("bash") is None:
        raise Internal(f"{description} is activated by {activate}, which needs bash: install bash")
    return Environment(interpreter or "python3", description, activate, foreign_variables())


def _located(value: str, model_directory: Path) -> Path:
    path = Path(value)
    if value.startswith(MODEL_DIRECTORY):
        name = value.removeprefix(MODEL_DIRECTORY)
        if not name.startswith("/"):
            raise InvalidArgument(f"{PARAMETER} '{value}' is outside the model's folder")
        try:
            path = resolve_model_file(name, model_directory, model_directory)
        except InvalidArgument as error:
            raise InvalidArgument(f"{PARAMETER}: {error}") from error
    try:
        return Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError) as error:
        raise Internal(f"Failed to get the canonical path for {path}.") from error


def _packed(
    file: BufferedReader,
    path: Path,
    cache: EnvironmentCache,
    log: logging.LoggerAdapter[logging.Logger],
) -> Environment:
    description = f"the execution environment {path}"

    def build(folder: Path, lock: int) -> None:
        extract(file, folder, log)
        _unpack(folder, folder_environment(folder, description), lock, log)

    lease = cache.obtain(f"archive-{cache.digests.of_open(file)[:32]}", str(path), build, log)
    return replace(folder_environment(lease.folder, description), remedy=REPACK, leases=(lease,))


def _unpack(
    folder: Path, environment: Environment, lock: int, log: logging.LoggerAdapter[logging.Logger]
) -> None:
    """Run conda-pack's program, which replaces the paths of the environment's original folder."""
    program = folder / "bin" / "conda-unpack"
    if not program.is_file():
        return
    try:
        run_logged(
            replace(environment, interpreter=str(program)).command([]),
            folder,
            environment.process_variables(),
            lock,
            lambda line: log.info("conda-unpack: %s", line),
        )
    except (CommandFailed, OSError) as error:
        raise Internal(
            f"{environment.description} cannot be adjusted to its folder: {error}"
        ) from error
