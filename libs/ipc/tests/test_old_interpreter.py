"""A server and a worker in the oldest supported interpreter can communicate."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritonpy_ipc as ipc
from tritonpy_ipc import Endpoint
from tritonpy_types import DTYPES, Tensor

from .exchange import KIND, contents, tensor

FITS = "import sys, numpy; sys.exit(sys.version_info[:2] != (3, 9))"
LARGE = 20_000
WAIT_S = 10


def candidates() -> Iterator[Path]:
    for name in ("python3.9", "python3", "python"):
        for folder in os.get_exec_path():
            found = shutil.which(name, path=folder)
            if found:
                yield Path(found)
    yield from sorted((Path.home() / ".pyenv" / "versions").glob("3.9*/bin/python3.9"))


@pytest.fixture(scope="module")
def interpreter() -> Path:
    """The oldest Python that workers may use, with numpy."""
    for path in candidates():
        if subprocess.run([path, "-c", FITS], capture_output=True, check=False).returncode == 0:
            return path
    pytest.skip("needs Python 3.9 with numpy")


def receive(connection: socket.socket, end: Endpoint) -> Any:
    """Return the next frame."""
    while True:
        data, files, _, _ = socket.recv_fds(connection, 1 << 16, 16)
        assert data, "the worker ended"
        frames = end.feed(data, files)
        if frames:
            (frame,) = frames
            return frame


def every_datatype(shape: tuple[int, ...]) -> list[Any]:
    return [
        tensor(datatype, shape, bytes(range(1, 61)), DTYPES, name=datatype)
        for datatype in sorted(set(DTYPES) - {"BYTES"})
    ]


@pytest.mark.parametrize(
    "shape", [(), (0, 2), (3,), (LARGE,)], ids=["scalar", "empty", "small", "in shared memory"]
)
def test_every_datatype_is_echoed_unchanged(
    interpreter: Path, shape: tuple[int, ...], tmp_path: Path
) -> None:
    strings = Tensor.from_numpy("S", np.array([b"", b"abc"], np.object_))
    ours, theirs = socket.socketpair()
    (tmp_path / "ipc").symlink_to(
        Path(ipc.__file__).parent
    )  # as in workers, without other modules of tritonpy
    with (
        ours,
        subprocess.Popen(
            [interpreter, Path(__file__).with_name("echo.py"), tmp_path, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
        ) as worker,
    ):
        theirs.close()
        ours.settimeout(WAIT_S)
        end = Endpoint(DTYPES)
        rows = [every_datatype(shape), every_datatype(shape), [], [strings]]
        requested: list[Any] = [("A", "B"), ("A", "B"), None, ()]
        for _ in range(3):
            data, files = end.compose(KIND, rows=rows, requested=requested)
            sent = socket.send_fds(ours, [data], files)
            ours.sendall(data[sent:])
            for file in files:
                os.close(file)
            got, got_requested = end.rows(receive(ours, end), 0, Tensor)
            assert got_requested == requested
            assert got[3][0].strings() == [b"", b"abc"]
            got = [
                [tensor(t.datatype, t.shape, t.data.tobytes(), DTYPES, t.name) for t in row]
                for row in got[:3]
            ]
            assert contents(got) == contents(rows[:3])
        end.close()
        ours.close()
        assert worker.wait(WAIT_S) == 0
