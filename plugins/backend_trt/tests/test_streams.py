from __future__ import annotations

import pytest

from tritonpy_backend_trt.cuda import Cuda
from tritonpy_backend_trt.settings import model_settings
from tritonpy_backend_trt.streams import Streams

from .descriptions import config
from .simulated.gpus import Stream


@pytest.mark.parametrize(
    ("text", "count", "priority"),
    [
        ("", 2, 0),
        ("cuda { output_copy_stream: true }", 3, 0),
        ("priority: PRIORITY_MAX", 2, -5),
        ("priority: PRIORITY_MIN", 2, 0),
    ],
)
def test_stream_count_and_priority_are_as_configured(simulation, text, count, priority):
    streams = Streams(
        Cuda(simulation.runtime), model_settings(config(f"optimization {{ {text} }}"), {})
    )
    assert simulation.machine.count(Stream) == count
    assert simulation.machine.get(streams.compute, Stream).priority == priority
    assert (streams.outputs == streams.compute) == (count == 2)
    streams.synchronize()
    streams.close()
    assert simulation.machine.count(Stream) == 0
