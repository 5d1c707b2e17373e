from __future__ import annotations

import numpy as np
import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_trt.graphs import batch_dimension_inputs

from .conftest import output
from .descriptions import config
from .simulated import plans
from .simulated.cuda_runtime import Runnable

ON = "optimization { cuda { graphs: true } } dynamic_batching { preferred_batch_size: 4 }"


def cuda(spec, more=""):
    return f"optimization {{ {more} cuda {{ graphs: true {spec} }} }}"


def run(harness, rows, value=1):
    [[answer]] = harness.execute(harness.request({"IN": np.full((rows, 4), value, np.float32)}))
    assert output(answer, "OUT").tolist() == [[2 * value] * 4] * rows


@pytest.mark.parametrize("more", ["", "eager_batching: true"])
def test_batches_of_the_captured_sizes_run_as_graphs(simulation, more):
    machine = simulation.machine
    with simulation.load(
        plans.double(),
        f"optimization {{ {more} cuda {{ graphs: true }} }} dynamic_batching {{ preferred_batch_size: 4 }}",
    ) as harness:
        assert machine.count(Runnable) == 3 * (
            2 if more else 1
        )  # of 1, 4 and 8 rows, for each set of buffers
        for rows, launched in ((1, 1), (4, 2), (8, 3), (2, 3), (1, 4)):
            run(harness, rows, rows)
            assert machine.launches == launched
    assert machine.count(Runnable) == 0


def test_graphs_are_captured_only_if_configured(simulation):
    with simulation.load(plans.double()) as harness:
        run(harness, 1)
    assert simulation.machine.launches == 0


def test_a_graph_serves_smaller_batches_down_to_its_lower_bound(simulation):
    spec = "graph_spec { batch_size: 4 graph_lower_bound { batch_size: 2 } }"
    with simulation.load(plans.double(), cuda(spec)) as harness:
        for rows, launches in ((4, 1), (3, 2), (2, 3), (1, 3), (5, 3)):
            run(harness, rows, rows)
            assert simulation.machine.launches == launches


def test_a_batch_in_a_larger_graph_is_padded_with_zeros_in_every_dimension(simulation):
    shape, least = "dim: [4, 8]", "dim: [1, 1]"
    spec = (
        f"graph_spec {{ batch_size: 4 input {{ key: 'IN' value {{ {shape} }} }} "
        f"graph_lower_bound {{ batch_size: 1 input {{ key: 'IN' value {{ {least} }} }} }} }}"
    )
    with simulation.load(
        plans.grid(),
        cuda(spec) + "input { name: 'IN' dims: [-1, -1] } output { name: 'OUT' dims: [-1, -1] }",
    ) as harness:
        array = np.arange(1, 13, dtype=np.float32).reshape(2, 2, 3)
        [[answer]] = harness.execute(harness.request({"IN": array}))
    found = output(answer, "OUT")
    assert simulation.machine.launches == 1
    assert found.shape == (2, 4, 8)
    assert found[:, :2, :3].tolist() == (2 * array).tolist()
    assert not found[:, 2:].any()
    assert not found[:, :, 3:].any()


def test_a_graph_that_cannot_be_captured_is_left_out_and_the_log_says_why(simulation, caplog):
    simulation.machine.refusals["cudaGraphInstantiate"] = 1
    with simulation.load(plans.double(), ON) as harness:
        assert simulation.machine.count(Runnable) == 2
        assert "unable to record CUDA graph for m_0: error 1" in caplog.text
        run(harness, 1)
        run(harness, 4)


def test_a_failed_capture_is_aborted(simulation, caplog):
    original = simulation.runtime.cudaStreamBeginCapture

    def begin(stream, mode):
        simulation.machine.refusals["enqueue"] = 1
        simulation.runtime.cudaStreamBeginCapture = original
        return original(stream, mode)

    simulation.runtime.cudaStreamBeginCapture = begin
    with simulation.load(plans.double(), ON) as harness:
        assert simulation.machine.count(Runnable) == 2
        assert "unable to enqueue for inference m_0" in caplog.text
        run(harness, 1)


@pytest.mark.parametrize("plan", [plans.expand(batched=True), plans.positives()])
def test_engines_whose_shapes_depend_on_values_have_no_graphs(simulation, plan, caplog):
    with simulation.load(plan, cuda("")):
        assert simulation.machine.count(Runnable) == 0
    assert "CUDA graph is not captured for m" in caplog.text


def test_a_spec_of_unknown_inputs_fails_the_load_and_leaves_nothing_on_the_gpu(simulation):
    spec = "graph_spec { batch_size: 1 input { key: 'X' value { dim: 4 } } }"
    with (
        pytest.raises(
            InvalidArgument, match="trt failed to set input shape for unknown input 'IN'"
        ),
        simulation.load(plans.double(), cuda(spec)),
    ):
        pass


def test_a_failed_launch_fails_its_batch_and_the_next_one_runs(simulation):
    with simulation.load(plans.double(), ON) as harness:
        simulation.machine.refusals["cudaGraphLaunch"] = 1
        [[answer]] = harness.execute(harness.request({"IN": np.ones((1, 4), np.float32)}))
        assert answer.error.message == "unable to execute graph for inference m_0: error 1"
        run(harness, 1)


def test_ragged_and_batch_inputs_have_no_batch_dimension():
    text = """
        max_batch_size: 4 input { name: 'IN' dims: 2 } input { name: 'RAGGED' dims: -1 allow_ragged_batch: true }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'COUNTS' data_type: TYPE_INT32 source_input: 'RAGGED' }"""
    assert batch_dimension_inputs(config(text)) == ["IN"]
    assert batch_dimension_inputs(config("input { name: 'IN' dims: 2 }")) == []
