"""The series of `bench.scale`: every size is requested as its name says."""

from __future__ import annotations

from pathlib import Path
from queue import Queue

import numpy as np
import pytest

from bench import models, scale
from bench.clients import LoadResult
from tritonpy import InferRequest, InferResponse, Tensor, running_server
from tritonpy.config import decode_server_config
from tritonpy_types import CallbackSink


def test_the_series_grow_in_one_dimension() -> None:
    rows = [len(payload.body) - payload.header_length for _, payload, _ in scale._sizes("rows")]
    assert rows == [2 * 64 * size for size in scale.ROWS]
    sizes = [
        (size, len(each.body) - each.header_length) for size, each, _ in scale._sizes("payload")
    ]
    assert all(size == nbytes for size, nbytes in sizes)
    assert [in_flight for *_, in_flight in scale._sizes("connections")] == list(scale.CONNECTIONS)
    assert [each.model for _, each, _ in scale._sizes("tensors")] == [
        f"tensors_{count}" for count in scale.TENSORS
    ]


@pytest.mark.parametrize("count", [1, 4])
def test_models_with_many_tensors_return_their_inputs(count: int, tmp_path: Path) -> None:
    models.write_many_tensors(tmp_path, [count])
    config = {"repositories": [{"url": str(tmp_path)}], "frontends": {}}
    found: Queue[InferResponse] = Queue()
    with running_server(decode_server_config(config)) as server:
        inputs = {f"INPUT{number}": _tensor(number) for number in range(count)}
        sink = CallbackSink(lambda _request, response: found.put(response))
        server.engine.infer(InferRequest(f"tensors_{count}", inputs, sink))
        outputs = found.get(timeout=60).outputs
    assert {each.name: each.numpy()[0, 0] for each in outputs} == {
        f"OUTPUT{number}": number for number in range(count)
    }


def _tensor(value: int) -> Tensor:
    return Tensor.from_numpy(f"INPUT{value}", np.full((1, 16), value, np.int32))


def test_the_table_has_a_row_per_point() -> None:
    point = scale.Point("payload", "HTTP", 1024, LoadResult(12_345.6, 70.0, 55.4))
    assert scale.table([point]).splitlines()[-1] == (
        "| bytes in, and as many out | 1,024 | HTTP | 12,346 | 55 |"
    )
