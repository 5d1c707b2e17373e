from __future__ import annotations

import json

import numpy as np
import pytest

from tritonpy.tracing.json_text import records
from tritonpy.types import Tensor, TraceLevel

from .families import ended_family, family, tensor


def decoded(made):
    return json.loads(b"[%b]" % records(made))


def test_each_trace_starts_with_its_identity_record():
    made = ended_family(TraceLevel.TIMESTAMPS, request_id="an id")
    root, child = made.traces
    found = decoded(made)
    assert found[0] == {"id": root.id, "model_name": "m", "model_version": 1, "request_id": "an id"}
    assert found[1] == {"id": root.id, "timestamps": [{"name": "REQUEST_START", "ns": made.begun_ns}]}
    assert {"id": child.id, "model_name": "called", "model_version": 2, "parent_id": root.id} in found
    order = [record["id"] for record in found]
    assert order == sorted(order)


def test_earlier_time_stamps_of_frontends_come_first():
    made = family(TraceLevel.TIMESTAMPS)
    made.trace().stamp("HTTP_RECV_START", 7)
    assert decoded(made) == [{"id": made.traces[0].id, "timestamps": [{"name": "HTTP_RECV_START", "ns": 7}]}]


@pytest.mark.parametrize(
    ("given", "data", "shape"),
    [
        (tensor("T", [[1, -2], [3, 4]], np.int8), "1,-2,3,4", "2,2"),
        (tensor("T", [1.5, 1e10, np.nan, np.inf], np.float32), "1.5,1e+10,nan,inf", "4"),
        (tensor("T", [1 / 3], np.float64), "0.333333", "1"),
        (tensor("T", [True, False], np.bool_), "1,0", "2"),
        (tensor("T", [2**64 - 1], np.uint64), "18446744073709551615", "1"),
        (tensor("T", [1.0], np.float16), "", "1"),
        (tensor("T", [], np.int32), "", "0"),
        (Tensor.from_numpy("T", np.array([b'a"', b"\xff"], np.object_)), '"a"","\\xff"', "2"),
    ],
)
def test_tensors_are_written_as_triton_writes_them(given, data, shape):
    made = family(TraceLevel.TENSORS)
    made.trace().tensors("TENSOR_QUEUE_INPUT", [given])
    (record,) = decoded(made)
    assert record["activity"] == "TENSOR_QUEUE_INPUT"
    assert record["tensor"] == {"name": "T", "data": data, "shape": shape, "dtype": given.datatype}
