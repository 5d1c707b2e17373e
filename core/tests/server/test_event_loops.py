from __future__ import annotations

import asyncio
import sys

import pytest

from tritonpy.server.event_loops import event_loop_factory


def test_the_factory_creates_event_loops() -> None:
    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        assert runner.run(asyncio.sleep(0, "done")) == "done"


def test_without_uvloop_the_standard_event_loop_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert event_loop_factory() is asyncio.new_event_loop
