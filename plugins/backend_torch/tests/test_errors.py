from __future__ import annotations

from tritonpy import Code, InvalidArgument
from tritonpy_backend_torch.errors import execution_error, load_error


def test_a_failed_execution_gets_tritons_text():
    error = execution_error(RuntimeError("shapes\n"))
    assert (error.message, error.code) == ("PyTorch execute failure: shapes", Code.INTERNAL)


def test_a_failed_load_gets_tritons_text():
    error = load_error("m", RuntimeError("no such operator"))
    assert (error.message, error.code) == (
        "failed to load model 'm': no such operator",
        Code.INTERNAL,
    )


def test_an_exception_without_a_text_is_named():
    assert execution_error(AssertionError()).message == "PyTorch execute failure: AssertionError"


def test_a_triton_error_is_unchanged():
    error = InvalidArgument("wrong")
    assert execution_error(error) is error
    assert load_error("m", error) is error
