from __future__ import annotations

import numpy as np

from tritonpy.shared_memory import Regions, hold_regions
from tritonpy.testing import shared_object
from tritonpy.types import InferResponse, OutputSpec, SystemRegion, Tensor
from tritonpy.types.trace import TensorCopy

from ..tracing.families import family, request


def test_a_trace_shows_what_was_written_into_a_region():
    trace = family().trace()
    asked = request(trace)
    asked.outputs = {"OUT": OutputSpec("OUT", region="r", byte_size=8)}
    with shared_object(4096) as client:
        regions = Regions(allowed=True)
        regions.register_system(SystemRegion("r", client.key, 0, 4096))
        held = hold_regions(regions, asked)
        trace.begin("m", 1, asked)
        answer = InferResponse([Tensor.from_numpy("OUT", np.array([1, 2], np.int32))])
        trace.answered(asked, held.finish(asked, answer), 60)
    [seen] = [note for note in trace.notes if isinstance(note, TensorCopy) and note.activity == "TENSOR_BACKEND_OUTPUT"]
    assert (seen.tensor.name, seen.tensor.data.tolist()) == ("OUT", [1, 2])
