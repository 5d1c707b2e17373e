from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tritonpy.server.interpreter import (
    SWITCH_INTERVAL_S,
    prepare_interpreter,
    release_interpreter,
    settle_interpreter,
)


@pytest.fixture(autouse=True)
def restored_settings() -> Iterator[None]:
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_threads_switch_sooner_than_by_default() -> None:
    prepare_interpreter()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    assert gc.isenabled()


def test_objects_of_start_up_are_frozen() -> None:
    gc.unfreeze()
    settle_interpreter()
    assert gc.get_freeze_count() > 0


def test_freed_memory_is_returned_to_the_system() -> None:
    """The C library keeps these blocks: each is too small for mmap, together they are many pages."""
    script = """if True:
        import os, sys
        from tritonpy.server.interpreter import prepare_interpreter, return_free_memory
        resident = lambda: int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        prepare_interpreter()
        kept = [bytes(1 << 20) for _ in range(60)]
        del kept
        before = resident()
        return_free_memory()
        print(before - resident() > 50 << 20)
    """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_release_lets_the_collector_manage_them_again() -> None:
    settle_interpreter()
    release_interpreter()
    assert gc.get_freeze_count() == 0
