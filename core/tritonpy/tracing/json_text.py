"""Ended traces as records of Triton's trace files. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tritonpy.types import Tensor
from tritonpy.types.trace import TensorCopy, Trace, TraceFamily

_BINARY = frozenset({"FP16", "BF16"})  # Triton omits these: C++ has no such number types


def records(family: TraceFamily) -> bytes:
    """Return the records of all traces of `family` as JSON objects, separated by commas."""
    return b",".join([msgspec.json.encode(record) for trace in family.traces for record in _records(trace)])


def _records(trace: Trace) -> Iterator[dict[str, Any]]:
    for note in trace.notes:
        if isinstance(note, TensorCopy):
            yield {"id": trace.id, "activity": note.activity, "tensor": _tensor(note.tensor)}
            continue
        if note.name == "REQUEST_START":
            yield _identity(trace)
        yield {"id": trace.id, "timestamps": [{"name": note.name, "ns": note.ns}]}


def _identity(trace: Trace) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": trace.id,
        "model_name": trace.model_name,
        "model_version": trace.model_version,
    }
    if trace.request_id:
        record["request_id"] = trace.request_id
    if trace.parent_id:
        record["parent_id"] = trace.parent_id
    return record


def _tensor(tensor: Tensor) -> dict[str, str]:
    shape = ",".join([str(dimension) for dimension in tensor.shape])
    return {"name": tensor.name, "data": _elements(tensor), "shape": shape, "dtype": tensor.datatype}


def _elements(tensor: Tensor) -> str:
    if tensor.datatype in _BINARY:
        return ""
    if tensor.datatype == "BYTES":
        return ",".join([f'"{text.decode(errors="backslashreplace")}"' for text in tensor.strings()])
    values = tensor.data.ravel().tolist()
    if tensor.datatype.startswith("FP"):
        return ",".join(["%g" % value for value in values])  # noqa: UP031 - C++'s notation
    return ",".join([str(int(value)) for value in values])
