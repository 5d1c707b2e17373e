"""Extraction of packed environments."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import time
from io import BufferedReader
from pathlib import Path

from tritonpy import Internal, TritonError
from tritonpy_backend_python.environments.digests import file_state
from tritonpy_backend_python.environments.extraction import Extraction
from tritonpy_backend_python.environments.members import members

SECONDS_BETWEEN_LINES = 5.0
MEGABYTE = 1e6
_FULL = {errno.ENOSPC, errno.EDQUOT}


def extract(file: BufferedReader, folder: Path, log: logging.LoggerAdapter[logging.Logger]) -> None:
    """Extract the open archive into the empty `folder` and log the progress.

    Raises `Internal` if it is not a valid archive, has a forbidden member (see `Extraction`),
    changes meanwhile, or if the disk is full.
    """
    state = file_state(file)
    log.info("extracting %s (%.1f MB) into %s", file.name, state[0] / MEGABYTE, folder)
    try:
        _extract(file, folder, log)
    except OSError as error:
        raise _stopped(file, folder, error) from error
    except TritonError:
        raise
    except Exception as error:  # each format has its own errors
        raise Internal(f"Failed to extract {file.name}: it is damaged: {error}") from error
    if file_state(file) != state:
        raise Internal(
            f"Failed to extract {file.name}: it changed during extraction; load the model again"
        )


def _extract(
    file: BufferedReader, folder: Path, log: logging.LoggerAdapter[logging.Logger]
) -> None:
    extraction = Extraction(folder, file.name)
    begin = logged_at = time.monotonic()
    size = max(os.fstat(file.fileno()).st_size, 1)
    for member in members(file):
        extraction.add(member)
        now = time.monotonic()
        if now - logged_at >= SECONDS_BETWEEN_LINES:
            logged_at = now
            log.info(
                "extracting %s: %.0f %%, %d files",
                file.name,
                100 * file.tell() / size,
                extraction.files,
            )
    extraction.check_links()
    seconds = time.monotonic() - begin
    log.info(
        "extracted %s: %d files, %.1f MB, %.1f s",
        file.name,
        extraction.files,
        extraction.size / MEGABYTE,
        seconds,
    )


def _stopped(file: BufferedReader, folder: Path, error: OSError) -> Internal:
    if error.errno not in _FULL:
        return Internal(f"Failed to extract {file.name} into {folder}: {error}")
    # A second try needs the space, and the error reports it.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    needed = sum(member.size for member in members(file))
    return Internal(
        f"Failed to extract {file.name}: the disk of {folder} is full: "
        f"{needed / MEGABYTE:.1f} MB are needed, "
        f"{shutil.disk_usage(folder).free / MEGABYTE:.1f} MB are free; "
        "free space or choose another folder with the "
        "backend's option environments-dir"
    )
