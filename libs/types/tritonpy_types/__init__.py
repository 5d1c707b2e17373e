"""Values shared by all parts of the server: tensors, requests, responses, batches and sinks.

Start at `request` and `tensor`. The library runs without a server. It imports `tritonpy_protos`
only.
"""

from __future__ import annotations

from tritonpy_types.datatypes import (
    DATATYPE_OF_NUMBER,
    DATATYPES,
    DTYPES,
    ITEMSIZES,
    DataType,
    datatype_of,
    decode_strings,
    encode_strings,
    string_offsets,
)
from tritonpy_types.flow_control import FlowControl
from tritonpy_types.request import (
    NO_PARAMETERS,
    Batch,
    CallbackSink,
    ComputeTimes,
    InferRequest,
    InferResponse,
    LoopQueueSink,
    LoopSink,
    OutputSpec,
    Owner,
    ParameterValue,
    SequenceInfo,
    Sink,
    StreamSink,
    synthetic_parent,
)
from tritonpy_types.tensor import (
    CPU,
    CudaRegion,
    RegionKind,
    RegionMemory,
    RegionSlice,
    SystemRegion,
    Tensor,
    shape_text,
)
from tritonpy_types.trace import Trace, TraceFamily, TraceLevel

__all__ = [
    "CPU",
    "DATATYPES",
    "DATATYPE_OF_NUMBER",
    "DTYPES",
    "ITEMSIZES",
    "NO_PARAMETERS",
    "Batch",
    "CallbackSink",
    "ComputeTimes",
    "CudaRegion",
    "DataType",
    "FlowControl",
    "InferRequest",
    "InferResponse",
    "LoopQueueSink",
    "LoopSink",
    "OutputSpec",
    "Owner",
    "ParameterValue",
    "RegionKind",
    "RegionMemory",
    "RegionSlice",
    "SequenceInfo",
    "Sink",
    "StreamSink",
    "SystemRegion",
    "Tensor",
    "Trace",
    "TraceFamily",
    "TraceLevel",
    "datatype_of",
    "decode_strings",
    "encode_strings",
    "shape_text",
    "string_offsets",
    "synthetic_parent",
]
