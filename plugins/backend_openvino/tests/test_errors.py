from __future__ import annotations

import pytest

from tritonpy import Code, InvalidArgument, TritonError
from tritonpy.metrics import FailureReason
from tritonpy_backend_openvino.errors import to_triton_error, translate_errors


def test_an_openvino_error_gets_tritons_text():
    error = to_triton_error("reading model", RuntimeError("out of luck\n\n"))
    assert (error.message, error.code) == (
        "openvino error in reading model : out of luck",
        Code.INTERNAL,
    )
    assert error.reason is FailureReason.BACKEND


def test_source_locations_are_removed_from_error_texts():
    text = """Exception from src/inference/src/cpp/infer_request.cpp:246:
Caught exception: Exception from src/plugins/intel_cpu/src/node.cpp:823:
Check 'a == b' failed at src/plugins/x.cpp:385:
[CPU] node 'MatMul': wrong
  dimensions

"""
    assert (
        to_triton_error("x", RuntimeError(text)).message
        == "openvino error in x : [CPU] node 'MatMul': wrong dimensions"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Exception from src/a.cpp:1:", "Exception from src/a.cpp:1:"), ("", "RuntimeError")],
)
def test_an_error_without_a_message_has_a_text(text, expected):
    assert to_triton_error("x", RuntimeError(text)).message == f"openvino error in x : {expected}"


def test_a_triton_error_keeps_its_text_and_code():
    error = to_triton_error("x", InvalidArgument("wrong"))
    assert (type(error), error.message, error.reason) == (
        InvalidArgument,
        "wrong",
        FailureReason.BACKEND,
    )


def test_an_error_may_name_its_object():
    with pytest.raises(TritonError) as caught, translate_errors("reading model", "/m.xml"):
        raise RuntimeError("broken")
    assert caught.value.message == "openvino error in reading model : broken (/m.xml)"
    with translate_errors("nothing"):
        pass
