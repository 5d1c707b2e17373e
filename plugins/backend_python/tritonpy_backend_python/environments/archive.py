"""Extracts a packed environment."""

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
    """Write what the open archive holds into the empty `folder`, with its progress in the log.

    Raises Internal where it is no archive or damaged, holds what must not be written (see Extraction), is written to meanwhile, or
    where the disk is full.
    """
    state = file_state(file)
    log.info("extracting %s (%.1f MB) into %s", file.name, state[0] / MEGABYTE, folder)
    try:
        _extract(file, folder, log)
    except OSError as error:
        raise _stopped(file, folder, error) from error
    except TritonError:
        raise
    except Exception as error:  # each format has errors of its own
        raise Internal(f"Failed to extract {file.name}: it is damaged: {error}") from error
    if file_state(file) != state:
        raise Internal(f"Failed to extract {file.name}: it changed meanwhile; load the model again")


def _extract(file: BufferedReader, folder: Path, log: logging.LoggerAdapter[logging.Logger]) -> None:
    extraction = Extraction(folder, file.name)
    begin = said = time.monotonic()
    size = max(os.fstat(file.fileno()).st_size, 1)
    for member in members(file):
        extraction.add(member)
        now = time.monotonic()
        if now - said >= SECONDS_BETWEEN_LINES:
            said = now
            log.info("extracting %s: %.0f %%, %d files", file.name, 100 * file.tell() / size, extraction.files)
    extraction.check_links()
    seconds = time.monotonic() - begin
    log.info(
        "extracted %s: %d files, %.1f MB, %.1f s", file.name, extraction.files, extraction.size / MEGABYTE, seconds
    )


def _stopped(file: BufferedReader, folder: Path, error: OSError) -> Internal:
    if error.errno not in _FULL:
        return Internal(f"Failed to extract {file.name} into {folder}: {error}")
    shutil.rmtree(folder, ignore_errors=True)  # so that the free space is what a second try will find
    folder.mkdir()
    needed = sum(member.size for member in members(file))
    return Internal(
        f"Failed to extract {file.name}: the disk of {folder} is full: {needed / MEGABYTE:.1f} MB are needed, "
        f"{shutil.disk_usage(folder).free / MEGABYTE:.1f} MB are free; make room or choose another folder with the "
        "backend's option environments-dir"
    )
