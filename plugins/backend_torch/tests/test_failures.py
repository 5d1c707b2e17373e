from __future__ import annotations

from tritonpy import Code, InvalidArgument
from tritonpy_backend_torch.failures import load_failure, run_failure


def test_a_failed_execution_is_worded_as_in_triton():
    error = run_failure(RuntimeError("shapes\n"))
    assert (error.message, error.code) == ("PyTorch execute failure: shapes", Code.INTERNAL)


def test_a_failed_load_is_worded_as_in_triton():
    error = load_failure("m", RuntimeError("no such operator"))
    assert (error.message, error.code) == ("failed to load model 'm': no such operator", Code.INTERNAL)


def test_an_exception_without_a_text_is_named():
    assert run_failure(AssertionError()).message == "PyTorch execute failure: AssertionError"


def test_an_error_of_the_server_passes_unchanged():
    error = InvalidArgument("wrong")
    assert run_failure(error) is error
    assert load_failure("m", error) is error
