from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from core.tests.toys.isolated import ISOLATED, ROOT
from core.tests.toys.serving import config_of
from plugins.workers.tests.backend_process.wire import WAIT_S, eventually
from tritonpy_testing.model_repository import ModelRepository

SERVER = """
import sys
from pathlib import Path
from core.tests.toys.isolated import BlockingBackend, isolating
from core.tests.toys.serving import ToyPlugin, ask
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink

recorder = RecordingSink()
with isolating(ModelRepository(Path(sys.argv[1])), ToyPlugin({"stubborn": BlockingBackend})) as server:
    recorder.wait(ask(server.engine, recorder, "stubborn", [1]))
    print("answered", flush=True)
    sys.stdin.read()
"""


def runs(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("where", ["init", "infer", "nowhere"])
def test_a_worker_ends_with_its_server_whatever_it_does(
    model_repository: ModelRepository, where: str
) -> None:
    more = ISOLATED + f'parameters {{ key: "where" value {{ string_value: "{where}" }} }}'
    folder = model_repository.add("stubborn", config_of("stubborn", more=more))
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model_repository.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as server:
        try:
            assert server.stdout is not None
            eventually((folder / "pid").exists)
            if where == "nowhere":
                assert server.stdout.readline() == b"answered\n"
            worker = int((folder / "pid").read_text())
            assert runs(worker)
        finally:
            server.kill()
        server.wait(WAIT_S)
    eventually(lambda: not runs(worker))


def test_a_worker_ends_if_its_server_is_gone_before_it_starts() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "tritonpy_workers.backend_process", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
        )
    assert worker.wait(WAIT_S) == 1
