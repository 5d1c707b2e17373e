"""Looks at the files that encrypt ports, and lets Envoy read them again when they changed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tritonpy import StartupError, TlsFiles
from tritonpy_frontend_envoy.handover import TlsWatch
from tritonpy_frontend_http.tls_options import HttpTlsOptions

LOG = logging.getLogger("tritonpy.envoy")
PERIOD_S = 1.0


class Renewal:
    """Watches until `stop`. What does not fit together is left alone, and what Envoy has stays in force."""

    def __init__(self, watches: Sequence[TlsWatch]) -> None:
        self._tasks = [asyncio.create_task(_watch(_files(watch), Path(watch.folder))) for watch in watches]

    async def stop(self) -> None:
        """Watch no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _files(watch: TlsWatch) -> TlsFiles:
    files = TlsFiles(msgspec.convert(watch.options, HttpTlsOptions), watch.owner, LOG)
    with contextlib.suppress(StartupError):  # they were right a moment ago, when Envoy read them: a change is told
        files.context()
    return files


async def _watch(files: TlsFiles, folder: Path) -> None:
    while True:
        await asyncio.sleep(PERIOD_S)
        if await asyncio.to_thread(files.renewed) is not None:
            _tell_envoy(folder)


def _tell_envoy(folder: Path) -> None:
    """Move a file into the folder, which is what Envoy looks for."""
    fresh = folder / "changed.new"
    fresh.write_bytes(b"")
    os.replace(fresh, folder / "changed")
