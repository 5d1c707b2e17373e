"""Backends with implicit state, written with `infer` only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tritonpy import Backend, hookimpl
from tritonpy.execution import gather, scatter

Inputs = Mapping[str, Any]
FAIL, WRONG_SHAPE, WRONG_TYPE, MISSING = -1, -2, -3, -4


class Folding(Backend):
    """OUT = NEW = OLD * 3 + IN. A negative IN causes the error with that number."""

    def infer(self, inputs: Inputs) -> Inputs:
        new = inputs["OLD"] * 3 + inputs["IN"]
        match inputs["IN"].min():
            case -1:
                raise ValueError("requested failure")
            case -2:
                return {"OUT": new, "NEW": new[:, :, None]}
            case -3:
                return {"OUT": new, "NEW": new.astype(np.float32)}
            case -4:
                return {"OUT": new}
        return {"OUT": new, "NEW": new}


class Collecting(Backend):
    """NEW = OLD with IN appended, of any datatype. OUT = number of elements."""

    def infer(self, inputs: Inputs) -> Inputs:
        new = np.concatenate([inputs["OLD"], inputs["IN"]], axis=-1)
        return {"OUT": np.full((*new.shape[:-1], 1), new.shape[-1], np.int64), "NEW": new}


class InPlace(Backend):
    """Like Folding, but in the memory of the state. AT = address of that memory."""

    def infer(self, inputs: Inputs) -> Inputs:
        state = inputs["OLD"]
        state *= 3
        state += inputs["IN"]
        return {"OUT": state, "NEW": state, "AT": np.full(state.shape, state.ctypes.data, np.int64)}


class Counting(Backend):
    """Reschedules each request until NEW = OLD + 1 reaches IN."""

    def execute(self, batch: Any) -> None:
        inputs = {tensor.name: tensor.numpy() for tensor in gather(batch)}
        new = inputs["OLD"] + 1
        responses = scatter(batch, {"OUT": new, "NEW": new})
        for request, response in zip(list(batch.requests), responses, strict=True):
            if response.outputs[0].numpy() < request.inputs["IN"].numpy():
                request.reschedule()
            else:
                request.respond(response)


class Plugin:
    @hookimpl
    def tritonpy_backends(self) -> dict[str, type[Backend]]:
        return {
            "folding": Folding,
            "collecting": Collecting,
            "in_place": InPlace,
            "counting": Counting,
        }
