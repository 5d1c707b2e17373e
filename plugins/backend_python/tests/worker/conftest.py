"""Fixtures for the worker's runtime and for workers, which end with their test."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

WORKER = Path(__file__).parents[2] / "tritonpy_backend_python" / "worker"
sys.path.insert(0, str(WORKER))

from .calling import HELPERS, RESPOND  # noqa: E402
from .peer import Peer  # noqa: E402

PYTHON = os.environ.get("WORKER_PYTHON", sys.executable)  # any interpreter with numpy
IMPORTS = """\
import asyncio, os, sys, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils
"""


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a model.py from its text or the methods of its class."""

    def write(code: str, name: str = "m", version: str = "1", whole: bool = False) -> Path:
        folder = tmp_path / name / version
        folder.mkdir(parents=True, exist_ok=True)
        code = dedent(code).strip("\n") + "\n"
        if not whole:
            body = "".join(f"    {line}\n" if line else "\n" for line in code.splitlines())
            code = f"{IMPORTS}\nclass TritonPythonModel:\n{body}"
        (folder / "model.py").write_text(code)
        return folder / "model.py"

    return write


@pytest.fixture
def start_worker(write_model: Callable[..., Path]) -> Iterator[Callable[..., Peer]]:
    """Return a function that starts a worker for the code of a model.

    `options` override fields of START.
    """
    peers: list[Peer] = []

    def start(
        code: str = "", python: str = PYTHON, whole: bool = False, env: Any = None, **options: Any
    ) -> Peer:
        file = options.pop("model_file", None) or write_model(code, whole=whole)
        role = [options.pop("role")] if "role" in options else []
        peers.append(Peer.run([python, str(WORKER), *role], file, env, options))
        return peers[-1]

    yield start
    for peer in peers:
        peer.close()


@pytest.fixture
def worker(start_worker: Callable[..., Peer]) -> Callable[..., Peer]:
    """Return a function that starts a worker and waits until it can execute."""

    def start(*args: Any, **options: Any) -> Peer:
        peer = start_worker(*args, **options)
        peer.started()
        return peer

    return start


@pytest.fixture
def calling_execution(worker: Callable[..., Peer]) -> Callable[..., Peer]:
    """Return a function that starts a worker whose `execute` has a given body and no outputs."""

    def start(body: str, asynchronous: bool = False, more: str = "", **options: object) -> Peer:
        lines = "\n".join(f"    {line}" for line in [*body.strip("\n").split("\n"), RESPOND])
        define = "async def" if asynchronous else "def"
        return worker(f"{define} execute(self, requests):\n{lines}\n{HELPERS}{more}", **options)

    return start
