"""Process 1 of a container, in a PID namespace of its own."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ORPHANS = 100


def in_namespace(script: str) -> subprocess.Popen[str]:
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs unshare of util-linux, and the right to create namespaces")
    command = [*unshare, sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_orphans_are_reaped_and_the_status_is_the_servers():
    process = in_namespace(f"""
        import os, sys, time
        from pathlib import Path
        from tritonpy_serve.init_process import become_init

        become_init()
        assert os.getpid() != 1
        assert os.getpgrp() == os.getpid()
        for _ in range({ORPHANS}):  # each child leaves an orphan that ends after it
            if os.fork() == 0:
                if os.fork() == 0:
                    time.sleep(0.05)
                os._exit(0)
            os.wait()

        def others():
            return [each for each in Path("/proc").iterdir()
                    if each.name.isdigit() and int(each.name) not in (1, os.getpid())]

        deadline = time.monotonic() + 20
        while others() and time.monotonic() < deadline:
            time.sleep(0.01)
        print(len(others()), flush=True)
        sys.exit(7)
    """)
    output, errors = process.communicate(timeout=60)
    assert (output.strip(), process.returncode) == ("0", 7), errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_server(number):
    process = in_namespace("""
        import signal, sys
        from tritonpy_serve.init_process import become_init

        become_init()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: sys.exit(20 + number))
        print("ready", flush=True)
        signal.pause()
    """)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8")
    subprocess.run(["kill", f"-{number.value}", tasks.split()[0]], check=True)
    process.communicate(timeout=60)
    assert process.returncode == 20 + number
