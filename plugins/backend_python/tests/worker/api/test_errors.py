from __future__ import annotations

import pytest

from tritonpy_worker.api.errors import TritonError, TritonModelException

CODES = [
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
]


@pytest.mark.parametrize(("number", "name"), list(enumerate(CODES)))
def test_codes_have_tritons_numbers_and_names(number, name):
    code = getattr(TritonError, name)
    assert code == number
    assert code.name == name
    assert str(code) == f"__ErrorCode.{name}"
    assert repr(code) == f"<__ErrorCode.{name}: {number}>"
    assert TritonError("x", code).code() is code


def test_errors_are_internal_by_default():
    error = TritonError("out of luck")
    assert error.code() == TritonError.INTERNAL
    assert error.message() == "out of luck"
    named = TritonError(message="gone", code=TritonError.NOT_FOUND)
    assert (named.message(), named.code()) == ("gone", TritonError.NOT_FOUND)


def test_a_message_may_be_bytes():
    assert TritonError("ü".encode()).message() == "ü"


@pytest.mark.parametrize("arguments", [(5,), (None,), ("x", 5), ("x", None), (ValueError("x"),)])
def test_wrong_argument_types_have_tritons_error(arguments):
    with pytest.raises(TypeError) as caught:
        TritonError(*arguments)
    assert str(caught.value).startswith(
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
        "    1. c_python_backend_utils.TritonError(message: str, "
        "code: c_python_backend_utils.TritonError.__ErrorCode = <__ErrorCode.INTERNAL: 1>)\n\n"
        f"Invoked with: {arguments[0]!r}"
    )


def test_the_exception_is_a_subclass_of_exception():
    error = TritonModelException("why")
    assert str(error) == "why"
    assert repr(error) == "TritonModelException('why')"
    assert TritonModelException.__bases__ == (Exception,)
