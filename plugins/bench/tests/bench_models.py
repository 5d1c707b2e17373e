"""Models of every kind: batching, variable dimensions, strings, sequences, decoupled responses, failures."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import Any

import numpy as np

from tritonpy import Backend, InferResponse, InvalidArgument, Tensor, hookimpl
from tritonpy.execution import gather
from tritonpy_testing import ModelRepository

Arrays = Mapping[str, Any]
CONFIGS = {
    "sums": """backend: "bench_sums" max_batch_size: 8 dynamic_batching { }
        input [{ name: "A" data_type: TYPE_INT32 dims: [4] }, { name: "B" data_type: TYPE_INT32 dims: [4] }]
        output { name: "SUM" data_type: TYPE_INT32 dims: [4] }""",
    "varied": """backend: "bench_echo" max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: [-1, 2] } output { name: "OUT" data_type: TYPE_FP32 dims: [-1, 2] }""",
    "texts": """backend: "bench_echo" max_batch_size: 0
        input { name: "IN" data_type: TYPE_STRING dims: [3] } output { name: "OUT" data_type: TYPE_STRING dims: [3] }""",
    "halves": """backend: "bench_echo" max_batch_size: 0
        input { name: "IN" data_type: TYPE_FP16 dims: [2] } output { name: "OUT" data_type: TYPE_FP16 dims: [2] }""",
    "failing": """backend: "bench_failing" max_batch_size: 0
        input { name: "IN" data_type: TYPE_FP32 dims: [1] } output { name: "OUT" data_type: TYPE_FP32 dims: [1] }""",
    "many": """backend: "bench_many" max_batch_size: 0 model_transaction_policy { decoupled: true }
        input { name: "IN" data_type: TYPE_INT32 dims: [1] } output { name: "OUT" data_type: TYPE_INT32 dims: [1] }""",
    "sequence": """backend: "bench_sequence" max_batch_size: 0
        input { name: "IN" data_type: TYPE_INT32 dims: [1] } output { name: "OUT" data_type: TYPE_INT32 dims: [1] }
        instance_group { count: 8 kind: KIND_CPU }
        sequence_batching { direct { } max_sequence_idle_microseconds: 60000000 }""",
    "chain": """platform: "ensemble" max_batch_size: 8
        input { name: "X" data_type: TYPE_FP32 dims: [-1, 2] } output { name: "Y" data_type: TYPE_FP32 dims: [-1, 2] }
        ensemble_scheduling { step { model_name: "varied" model_version: -1
            input_map { key: "IN" value: "X" } output_map { key: "OUT" value: "Y" } } }""",
}


class Sums(Backend):
    def infer(self, inputs: Arrays) -> Arrays:
        return {"SUM": inputs["A"] + inputs["B"]}


class Echo(Backend):
    def infer(self, inputs: Arrays) -> Arrays:
        return {"OUT": inputs["IN"]}


class Failing(Backend):
    def infer(self, inputs: Arrays) -> Arrays:
        raise InvalidArgument("this model never works")


class Many(Backend):
    """Sends IN responses per request; a negative IN is an error."""

    def execute(self, batch: Any) -> None:
        batch.stamp()
        for request in batch.requests:
            count = int(request.inputs["IN"].numpy()[0])
            if count < 0:
                request.respond(
                    InferResponse(
                        (), self.model.name, 1, request.id, error=InvalidArgument("too few")
                    )
                )
                continue
            for number in range(count):
                out = Tensor.from_numpy("OUT", np.array([number], np.int32))
                request.respond(
                    InferResponse(
                        [out], self.model.name, self.model.version, request.id, final=False
                    )
                )
            request.respond(
                InferResponse((), self.model.name, self.model.version, request.id, empty=True)
            )


class BenchModels:
    """The plugin with the backends of these models.

    `received` has id, start, end and IN of each request to `sequence`. It responds only while `open` is set.
    """

    def __init__(self) -> None:
        self.received: list[tuple[int, bool, bool, int]] = []
        self.open = Event()
        self.open.set()
        plugin = self

        class Sequence(Backend):
            def execute(self, batch: Any) -> None:
                for request in batch.requests:
                    received = request.sequence
                    plugin.received.append(
                        (
                            received.id,
                            received.start,
                            received.end,
                            int(request.inputs["IN"].numpy()[0]),
                        )
                    )
                plugin.open.wait()
                batch.respond(self.responses(batch))

            def responses(self, batch: Any) -> list[InferResponse]:
                from tritonpy.execution import scatter

                return scatter(batch, {"OUT": gather(batch)[0].numpy()})

        self._sequence = Sequence

    @hookimpl
    def tritonpy_backends(self) -> dict[str, type[Backend]]:
        return {
            "bench_sums": Sums, "bench_echo": Echo, "bench_failing": Failing, "bench_many": Many,
            "bench_sequence": self._sequence,
        }  # fmt: skip


def write_models(repository: ModelRepository) -> None:
    for name, config in CONFIGS.items():
        repository.add(name, config)
