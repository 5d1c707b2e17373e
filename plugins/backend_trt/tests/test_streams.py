from __future__ import annotations

import pytest

from tritonpy_backend_trt.cuda import Cuda
from tritonpy_backend_trt.settings import settings_of
from tritonpy_backend_trt.streams import Streams

from .describing import config
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
def test_streams_are_as_many_and_as_urgent_as_the_model_wants(simulation, text, count, priority):
    streams = Streams(Cuda(simulation.runtime), settings_of(config(f"optimization {{ {text} }}"), {}))
    assert simulation.machine.count(Stream) == count
    assert simulation.machine.get(streams.work, Stream).priority == priority
    assert (streams.outputs == streams.work) == (count == 2)
    streams.settle()
    streams.close()
    assert simulation.machine.count(Stream) == 0
