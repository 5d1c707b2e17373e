"""A server with the models of `routing`, and its clients."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils

from tests.conftest import Models, Serve, ServerProcess
from tests.traffic.routing import (
    ANSWERED_BY,
    Infer,
    config,
    write,
)


@pytest.fixture(scope="session")
def routed(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = Models(tmp_path_factory.mktemp("traffic") / "models")
    write(models)
    with serve(config(models)) as served:
        yield served


@pytest.fixture
def infer_route(routed: ServerProcess, protocol: Any) -> Iterator[Infer]:
    """`infer_route(route, value, **options)` returns (output, version).

    It raises InferenceServerException on failure; each thread has its own client.
    """
    address = routed.http if protocol is tritonclient.http else routed.grpc
    own = threading.local()
    with contextlib.ExitStack() as stack:

        def client() -> Any:
            if not hasattr(own, "client"):
                own.client = stack.enter_context(protocol.InferenceServerClient(address))
            return own.client

        def infer_route_once(
            route: str, value: float = 1, shape: tuple[int, ...] = (1,), **options: Any
        ) -> tuple[float, str]:
            given = protocol.InferInput("IN", list(shape), "FP32")
            given.set_data_from_numpy(np.full(shape, value, np.float32))
            result = client().infer(route, [given], **options)
            response = result.get_response()
            fields = (
                response
                if isinstance(response, dict)
                else {name: getattr(response, name) for name in ANSWERED_BY}
            )
            assert fields["model_name"] == route
            return float(result.as_numpy("OUT").ravel()[0]), fields["model_version"]

        yield infer_route_once
