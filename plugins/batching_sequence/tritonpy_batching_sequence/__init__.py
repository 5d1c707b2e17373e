"""Sequence batching: the scheduler "sequence".

Start at `scheduler`, then `direct`, `oldest` and `iterative`, its strategies.
Decisions are pure functions of queue and time.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_schedulers() -> Mapping[str, str]:
    """Register the scheduler of models with `sequence_batching`."""
    return {"sequence": "tritonpy_batching_sequence.scheduler:SequenceScheduler"}
