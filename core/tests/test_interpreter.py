from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tritonpy.interpreter import SWITCH_INTERVAL_S, prepare_interpreter, release_interpreter, settle_interpreter


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_threads_hand_over_sooner_than_by_default() -> None:
    prepare_interpreter()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    assert gc.isenabled()


def test_what_start_up_made_is_not_looked_at_again() -> None:
    gc.unfreeze()
    settle_interpreter()
    assert gc.get_freeze_count() > 0


def test_what_was_freed_goes_back_to_the_system() -> None:
    """Blocks that the C library keeps: each too small to be the kernel's own, all of them together many pages."""
    script = """if True:
        import os, sys
        from tritonpy.interpreter import prepare_interpreter, return_free_memory
        resident = lambda: int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        prepare_interpreter()
        kept = [bytes(1 << 20) for _ in range(60)]
        del kept
        before = resident()
        return_free_memory()
        print(before - resident() > 50 << 20)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_it_is_looked_at_again_when_the_server_is_gone() -> None:
    settle_interpreter()
    release_interpreter()
    assert gc.get_freeze_count() == 0
