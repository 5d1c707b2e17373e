"""The runtime under test, found as a model's interpreter finds it, and workers that are gone when their test is."""

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
    """Return a function that writes a model.py: its text, or the methods of its class."""

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
    """Return a function that starts a worker for a model given as `write_model` takes it; `said` overrides parts of START."""
    peers: list[Peer] = []

    def start(code: str = "", python: str = PYTHON, whole: bool = False, env: Any = None, **said: Any) -> Peer:
        file = said.pop("model_file", None) or write_model(code, whole=whole)
        role = [said.pop("role")] if "role" in said else []
        peers.append(Peer.run([python, str(WORKER), *role], file, env, said))
        return peers[-1]

    yield start
    for peer in peers:
        peer.close()


@pytest.fixture
def worker(start_worker: Callable[..., Peer]) -> Callable[..., Peer]:
    """Do the same and wait until the worker can execute."""

    def start(*args: Any, **said: Any) -> Peer:
        peer = start_worker(*args, **said)
        peer.started()
        return peer

    return start


@pytest.fixture
def caller(worker: Callable[..., Peer]) -> Callable[..., Peer]:
    """Return a function that starts a worker whose `execute` has this body and then answers its requests without outputs."""

    def start(body: str, asynchronous: bool = False, more: str = "", **said: object) -> Peer:
        lines = "\n".join(f"    {line}" for line in [*body.strip("\n").split("\n"), RESPOND])
        define = "async def" if asynchronous else "def"
        return worker(f"{define} execute(self, requests):\n{lines}\n{HELPERS}{more}", **said)

    return start
