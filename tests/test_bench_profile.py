"""The profile's recorder: what it reads is exact, and what it wraps it puts back."""

from __future__ import annotations

import pytest

from bench.profile.recorder import Calls, Recorder
from bench.profile.stages import BACKENDS, IDLE, PROTOCOLS, STAGES, boundaries


class Steps:
    """A meter that moves by what the functions say."""

    scale = 1.0

    def __init__(self) -> None:
        self.now = 0

    def begin(self) -> None:
        """Nothing is to be done in a thread."""

    def read(self) -> int:
        return self.now


def test_each_function_pays_for_what_its_wrapped_callees_do_not() -> None:
    steps = Steps()
    recorder = Recorder(steps)

    def work(count: int) -> None:
        steps.now += count

    inner = recorder.wrap("inner", lambda: work(3))

    def outer() -> None:
        work(1)
        inner()
        work(1)

    wrapped = recorder.wrap("outer", outer)
    for _ in range(4):
        wrapped()
    assert recorder.per_request(2) == {"inner": 6.0, "outer": 4.0}
    assert recorder.count("outer") == 4


def test_a_function_that_raises_is_read_too() -> None:
    steps = Steps()
    recorder = Recorder(steps)

    def fail() -> None:
        steps.now += 5
        raise KeyError

    with pytest.raises(KeyError):
        recorder.wrap("fail", fail)()
    assert recorder.per_request(1) == {"fail": 5.0}


def test_calls_are_counted_without_those_of_the_recorder() -> None:
    import sys

    calls = Calls()
    recorder = Recorder(calls)
    before = sys.getprofile()
    recorder.begin()
    try:
        wrapped = recorder.wrap("three", lambda: (len(""), abs(1), sum(())))
        for _ in range(10):
            wrapped()
    finally:
        sys.setprofile(before)
    # Its own call is a wrapper's, which every reading has: what is left are the three.
    assert recorder.per_request(10) == {"three": 3.0}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_boundary_is_there_and_put_back(protocol: str, backend: str) -> None:
    from tritonpy.engine.local import LocalEngine

    names = boundaries(protocol, backend)
    assert set(names.values()) <= {*STAGES, IDLE}
    original = LocalEngine.infer
    recorder = Recorder(Steps())
    recorder.patch(names)
    assert LocalEngine.infer is not original
    recorder.restore()
    assert LocalEngine.infer is original
