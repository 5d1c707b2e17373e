"""What workers hold on to."""

from __future__ import annotations

import os
import select
import subprocess
import sys

from tritonpy.runners.workers.lifeline import lifeline


def test_each_worker_has_a_descriptor_of_its_own_of_one_pipe() -> None:
    one, other = lifeline(), lifeline()
    try:
        assert one != other
        assert os.fstat(one).st_ino == os.fstat(other).st_ino
        assert not select.select([one], [], [], 0)[0]  # open, and silent
    finally:
        os.close(one)
        os.close(other)


def test_it_is_cut_by_the_end_of_the_process_and_nothing_else() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from tritonpy.runners.workers.lifeline import lifeline\n"
        "end = lifeline()\n"
        "os.set_inheritable(end, True)\n"
        "watcher = subprocess.Popen([sys.executable, '-c', f'import os; os.read({end}, 1); print(\"cut\")'],"
        " pass_fds=[end], stdout=1)\n"
        "print(watcher.poll(), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["None", "cut"]
