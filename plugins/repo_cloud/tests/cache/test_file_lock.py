from __future__ import annotations

import os
import subprocess
import sys
import threading

from tritonpy_repo_cloud.cache.file_lock import hold_lock, try_lock


def test_one_holder_at_a_time_even_in_one_process(tmp_path):
    first = try_lock(tmp_path / "lock")
    assert first is not None
    assert try_lock(tmp_path / "lock") is None
    os.close(first)
    second = try_lock(tmp_path / "lock")
    assert second is not None
    os.close(second)


def test_a_lock_that_is_held_is_waited_for(tmp_path):
    order = []
    descriptor = try_lock(tmp_path / "lock")

    def wait():
        with hold_lock(tmp_path / "lock"):
            order.append("second")

    thread = threading.Thread(target=wait)
    thread.start()
    order.append("first")
    os.close(descriptor)
    thread.join(30)
    assert order == ["first", "second"]


def test_a_killed_process_releases_its_lock(tmp_path):
    code = f"import sys; from pathlib import Path; from tritonpy_repo_cloud.cache.file_lock import try_lock; try_lock(Path({str(tmp_path / 'lock')!r})); print('held', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    assert try_lock(tmp_path / "lock") is None
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    descriptor = try_lock(tmp_path / "lock")
    assert descriptor is not None
    os.close(descriptor)
