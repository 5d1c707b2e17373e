"""Backends of another distribution for tests: one waits, one raises, one sends many responses."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np

from tritonpy import Backend, InferResponse, Tensor, Unavailable, hookimpl


class GateBackend(Backend):
    """Returns IN as OUT once the file of the parameter `gate` exists.

    `<gate>.entered` marks the start of the execution.
    """

    def infer(self, inputs):
        gate = Path(self.model.parameters["gate"])
        gate.with_suffix(".entered").touch()
        while not gate.exists():
            time.sleep(0.01)
        return {"OUT": inputs["IN"]}


class RaisingBackend(Backend):
    """Fails each batch that holds a negative number with its own text; counts its executions."""

    def infer(self, inputs):
        values = inputs["IN"]
        if (values == -2).any():
            raise Unavailable("this model takes no minus two today")
        if (values < 0).any():
            raise ValueError(f"cannot take the root of {values.min():g}")
        return {"OUT": np.sqrt(values)}


class BrokenBackend(Backend):
    """Cannot be loaded."""

    def __init__(self, model, instance):
        super().__init__(model, instance)
        raise RuntimeError("the weights are torn")


class RepeatBackend(Backend):
    """Decoupled: returns IN as often as the value of IN, then the final flag."""

    def execute(self, batch):
        for request in batch.requests:
            threading.Thread(target=self._repeat, args=(request,)).start()

    def _repeat(self, request):
        tensor = request.inputs["IN"]
        for index in range(int(tensor.numpy().reshape(-1)[0])):
            out = Tensor.from_numpy("OUT", np.array([index], np.int32))
            request.respond(
                InferResponse(
                    [out], request.model_name, self.model.version, request.id, final=False
                )
            )
        request.respond(
            InferResponse((), request.model_name, self.model.version, request.id, empty=True)
        )


class TogetherBackend(Backend):
    """SUM is the sum of the present inputs; SEEN is their names and the rows in the batch."""

    def infer(self, inputs):
        total = sum(inputs.values())
        seen = f"{' '.join(sorted(inputs))} in {len(total)}".encode()
        return {"SUM": total, "SEEN": np.full((len(total), 1), seen, object)}


@hookimpl
def tritonpy_backends():
    return {
        "gate": GateBackend, "raising": RaisingBackend, "broken": BrokenBackend, "repeat": RepeatBackend,
        "together": TogetherBackend,
    }  # fmt: skip
