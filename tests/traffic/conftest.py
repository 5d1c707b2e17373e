"""A server with those models, and its clients."""

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

from tests.conftest import Models, Serve, Served
from tests.traffic.routing import (
    ANSWERED_BY,
    Ask,
    config,
    write,
)


@pytest.fixture(scope="session")
def routed(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    models = Models(tmp_path_factory.mktemp("traffic") / "models")
    write(models)
    with serve(config(models)) as served:
        yield served


@pytest.fixture
def asking(routed: Served, protocol: Any) -> Iterator[Ask]:
    """`asking(route, value, **options)` gives (answer, version), or raises InferenceServerException; each thread has its client."""
    address = routed.http if protocol is tritonclient.http else routed.grpc
    own = threading.local()
    with contextlib.ExitStack() as stack:

        def client() -> Any:
            if not hasattr(own, "client"):
                own.client = stack.enter_context(protocol.InferenceServerClient(address))
            return own.client

        def ask(route: str, value: float = 1, shape: tuple[int, ...] = (1,), **options: Any) -> tuple[float, str]:
            given = protocol.InferInput("IN", list(shape), "FP32")
            given.set_data_from_numpy(np.full(shape, value, np.float32))
            result = client().infer(route, [given], **options)
            answer = result.get_response()
            told = answer if isinstance(answer, dict) else {name: getattr(answer, name) for name in ANSWERED_BY}
            assert told["model_name"] == route
            return float(result.as_numpy("OUT").ravel()[0]), told["model_version"]

        yield ask
