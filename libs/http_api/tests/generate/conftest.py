"""Fixtures of the tests of generate calls."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pytest

from tritonpy import InferRequest, InferResponse, Tensor, TritonError


def numbers(*values: float, request: InferRequest, final: bool = False) -> InferResponse:
    """Return a response with these values as output X."""
    return InferResponse(
        [Tensor.from_numpy("X", np.array(values, np.float32))],
        request.model_name,
        1,
        request.id,
        final=final,
    )


@pytest.fixture
def decoupled_responses() -> Callable[..., Callable[[InferRequest], Sequence[InferResponse]]]:
    """Create the responses of a decoupled model: numbers, errors and an empty final one."""

    def make(*values: float | TritonError) -> Callable[[InferRequest], Sequence[InferResponse]]:
        def respond(request: InferRequest) -> Sequence[InferResponse]:
            responses = [
                InferResponse((), "echo", 1, request.id, error=one, final=False)
                if isinstance(one, TritonError)
                else numbers(one, request=request)
                for one in values
            ]
            return [*responses, InferResponse((), "echo", 1, request.id, empty=True)]

        return respond

    return make


@pytest.fixture
def raw_connection() -> Iterator[Callable[..., socket.socket]]:
    """Open raw connections."""
    with ExitStack() as stack:

        def connect(port: int) -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))

        yield connect
