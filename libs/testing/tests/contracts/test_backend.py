from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import numpy as np
import pytest

from tritonpy import (
    Backend,
    Batch,
    InferResponse,
    InvalidArgument,
    MemoryUsage,
    Options,
    Tensor,
    hookimpl,
)
from tritonpy.execution import gather, scatter
from tritonpy_testing import BackendContract

CONFIG = """
    name: "toy" backend: "doubler" max_batch_size: 8
    input { name: "IN" data_type: TYPE_FP32 dims: -1 }
    output [ { name: "OUT" data_type: TYPE_FP32 dims: -1 }, { name: "SUM" data_type: TYPE_FP32 dims: 1 } ]
"""
NO_BATCH = CONFIG.replace("max_batch_size: 8", "max_batch_size: 0")
DECOUPLED = """
    name: "toy" backend: "stream" model_transaction_policy { decoupled: true }
    input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""


class DoublerOptions(Options, frozen=True):
    factor: Annotated[float, msgspec.Meta(description="What to multiply with.")] = 2.0


class Doubler(Backend):
    Options = DoublerOptions

    def __init__(self, model, instance):
        super().__init__(model, instance)
        self.home = threading.current_thread()

    def infer(self, inputs):
        assert threading.current_thread() is self.home
        if (inputs["IN"] < 0).any():
            raise InvalidArgument("negative")
        return {
            "OUT": inputs["IN"] * np.float32(self.model.options.factor),
            "SUM": inputs["IN"].sum(axis=-1, keepdims=True),
        }

    def close(self):
        assert threading.current_thread() is self.home


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_backends():
        return {"doubler": Doubler}


class DoublerContract(BackendContract):
    plugin_class = Doubler
    config = CONFIG

    def bad_inputs(self, harness, random):
        return {"IN": -np.ones((1, 4), np.float32)}


class TestDoubler(DoublerContract):
    plugin = Plugin
    name = "doubler"
    options: ClassVar = {"factor": 3.0}


class TestDoublerWithoutBatches(BackendContract):
    plugin_class = Doubler
    config = NO_BATCH


class RespondsLater(Doubler):
    """Responds after `execute` returned, from another thread."""

    def execute(self, batch):
        inputs = {tensor.name: tensor.numpy() for tensor in gather(batch)}
        responses = scatter(batch, self.infer(inputs))
        threading.Thread(target=batch.respond, args=(responses,)).start()


class TestRespondsLater(DoublerContract):
    plugin_class = RespondsLater


class ReschedulingOnce(Doubler):
    """Reschedules every request once."""

    def __init__(self, model, instance):
        super().__init__(model, instance)
        self.seen = set()

    def execute(self, batch):
        new = [request for request in batch.requests if id(request) not in self.seen]
        for request in new:
            self.seen.add(id(request))
            request.reschedule()
        old = [request for request in batch.requests if request not in new]
        if old:
            super().execute(Batch(old, model=batch.model))


class TestReschedulingOnce(DoublerContract):
    plugin_class = ReschedulingOnce


class Streaming(Backend):
    def execute(self, batch):
        for request in batch.requests:
            for number in range(int(request.inputs["IN"].numpy()[0])):
                tensor = Tensor.from_numpy("OUT", np.array([number], np.int32))
                request.respond(InferResponse([tensor], final=False))
            request.respond(InferResponse((), empty=True))


class TestStreaming(BackendContract):
    plugin_class = Streaming
    config = DECOUPLED


class FromFile(Doubler):
    def __init__(self, model, instance):
        super().__init__(model, instance)
        assert (model.path / "weights").read_bytes() == b"2"


class TestFromFile(BackendContract):
    plugin_class = FromFile
    config = CONFIG

    def write_model(self, version_folder: Path) -> None:
        (version_folder / "weights").write_bytes(b"2")


def test_failures_are_checked_if_bad_inputs_are_set(tests):
    assert tests(DoublerContract) - tests(TestFromFile) == {
        "test_a_failing_batch_gets_an_error_and_the_instance_keeps_working"
    }


class FailsToLoad(Doubler):
    def __init__(self, model, instance):
        raise RuntimeError("no")


class Forgetful(Doubler):
    def execute(self, batch):
        batch.requests = batch.requests[:1]
        super().execute(batch)


class RespondsTwice(Doubler):
    def execute(self, batch):
        super().execute(batch)
        super().execute(batch)


class InPlace(Doubler):
    def infer(self, inputs):
        array = inputs["IN"]
        array.setflags(write=True)
        array *= 2
        return {"OUT": array.copy(), "SUM": array.sum(axis=-1, keepdims=True)}


class Mixing(Doubler):
    def infer(self, inputs):
        outputs = super().infer(inputs)
        return {**outputs, "OUT": outputs["OUT"] + len(inputs["IN"])}


class EveryOutput(Doubler):
    def execute(self, batch):
        for request in batch.requests:
            request.outputs = None
        super().execute(batch)


class HalfTheOutputs(Doubler):
    def infer(self, inputs):
        return {"OUT": super().infer(inputs)["OUT"]}


class WrongType(Doubler):
    def infer(self, inputs):
        return {name: array.astype(np.float64) for name, array in super().infer(inputs).items()}


class DiesOfAFailure(Doubler):
    dead = False

    def infer(self, inputs):
        if self.dead:
            raise RuntimeError("dead")
        self.dead = (inputs["IN"] < 0).any()
        return super().infer(inputs)


class SharesState(Doubler):
    alive = 0

    def __init__(self, model, instance):
        super().__init__(model, instance)
        type(self).alive += 1
        self.open = True

    def infer(self, inputs):
        if type(self).alive == 0:
            raise RuntimeError("another version closed the data of this one")
        return super().infer(inputs)

    def close(self):
        type(self).alive = 0


class ClosesOnce(Doubler):
    def close(self):
        del self.home


class ReportsUnknownKind(Doubler):
    def memory_usage(self):
        return [MemoryUsage("VRAM", 0, 1)]


class ReportsPairs(Doubler):
    def memory_usage(self):
        return [("GPU", 1)]


class ReportsNegativeSize(Doubler):
    @classmethod
    def load(cls, model):
        return "weights"

    @classmethod
    def shared_memory_usage(cls, shared):
        return [MemoryUsage("GPU", 0, -1)]


HELD = "test_memory_usage_gives_bytes_per_kind_and_device"
BROKEN = {
    FailsToLoad: "test_loads_and_answers",
    Forgetful: "test_every_request_of_a_batch_is_answered_exactly_once",
    RespondsTwice: "test_every_request_of_a_batch_is_answered_exactly_once",
    InPlace: "test_inputs_are_not_modified",
    Mixing: "test_a_row_has_the_same_result_alone_and_in_a_batch",
    EveryOutput: "test_only_requested_outputs_are_returned",
    HalfTheOutputs: "test_outputs_have_the_configured_types_and_rows",
    WrongType: "test_outputs_have_the_configured_types_and_rows",
    DiesOfAFailure: "test_a_failing_batch_gets_an_error_and_the_instance_keeps_working",
    SharesState: "test_two_versions_are_loaded_at_the_same_time",
    ClosesOnce: "test_close_may_be_called_twice",
    ReportsUnknownKind: HELD,
    ReportsPairs: HELD,
    ReportsNegativeSize: HELD,
}


@pytest.mark.parametrize("backend", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_backend_fails(failures, backend):
    contract = type("Broken", (DoublerContract,), {"plugin_class": backend})
    assert BROKEN[backend] in failures(contract)


def test_a_missing_error_fails(failures):
    class Lenient(Doubler):
        def infer(self, inputs):
            return {"OUT": inputs["IN"], "SUM": inputs["IN"].sum(axis=-1, keepdims=True)}

    contract = type("Broken", (DoublerContract,), {"plugin_class": Lenient})
    assert failures(contract) == {
        "test_a_failing_batch_gets_an_error_and_the_instance_keeps_working"
    }
