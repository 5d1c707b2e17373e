"""What the tests of generate calls say to the server of the tests beside them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pytest

from tritonpy import InferRequest, InferResponse, Tensor, TritonError


def numbers(*values: float, request: InferRequest, final: bool = False) -> InferResponse:
    """Return an answer whose output X has these values."""
    return InferResponse(
        [Tensor.from_numpy("X", np.array(values, np.float32))], request.model_name, 1, request.id, final=final
    )


@pytest.fixture
def answering() -> Callable[..., Callable[[InferRequest], Sequence[InferResponse]]]:
    """Make what a decoupled model says: numbers, errors, and at last that there is no more."""

    def plan(*said: float | TritonError) -> Callable[[InferRequest], Sequence[InferResponse]]:
        def answer(request: InferRequest) -> Sequence[InferResponse]:
            answers = [
                InferResponse((), "echo", 1, request.id, error=one, final=False)
                if isinstance(one, TritonError)
                else numbers(one, request=request)
                for one in said
            ]
            return [*answers, InferResponse((), "echo", 1, request.id, empty=True)]

        return answer

    return plan


@pytest.fixture
def raw_connection() -> Iterator[Callable[..., socket.socket]]:
    """Open connections that a test uses byte by byte."""
    with ExitStack() as stack:

        def connect(port: int) -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))

        yield connect
