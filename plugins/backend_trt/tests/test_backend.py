from __future__ import annotations

import numpy as np
import pytest

import tritonpy_backend_trt
from tritonpy_backend_trt.backend import TensorRtBackend
from tritonpy_testing import BackendContract

from .conftest import output
from .simulated import plans


class SimulatedContract(BackendContract):
    plugin_class = TensorRtBackend
    plugin = tritonpy_backend_trt
    name = "tensorrt"
    config = ""

    @pytest.fixture(autouse=True)
    def _simulated(self, simulation):
        self.simulation = simulation

    def plan(self):
        return plans.add_sub()

    def load(self, folder):
        return self.simulation.load(self.plan(), self.config, folder)

    def bad_inputs(self, harness, random):
        return {name: np.ones((9, 4), np.int32) for name in "AB"}


class TestRows(SimulatedContract):
    pass


class TestTwoBufferSets(SimulatedContract):
    config = "optimization { eager_batching: true cuda { output_copy_stream: true } }"


class TestGraphs(SimulatedContract):
    config = "optimization { cuda { graphs: true } }"


class TestFixedShape(SimulatedContract):
    config = "max_batch_size: 0 input { name: 'IN' data_type: TYPE_FP32 dims: [2, 3] } output { name: 'OUT' data_type: TYPE_FP32 dims: [2, 3] }"

    def plan(self):
        return plans.fixed()

    def bad_inputs(self, harness, random):
        return {"IN": np.ones((2, 4), np.float32)}


def floats(*rows):
    return np.array(rows, np.float32)


def test_a_folder_with_a_plan_alone_serves_it(simulation):
    with simulation.load(plans.double()) as harness:
        assert harness.model.config.max_batch_size == 8
        [[answer]] = harness.execute(harness.request({"IN": floats([1, 2, 3, 4])}))
    assert output(answer, "OUT").tolist() == [[2, 4, 6, 8]]


def test_requests_of_a_batch_get_their_own_rows_and_outputs(simulation):
    with simulation.load(plans.add_sub()) as harness:
        ones = np.ones((2, 4), np.int32)
        requests = [
            harness.request({"A": ones, "B": ones}),
            harness.request({"A": ones[:1] * 5, "B": ones[:1]}, ["DIFFERENCE"]),
        ]
        [first], [second] = harness.execute(*requests)
    assert output(first, "SUM").tolist() == [[2] * 4] * 2
    assert [tensor.name for tensor in second.outputs] == ["DIFFERENCE"]
    assert output(second, "DIFFERENCE").tolist() == [[4] * 4]
