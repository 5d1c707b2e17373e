from __future__ import annotations

import pytest

from tritonpy import Code, InvalidArgument
from tritonpy_backend_onnx.errors import to_triton_error


def test_an_onnxruntime_error_gets_tritons_text():
    error = to_triton_error(
        RuntimeError("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got : a colon")
    )
    assert error.message == "onnx runtime error 2: Got : a colon"
    assert error.code is Code.INTERNAL


@pytest.mark.parametrize("text", ["out of luck", "Error in execution: out of luck"])
def test_an_error_text_without_a_code_is_kept(text):
    assert to_triton_error(RuntimeError(text)).message == "onnx runtime error: out of luck"


def test_a_triton_error_is_unchanged():
    error = InvalidArgument("wrong")
    assert to_triton_error(error) is error


def test_an_output_that_is_not_utf8_is_explained():
    error = to_triton_error(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))
    assert "not UTF-8" in error.message
