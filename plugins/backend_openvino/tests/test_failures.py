from __future__ import annotations

import pytest

from tritonpy import Code, FailureReason, InvalidArgument, TritonError
from tritonpy_backend_openvino.failures import failure_of, told_as


def test_a_text_of_openvino_is_worded_as_in_triton():
    error = failure_of("reading model", RuntimeError("out of luck\n\n"))
    assert (error.message, error.code) == ("openvino error in reading model : out of luck", Code.INTERNAL)
    assert error.reason is FailureReason.BACKEND


def test_where_in_openvino_it_was_noticed_is_left_out():
    text = """Exception from src/inference/src/cpp/infer_request.cpp:246:
Caught exception: Exception from src/plugins/intel_cpu/src/node.cpp:823:
Check 'a == b' failed at src/plugins/x.cpp:385:
[CPU] node 'MatMul': wrong
  dimensions

"""
    assert failure_of("x", RuntimeError(text)).message == "openvino error in x : [CPU] node 'MatMul': wrong dimensions"


@pytest.mark.parametrize(
    ("text", "said"), [("Exception from src/a.cpp:1:", "Exception from src/a.cpp:1:"), ("", "RuntimeError")]
)
def test_where_nothing_else_is_said_something_is(text, said):
    assert failure_of("x", RuntimeError(text)).message == f"openvino error in x : {said}"


def test_an_error_of_the_server_keeps_its_text_and_code():
    error = failure_of("x", InvalidArgument("wrong"))
    assert (type(error), error.message, error.reason) == (InvalidArgument, "wrong", FailureReason.BACKEND)


def test_what_it_was_done_to_may_be_named():
    with pytest.raises(TritonError) as caught, told_as("reading model", "/m.xml"):
        raise RuntimeError("broken")
    assert caught.value.message == "openvino error in reading model : broken (/m.xml)"
    with told_as("nothing"):
        pass
