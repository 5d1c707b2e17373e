"""Errors of ONNX Runtime in the words of Triton."""

from __future__ import annotations

from tritonpy import Internal, TritonError

_PREFIX = "[ONNXRuntimeError] : "
_BOUND_PREFIX = "Error in execution: "  # of a run with an I/O binding, which loses the code


def failure_of(error: Exception) -> TritonError:
    """Return what clients see of an exception that ONNX Runtime raised.

    Its Python interface says `[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : text`, Triton `onnx runtime error 2: text`.
    """
    if isinstance(error, TritonError):
        return error
    text = str(error)
    if text.startswith(_PREFIX):
        code, _, rest = text.removeprefix(_PREFIX).partition(" : ")
        return Internal(f"onnx runtime error {code}: {rest.partition(' : ')[2]}")
    if isinstance(error, UnicodeDecodeError):
        return Internal(f"an output holds text that is not UTF-8, which ONNX Runtime cannot return to Python: {text}")
    return Internal(f"onnx runtime error: {text.removeprefix(_BOUND_PREFIX)}")
