from __future__ import annotations

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_tf.errors import to_triton_error


class OpError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)
        self.message = message


def test_a_tensorflow_error_keeps_its_text():
    failure = to_triton_error(OpError("Incompatible shapes"))
    assert (type(failure), failure.message) == (Internal, "Incompatible shapes")


def test_an_error_without_a_message_uses_its_str():
    assert to_triton_error(ValueError("no such op")).message == "no such op"


def test_a_triton_error_is_unchanged():
    error = InvalidArgument("no")
    assert to_triton_error(error) is error
