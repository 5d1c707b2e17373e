from __future__ import annotations

import pytest

from tritonpy import Code, InvalidArgument
from tritonpy_backend_onnx.failures import failure_of


def test_a_text_of_onnxruntime_is_worded_as_in_triton():
    error = failure_of(RuntimeError("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got : a colon"))
    assert error.message == "onnx runtime error 2: Got : a colon"
    assert error.code is Code.INTERNAL


@pytest.mark.parametrize("text", ["out of luck", "Error in execution: out of luck"])
def test_a_text_without_a_code_is_kept(text):
    assert failure_of(RuntimeError(text)).message == "onnx runtime error: out of luck"


def test_an_error_of_the_server_passes_unchanged():
    error = InvalidArgument("wrong")
    assert failure_of(error) is error


def test_undecodable_text_says_why_it_cannot_be_returned():
    error = failure_of(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))
    assert "not UTF-8" in error.message
