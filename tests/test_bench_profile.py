"""The profile's recorder: its readings are exact, and it restores the functions that it wraps."""

from __future__ import annotations

import pytest

from bench.profile import division
from bench.profile.recorder import Calls, Recorder
from bench.profile.stages import BACKENDS, IDLE, PROTOCOLS, STAGES, boundaries
from bench.profile.switches import record


class Steps:
    """A meter that advances as the measured functions request."""

    scale = 1.0

    def __init__(self) -> None:
        self.now = 0

    def begin(self) -> None:
        """Nothing to prepare in a thread."""

    def read(self) -> int:
        return self.now


def test_costs_of_wrapped_callees_are_subtracted_from_their_callers() -> None:
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


def test_a_function_that_raises_is_measured() -> None:
    steps = Steps()
    recorder = Recorder(steps)

    def fail() -> None:
        steps.now += 5
        raise KeyError

    with pytest.raises(KeyError):
        recorder.wrap("fail", fail)()
    assert recorder.per_request(1) == {"fail": 5.0}


def test_calls_of_the_recorder_are_not_counted() -> None:
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
    # The recorder's own call belongs to a wrapper in every reading, so three calls remain.
    assert recorder.per_request(10) == {"three": 3.0}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_boundary_exists_and_is_restored(protocol: str, backend: str) -> None:
    from tritonpy.engine.local import LocalEngine

    names = boundaries(protocol, backend)
    assert set(names.values()) <= {*STAGES, IDLE}
    original = LocalEngine.infer
    recorder = Recorder(Steps())
    recorder.patch(names)
    assert LocalEngine.infer is not original
    recorder.restore()
    assert LocalEngine.infer is original


@pytest.mark.parametrize(
    ("protocol", "package"), [("http", "tritonpy_http_api"), ("grpc", "tritonpy_frontend_grpc")]
)
def test_the_path_of_a_request_starts_and_ends_in_its_frontend(protocol: str, package: str) -> None:
    calls = record(protocol).calls
    assert any(path.startswith(f"{package}/") for path, _ in calls)
    assert [name for _, name in calls].count("LoadedModel.infer") == 1
    assert [name for _, name in calls].count("OnnxRuntimeBackend.execute") <= 1


def test_instructions_are_counted_by_library() -> None:
    lines = [
        "--------------------------------------------------------------------------------",
        "1,000 (100.0%)  PROGRAM TOTALS",
        "  400 (40.00%)  ???:_PyEval_EvalFrameDefault'2 [/usr/lib/libpython3.11.so.1.0]",
        "  300 (30.00%)  ./Objects/dictobject.c:_Py_dict_lookup [/usr/lib/libpython3.11.so.1.0]",
        "  150 (15.00%)  ???:CPyDef_take [/x/site-packages/tritonpy__mypyc.cpython-311.so]",
        "  100 (10.00%)  ???:_int_free [/lib/x86_64-linux-gnu/libc.so.6]",
        "   50 ( 5.00%)  ???:0x0fd8930 [/x/onnxruntime/capi/onnxruntime_pybind11_state.so]",
    ]
    assert division.divide(lines) == {
        division.BYTECODE: 400,
        division.INTERPRETER: 300,
        "compiled modules": 150,
        "the C library": 100,
        "ONNX Runtime": 50,
    }
