"""The values that travel: tensors, requests, responses, batches, and where answers go."""

from __future__ import annotations

from tritonpy.types.batch import Batch
from tritonpy.types.datatypes import DATATYPE_OF_NUMBER, DATATYPES, DTYPES, ITEMSIZES, DataType, datatype_of
from tritonpy.types.region import CudaRegion, RegionKind, RegionSlice, SystemRegion
from tritonpy.types.request import NO_PARAMETERS, InferRequest, OutputSpec, Owner, ParameterValue, SequenceInfo
from tritonpy.types.response import InferResponse
from tritonpy.types.room import Room
from tritonpy.types.sink import CallbackSink, LoopSink, Sink, TurnSink
from tritonpy.types.stand_in import stand_in
from tritonpy.types.stream_sink import StreamSink
from tritonpy.types.strings import decode_strings, encode_strings, string_offsets
from tritonpy.types.tensor import CPU, Tensor
from tritonpy.types.trace import Trace, TraceFamily, TraceLevel
from tritonpy.types.work import Work

__all__ = [
    "CPU",
    "DATATYPES",
    "DATATYPE_OF_NUMBER",
    "DTYPES",
    "ITEMSIZES",
    "NO_PARAMETERS",
    "Batch",
    "CallbackSink",
    "CudaRegion",
    "DataType",
    "InferRequest",
    "InferResponse",
    "LoopSink",
    "OutputSpec",
    "Owner",
    "ParameterValue",
    "RegionKind",
    "RegionSlice",
    "Room",
    "SequenceInfo",
    "Sink",
    "StreamSink",
    "SystemRegion",
    "Tensor",
    "Trace",
    "TraceFamily",
    "TraceLevel",
    "TurnSink",
    "Work",
    "datatype_of",
    "decode_strings",
    "encode_strings",
    "stand_in",
    "string_offsets",
]
