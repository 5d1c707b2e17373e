"""The values that travel: tensors, requests, responses, batches, and where answers go."""

from __future__ import annotations

from tritonpy.types.batch import Batch
from tritonpy.types.datatypes import DATATYPE_OF_NUMBER, DATATYPES, DTYPES, ITEMSIZES, DataType, datatype_of
from tritonpy.types.request import NO_PARAMETERS, InferRequest, OutputSpec, Owner, ParameterValue, SequenceInfo
from tritonpy.types.response import InferResponse
from tritonpy.types.sink import CallbackSink, LoopSink, Sink
from tritonpy.types.strings import decode_strings, encode_strings, string_offsets
from tritonpy.types.tensor import CPU, Tensor

__all__ = [
    "CPU",
    "DATATYPES",
    "DATATYPE_OF_NUMBER",
    "DTYPES",
    "ITEMSIZES",
    "NO_PARAMETERS",
    "Batch",
    "CallbackSink",
    "DataType",
    "InferRequest",
    "InferResponse",
    "LoopSink",
    "OutputSpec",
    "Owner",
    "ParameterValue",
    "SequenceInfo",
    "Sink",
    "Tensor",
    "datatype_of",
    "decode_strings",
    "encode_strings",
    "string_offsets",
]
