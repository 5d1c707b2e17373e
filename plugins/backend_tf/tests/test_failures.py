from __future__ import annotations

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_tf.failures import failure_of


class OpError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)
        self.message = message


def test_an_error_of_tensorflow_is_its_text():
    failure = failure_of(OpError("Incompatible shapes"))
    assert (type(failure), failure.message) == (Internal, "Incompatible shapes")


def test_an_error_without_such_a_text_is_what_python_prints():
    assert failure_of(ValueError("no such op")).message == "no such op"


def test_an_error_of_the_server_stays_itself():
    error = InvalidArgument("no")
    assert failure_of(error) is error
