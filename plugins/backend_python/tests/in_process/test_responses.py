from __future__ import annotations

import pytest

from tritonpy import Code, InferResponse, error_of
from tritonpy_backend_python.in_process.responses import answered

OWN = {
    Code.UNAUTHENTICATED: Code.INVALID_ARG,
    Code.PERMISSION_DENIED: Code.INVALID_ARG,
    Code.RESOURCE_EXHAUSTED: Code.UNAVAILABLE,
    Code.CONFLICT: Code.INVALID_ARG,
}


@pytest.mark.parametrize("code", Code)
def test_an_error_that_triton_has_not_is_one_that_it_has(code: Code) -> None:
    error = answered(InferResponse((), error=error_of(code, "not now"))).error()
    assert (int(error.code()), error.message()) == (OWN.get(code, code), "not now")
