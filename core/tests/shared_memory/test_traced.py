from __future__ import annotations

import numpy as np

from tritonpy.shared_memory import Regions, hold_regions
from tritonpy_testing import shared_object
from tritonpy_types import InferResponse, OutputSpec, SystemRegion, Tensor
from tritonpy_types.trace import TensorCopy

from ..tracing.families import family, request


def test_a_trace_contains_the_data_written_to_a_region():
    trace = family().trace()
    request_ = request(trace)
    request_.outputs = {"OUT": OutputSpec("OUT", region="r", byte_size=8)}
    with shared_object(4096) as client:
        regions = Regions(allowed=True)
        regions.register_system(SystemRegion("r", client.key, 0, 4096))
        held = hold_regions(regions, request_)
        trace.begin("m", 1, request_)
        response = InferResponse([Tensor.from_numpy("OUT", np.array([1, 2], np.int32))])
        trace.responded(request_, held.finish(request_, response), 60)
    [copy] = [
        note
        for note in trace.notes
        if isinstance(note, TensorCopy) and note.activity == "TENSOR_BACKEND_OUTPUT"
    ]
    assert (copy.tensor.name, copy.tensor.data.tolist()) == ("OUT", [1, 2])
