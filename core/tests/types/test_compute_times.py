from __future__ import annotations

from tritonpy.types import Batch, ComputeTimes


def test_a_response_before_the_last_stamp_has_no_output_time() -> None:
    batch = Batch([], start_ns=100, input_end_ns=110, infer_end_ns=130)
    assert ComputeTimes.of(batch, 160).output_ns == 30
    assert ComputeTimes.of(batch, 120).output_ns == 0


def test_parts_add_up_and_the_start_stays() -> None:
    times = ComputeTimes(7, 1, 2, 3)
    times.add(ComputeTimes(100, 10, 20, 30))
    assert (times.start_ns, times.input_ns, times.infer_ns, times.output_ns) == (7, 11, 22, 33)
