"""The pipe that ends workers with the server."""

from __future__ import annotations

import os
import select
import subprocess
import sys

from tritonpy_engine_rpc.parent_pipe import open_parent_pipe


def test_each_worker_has_a_descriptor_of_its_own_of_one_pipe() -> None:
    one, other = open_parent_pipe(), open_parent_pipe()
    try:
        assert one != other
        assert os.fstat(one).st_ino == os.fstat(other).st_ino
        assert not select.select([one], [], [], 0)[0]  # open and without data
    finally:
        os.close(one)
        os.close(other)


def test_the_pipe_closes_only_at_the_end_of_the_process() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from tritonpy_engine_rpc.parent_pipe import open_parent_pipe\n"
        "end = open_parent_pipe()\n"
        "os.set_inheritable(end, True)\n"
        "watcher = subprocess.Popen([sys.executable, '-c', f'import os; os.read({end}, 1); print(\"cut\")'],"
        " pass_fds=[end], stdout=1)\n"
        "print(watcher.poll(), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["None", "cut"]
