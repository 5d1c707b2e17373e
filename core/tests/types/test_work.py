from __future__ import annotations

from tritonpy.types import Batch, Work


def test_a_batch_that_was_answered_before_its_last_stamp_cost_no_output() -> None:
    batch = Batch([], start_ns=100, input_end_ns=110, infer_end_ns=130)
    assert Work.of(batch, 160).output_ns == 30
    assert Work.of(batch, 120).output_ns == 0


def test_parts_add_up_and_the_begin_stays() -> None:
    work = Work(7, 1, 2, 3)
    work.add(Work(100, 10, 20, 30))
    assert (work.start_ns, work.input_ns, work.infer_ns, work.output_ns) == (7, 11, 22, 33)
