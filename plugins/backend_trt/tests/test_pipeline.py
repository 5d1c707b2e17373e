from __future__ import annotations

import threading

import numpy as np
import pytest

from tritonpy import DTYPES, Batch, InferRequest, OutputSpec, Tensor
from tritonpy_backend_trt.pipeline import first_rows, requested_outputs

from .conftest import output
from .simulated import plans


def floats(*rows):
    return np.array(rows, np.float32)


def answers(harness, *inputs):
    return harness.execute(*[harness.request({"IN": each}) for each in inputs])


def put(harness, request):
    """Execute a request as its own batch; its response may still be pending."""
    request.batch = Batch([request], model=harness.model, start_ns=1)
    harness.instance.execute(request.batch)
    return request


LAYOUTS = [
    "", "optimization { eager_batching: true }", "optimization { cuda { output_copy_stream: true } }",
    "optimization { eager_batching: true cuda { output_copy_stream: true graphs: true busy_wait_events: true } }",
    "optimization { input_pinned_memory { enable: false } output_pinned_memory { enable: false } }",
]  # fmt: skip


@pytest.mark.parametrize("text", LAYOUTS)
@pytest.mark.parametrize("hasty", [(), (0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("policy", ["DEVICE_BLOCKING", "BLOCKING"])
def test_overlapping_executions_do_not_mix(simulation, text, policy, hasty):
    simulation.machine.hasty = hasty
    with simulation.load(plans.double(), text, execution_policy=policy) as harness:
        requests = [
            put(harness, harness.request({"IN": np.full((1 + n % 3, 4), n, np.float32)}))
            for n in range(40)
        ]
        harness.recorder.wait(*requests)
        for number, request in enumerate(requests):
            [answer] = harness.recorder.responses(request)
            assert output(answer, "OUT").tolist() == [[2 * number] * 4] * (1 + number % 3)


def test_responses_are_sent_by_another_thread_after_execute_returns(simulation):
    names = []
    with simulation.load(plans.double()) as harness:
        request = harness.request({"IN": floats([1, 2, 3, 4])})
        request.sink = type(request.sink)(
            lambda request, response: names.append(threading.current_thread().name)
        )
        harness.recorder.respond = lambda requests, responses: names.append(
            threading.current_thread().name
        )
        put(harness, request)
        harness.close_instance()
    assert names == ["m_0 responses"]


def test_inputs_and_outputs_use_pinned_memory_unless_disabled(simulation):
    with simulation.load(plans.double()) as harness:
        answers(harness, floats([1, 2, 3, 4]), floats([5, 6, 7, 8]))
    assert simulation.machine.pageable_copies == 0
    with simulation.load(plans.double(), LAYOUTS[-1]) as harness:
        answers(harness, floats([1, 2, 3, 4]))
    assert simulation.machine.pageable_copies == 2


def test_unrequested_outputs_stay_on_the_gpu(simulation):
    with simulation.load(plans.add_sub()) as harness:
        ones = np.ones((1, 4), np.int32)
        before = simulation.machine.copies
        harness.execute(harness.request({"A": ones, "B": ones}, ["SUM"]))
        assert simulation.machine.copies - before == 3
    names = ["SUM", "DIFFERENCE"]

    def batch(*outputs):
        wanted = [
            None if each is None else {name: OutputSpec(name) for name in each} for each in outputs
        ]
        return Batch([InferRequest("m", {}, None, outputs=each) for each in wanted])

    assert requested_outputs(batch(["SUM"], None), names) == names
    assert requested_outputs(batch(["DIFFERENCE"], ["DIFFERENCE"]), names) == ["DIFFERENCE"]
    assert requested_outputs(batch(["DIFFERENCE"], ["SUM"]), names) == names


def test_a_batch_runs_under_the_nearest_profile(simulation):
    tensors = [plans.tensor("IN", [-1, 4]), plans.tensor("OUT", [-1, 4], output=True)]
    plan = plans.plan("double", tensors, plans.rows((1, 1, 2), (1, 8, 16)))
    with simulation.load(plan, "instance_group { profile: ['0', '1'] }") as harness:
        assert harness.model.config.max_batch_size == 16
        contexts = {
            context.profile.index: context
            for context in harness.instance._pipeline._resources.contexts
        }
        for rows, index in ((1, 0), (2, 0), (3, 1), (16, 1)):
            shapes = {number: context.raw.shapes["IN"] for number, context in contexts.items()}
            [[answer]] = answers(harness, np.ones((rows, 4), np.float32))
            assert output(answer, "OUT").tolist() == [[2] * 4] * rows
            assert contexts[index].raw.shapes["IN"] == (rows, 4)
            assert contexts[1 - index].raw.shapes["IN"] == shapes[1 - index]
        assert [context.raw.profile for context in contexts.values()] == [0, 1]


def test_a_batch_that_no_profile_allows_fails_and_the_next_one_runs(simulation, caplog):
    tensors = [plans.tensor("IN", [-1, -1]), plans.tensor("OUT", [-1, -1], output=True)]
    shapes = [{"IN": [[1, 1], [2, 2], [4, size]]} for size in (2, 3)]
    with simulation.load(
        plans.plan("double", tensors, shapes), "instance_group { profile: ['0', '1'] }"
    ) as harness:
        [[answer]] = answers(harness, np.ones((1, 5), np.float32))
        assert answer.error.message == (
            "request specifies invalid shape for input 'IN' for m_0. Error details: model expected the shape of dimension 1 to be "
            "between 1 and 2 but received 5"
        )
        assert "failed to find any Optimization Profile among [ 0[0] 1[1]]" in caplog.text
        [[answer]] = answers(harness, np.ones((1, 3), np.float32))
        assert output(answer, "OUT").tolist() == [[2] * 3]


@pytest.mark.parametrize(
    "text", ["", "optimization { eager_batching: true cuda { output_copy_stream: true } }"]
)
def test_data_dependent_output_sizes_are_supported(simulation, text):
    with simulation.load(
        plans.positives(), "max_batch_size: 0 input { name: 'IN' dims: -1 } " + text
    ) as harness:
        for values in ([1, -1, 2, -2], [-1], list(range(1, 17)), [3]):
            [[answer]] = answers(harness, np.array(values, np.float32))
            assert output(answer, "OUT").tolist() == [value for value in values if value > 0]
        requests = [
            put(harness, harness.request({"IN": np.arange(-1, n, dtype=np.float32)}))
            for n in range(2, 15)
        ]
        harness.recorder.wait(*requests)
        for n, request in enumerate(requests, 2):
            assert output(harness.recorder.responses(request)[0], "OUT").tolist() == list(
                range(1, n)
            )


def test_shape_tensors_without_batching_are_unchanged(simulation):
    text = "input { name: 'IN' dims: [-1, 2] } input { name: 'SIZE' }"
    with simulation.load(plans.expand(batched=False), text) as harness:
        for size in ([2, 3], [4, 5], [1, 1]):
            request = harness.request({"IN": floats([7, 0]), "SIZE": np.array(size, np.int32)})
            [[answer]] = harness.execute(request)
            assert output(answer, "FILLED").tolist() == np.full(size, 7).tolist()
            assert output(answer, "SIZES").tolist() == size


def test_the_batch_is_the_first_value_of_a_shape_tensor(simulation):
    with simulation.load(plans.expand(batched=True)) as harness:
        size = np.array([2, 3], np.int32)
        requests = [
            harness.request({"IN": np.full((rows, 2), 7, np.float32), "SIZE": size})
            for rows in (1, 2)
        ]
        [one], [two] = harness.execute(*requests)
    assert output(one, "FILLED").shape == (1, 2, 3)
    assert output(two, "FILLED").tolist() == np.full((2, 2, 3), 7).tolist()
    assert output(one, "SIZES").tolist() == [[2, 3]]
    assert output(two, "SIZES").tolist() == [[2, 3], [2, 3]]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ([2, 9], "The shape value at index 2 is expected to be in range from 1 to 5, Got: 9"),
        ([2, 0], "The shape value at index 2 is expected to be in range from 1 to 5, Got: 0"),
    ],
)
def test_shape_values_that_the_profile_does_not_allow_are_refused(simulation, size, message):
    with simulation.load(plans.expand(batched=True)) as harness:
        [[answer]] = harness.execute(
            harness.request({"IN": floats([7, 0]), "SIZE": np.array(size, np.int32)})
        )
        assert answer.error.message == message
        [[answer]] = harness.execute(
            harness.request({"IN": floats([7, 0]), "SIZE": np.array([1, 1], np.int32)})
        )
        assert output(answer, "FILLED").tolist() == [[[7]]]


def test_the_state_of_a_sequence_comes_back_from_the_gpu(simulation):
    text = """
        max_batch_size: 4 input { name: 'IN' data_type: TYPE_FP32 dims: 1 } output { name: 'SUM' data_type: TYPE_FP32 dims: 1 }
        sequence_batching { state { input_name: 'BEFORE' output_name: 'AFTER' data_type: TYPE_FP32 dims: 1 } }"""
    with simulation.load(plans.running_sum(), text) as harness:
        state = Tensor.from_numpy("BEFORE", floats([0]))
        for number, total in ((1, 1), (2, 3), (5, 8)):
            request = harness.request({"IN": floats([number])})
            batch = request.batch = Batch(
                [request], model=harness.model, states=[state], state_outputs=["AFTER"], start_ns=1
            )
            harness.instance.execute(batch)
            assert output(harness.recorder.responses(request)[0], "SUM").tolist() == [[total]]
            state = Tensor.from_numpy("BEFORE", batch.new_states["AFTER"].numpy())


def packed(value, rows=1):
    """Rows of three channels; the fourth is padding."""
    return np.full((rows, 4, 2, 2), value, DTYPES["FP16"])


def packed_request(harness, array, shape):
    request = harness.request({"IN": np.zeros((shape[0], 1), np.float16)})
    request.inputs["IN"] = Tensor.from_buffer("IN", "FP16", shape, array.tobytes())
    return request


def test_packed_tensors_are_copied_in_their_memory_layout(simulation):
    with simulation.load(plans.packed()) as harness:
        one, two = (packed_request(harness, packed(rows, rows), (rows, 3, 2, 2)) for rows in (1, 2))
        [first], [second] = harness.execute(one, two)
    for rows, answer in ((1, first), (2, second)):
        [tensor] = answer.outputs
        assert (tensor.shape, tensor.datatype) == ((rows, 3, 2, 2), "FP16")
        found = np.frombuffer(tensor.data.tobytes(), np.float16).reshape(rows, 4, 2, 2)
        assert (found[:, :3] == rows).all()


def test_a_packed_input_without_its_padding_is_refused_as_triton_does(simulation):
    with simulation.load(plans.packed()) as harness:
        [[answer]] = harness.execute(packed_request(harness, packed(1)[:, :3], (1, 3, 2, 2)))
    assert (
        answer.error.message
        == "input byte size mismatch for input 'IN' for model 'm'. Expected 32, got 24"
    )


def test_a_missing_input_is_rejected(simulation):
    with simulation.load(plans.add_sub()) as harness:
        [[answer]] = harness.execute(harness.request({"A": np.ones((1, 4), np.int32)}))
    assert answer.error.message == "failed to obtain the input 'B' for model 'm'"


@pytest.mark.parametrize(
    "call", ["cudaMemcpyAsync", "cudaEventRecord", "cudaStreamWaitEvent", "enqueue"]
)
def test_a_failed_copy_fails_its_batch_and_the_next_one_runs(simulation, call):
    with simulation.load(plans.double()) as harness:
        simulation.machine.refusals[call] = 700
        [[answer]] = answers(harness, floats([1, 2, 3, 4]))
        assert answer.error is not None
        assert ("unable to enqueue for inference m_0" in answer.error.message) == (
            call == "enqueue"
        )
        [[answer]] = answers(harness, floats([1, 2, 3, 4]))
        assert output(answer, "OUT").tolist() == [[2, 4, 6, 8]]
        assert harness.instance.is_ready()


def test_a_gpu_failure_fails_the_batch_and_makes_the_instance_not_ready(simulation):
    with simulation.load(plans.double(), "optimization { eager_batching: true }") as harness:
        assert harness.instance.is_ready()
        simulation.machine.refusals["cudaEventSynchronize"] = 700
        [[answer]] = answers(harness, floats([1, 2, 3, 4]))
        assert answer.error.message == "an illegal memory access was encountered"
        assert not harness.instance.is_ready()


def test_close_responds_to_pending_executions(simulation):
    with simulation.load(plans.double(), "optimization { eager_batching: true }") as harness:
        requests = [put(harness, harness.request({"IN": floats([n] * 4)})) for n in range(5)]
        harness.close_instance()
        assert [
            output(harness.recorder.responses(request)[0], "OUT")[0, 0] for request in requests
        ] == [0, 2, 4, 6, 8]


def test_both_ends_of_an_execution_are_stamped(simulation):
    with simulation.load(plans.double()) as harness:
        request = harness.request({"IN": floats([1, 2, 3, 4])})
        harness.execute(request)
    assert request.batch.start_ns < request.batch.input_end_ns < request.batch.infer_end_ns


def test_first_rows_are_a_view():
    tensor = Tensor.from_numpy("OUT", floats([1, 2], [3, 4]))
    assert first_rows(tensor, 2) is tensor
    found = first_rows(tensor, 1)
    assert (found.shape, found.data.base is not None) == ((1, 2), True)
