from __future__ import annotations

import gc
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


def test_it_is_looked_at_again_when_the_server_is_gone() -> None:
    settle_interpreter()
    release_interpreter()
    assert gc.get_freeze_count() == 0
