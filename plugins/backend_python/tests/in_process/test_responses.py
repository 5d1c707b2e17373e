from __future__ import annotations

import pytest

from tritonpy import Code, InferResponse, error_of
from tritonpy_backend_python.in_process.responses import received_response

OWN = {
    Code.UNAUTHENTICATED: Code.INVALID_ARG,
    Code.PERMISSION_DENIED: Code.INVALID_ARG,
    Code.RESOURCE_EXHAUSTED: Code.UNAVAILABLE,
    Code.CONFLICT: Code.INVALID_ARG,
}


@pytest.mark.parametrize("code", Code)
def test_additional_error_codes_map_to_tritons(code: Code) -> None:
    error = received_response(InferResponse((), error=error_of(code, "not now"))).error()
    assert (int(error.code()), error.message()) == (OWN.get(code, code), "not now")
