"""Conversion of ONNX Runtime errors to Triton's errors."""

from __future__ import annotations

from tritonpy import Internal, TritonError

_PREFIX = "[ONNXRuntimeError] : "
# prefix of errors from runs with an I/O binding; they do not include the error code
_BOUND_PREFIX = "Error in execution: "


def to_triton_error(error: Exception) -> TritonError:
    """Return the `TritonError` that clients receive for an exception of ONNX Runtime.

    ONNX Runtime's Python API formats errors as `[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : text`.
    Triton formats them as `onnx runtime error 2: text`.
    """
    if isinstance(error, TritonError):
        return error
    text = str(error)
    if text.startswith(_PREFIX):
        code, _, rest = text.removeprefix(_PREFIX).partition(" : ")
        return Internal(f"onnx runtime error {code}: {rest.partition(' : ')[2]}")
    if isinstance(error, UnicodeDecodeError):
        return Internal(
            "an output contains text that is not UTF-8, which ONNX Runtime cannot return to "
            f"Python: {text}"
        )
    return Internal(f"onnx runtime error: {text.removeprefix(_BOUND_PREFIX)}")
