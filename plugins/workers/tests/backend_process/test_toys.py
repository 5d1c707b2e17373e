"""The toy backends behave in a worker process as on a thread of the server."""

from __future__ import annotations

import pytest

from core.tests.toys.continuous import MAX_OPEN, ProcessCountdown, ProcessStepper
from core.tests.toys.decoupled import Repeat
from core.tests.toys.doubler import Doubler
from core.tests.toys.isolated import ISOLATED, ExhaustedBackend, isolating
from core.tests.toys.pinned import CONFIG, Accumulate, PinnedScheduler
from core.tests.toys.rescheduling import (
    CountedExecutions,
    ReschedulesThenFails,
    ReschedulingScheduler,
)
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import SequenceInfo
from tritonpy_types.errors import Internal, ResourceExhausted

BATCHES = "dynamic_batching {}"


def test_a_doubler_doubles(model_repository: ModelRepository) -> None:
    model_repository.add(
        "double", config_of("doubler", batch=4, dims=2, instances=2, more=ISOLATED + BATCHES)
    )
    recorder = RecordingSink()
    with isolating(
        model_repository, ToyPlugin({"doubler": Doubler}, {"dynamic": ReschedulingScheduler})
    ) as server:
        requests = [
            ask(
                server.engine,
                recorder,
                "double",
                [[number, -number]] * (number % 3 + 1),
                id=str(number),
            )
            for number in range(100, 160)
        ]
        answers = recorder.wait(*requests)
        (statistics,) = server.engine.statistics("double")
    assert [numbers(each) for each in answers] == [
        [[2 * number, -2 * number] * (number % 3 + 1)] for number in range(100, 160)
    ]
    assert [each[0].id for each in answers] == [str(number) for number in range(100, 160)]
    assert statistics.inference_stats.success.count == 60
    assert statistics.inference_stats.compute_infer.ns > 0
    recorder.check(*requests)


def test_an_error_of_a_backend_fails_its_batch_with_its_text(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("double", config_of("doubler", more=ISOLATED))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"doubler": Doubler})) as server:
        good, bad, later = (
            ask(server.engine, recorder, "double", [number]) for number in (1, 13, 2)
        )
        answers = recorder.wait(good, bad, later)
        gauges = server.engine.gauges()["double", "1"]
    assert [numbers(answers[0]), numbers(answers[2])] == [[[2]], [[4]]]
    with pytest.raises(Internal, match=r"^ValueError: thirteen cannot be doubled$"):
        numbers(answers[1])
    assert gauges.failures["BACKEND"] == 1
    recorder.check(good, bad, later)


def test_a_retry_delay_reaches_the_client(model_repository: ModelRepository) -> None:
    model_repository.add("scarce", config_of("scarce", more=ISOLATED))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"scarce": ExhaustedBackend})) as server:
        ((answer,),) = recorder.wait(ask(server.engine, recorder, "scarce", [1]))
    assert isinstance(answer.error, ResourceExhausted)
    assert (answer.error.message, answer.error.retry_after_s) == ("nothing left", 7.5)


def test_a_decoupled_model_responds_from_its_own_thread(model_repository: ModelRepository) -> None:
    decoupled = "model_transaction_policy { decoupled: true }"
    model_repository.add("many", config_of("repeat", more=ISOLATED + decoupled))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"repeat": Repeat})) as server:
        requests = [
            ask(server.engine, recorder, "many", [count], accepts_decoupled=True)
            for count in (3, 0, 1, 500)
        ]
        answers = recorder.wait(*requests)
        (statistics,) = server.engine.statistics("many")
    assert [numbers(each) for each in answers] == [
        [[0], [1], [2]], [], [[0]], [[number] for number in range(500)],
    ]  # fmt: skip
    assert [response.final for response in answers[3]] == [False] * 500 + [True]
    assert answers[1][0].empty
    assert (statistics.inference_stats.success.count, statistics.execution_count) == (4, 4)
    recorder.check(*requests)


def test_requests_join_a_running_execution_up_to_max_open(
    model_repository: ModelRepository,
) -> None:
    stepper, recorder = ProcessStepper(model_repository.path), RecordingSink()
    where = f'parameters {{ key: "stepper" value {{ string_value: "{model_repository.path}" }} }}'
    model_repository.add("countdown", config_of("countdown", more=ISOLATED + where))
    with isolating(model_repository, ToyPlugin({"countdown": ProcessCountdown})) as server:
        requests = [ask(server.engine, recorder, "countdown", [3])]
        stepper.wait_for([3])
        requests += [
            ask(server.engine, recorder, "countdown", [steps]) for steps in (1, 2, 5, 4, 6)
        ]
        stepper.allow()
        stepper.wait_for([2, 1, 2, 5])  # four are in flight, two wait
        assert server.engine.gauges()["countdown", "1"].pending == 2
        stepper.allow()
        # Immediately, not at the end of the execution.
        assert numbers(*recorder.wait(requests[1])) == [[1]]
        stepper.wait_for([1, 1, 4, 4])
        stepper.allow(100)
        answers = recorder.wait(*requests)
        failing = [ask(server.engine, recorder, "countdown", [steps]) for steps in (5, 13)]
        for each in recorder.wait(*failing):
            with pytest.raises(Internal, match="thirteen steps are too many"):
                numbers(each)
        later = ask(server.engine, recorder, "countdown", [1])
        assert numbers(*recorder.wait(later)) == [[1]]  # the instance lives and has capacity
    stepper.close()
    assert [numbers(each) for each in answers] == [[[steps]] for steps in (3, 1, 2, 5, 4, 6)]
    assert max(map(len, stepper.steps)) == MAX_OPEN
    recorder.check(*requests, *failing, later)


def test_a_rescheduled_request_runs_again(model_repository: ModelRepository) -> None:
    model_repository.add("turns", config_of("turns", batch=4, more=ISOLATED + BATCHES))
    recorder = RecordingSink()
    plugin = ToyPlugin({"turns": CountedExecutions}, {"dynamic": ReschedulingScheduler})
    with isolating(model_repository, plugin) as server:
        requests = [
            ask(server.engine, recorder, "turns", [[10 * number]], id=str(number))
            for number in range(8)
        ]
        answers = recorder.wait(*requests)
        gauges = server.engine.gauges()["turns", "1"]
    assert [numbers(each) for each in answers] == [[[10 * number + 3]] for number in range(8)]
    assert (gauges.pending, gauges.late_responses) == (0, 0)
    recorder.check(*requests)


def test_a_failure_does_not_affect_rescheduled_requests(model_repository: ModelRepository) -> None:
    model_repository.add("fails", config_of("fails", batch=4, more=ISOLATED + BATCHES))
    recorder = RecordingSink()
    plugin = ToyPlugin({"fails": ReschedulesThenFails}, {"dynamic": ReschedulingScheduler})
    with isolating(model_repository, plugin) as server:
        request = ask(server.engine, recorder, "fails", [[7]])
        assert numbers(*recorder.wait(request)) == [[7]]
    recorder.check(request)


def test_sequences_keep_their_state_and_slots_may_be_holes(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("sum", CONFIG + ISOLATED + "instance_group { count: 2 kind: KIND_CPU }")
    recorder = RecordingSink()
    plugin = ToyPlugin({"accumulate": Accumulate}, {"sequence": PinnedScheduler})
    with isolating(model_repository, plugin) as server:
        requests = [
            ask(
                server.engine,
                recorder,
                "sum",
                [[value * each]],
                sequence=SequenceInfo(each, end=value == 5),
            )
            for value in range(1, 6)
            for each in range(1, 9)  # one for each slot
        ]
        sums = [numbers(each)[0][0] for each in recorder.wait(*requests)]
        (lone,) = server.engine.statistics("sum")[0].batch_stats
    assert sums == [total * each for total in (1, 3, 6, 10, 15) for each in range(1, 9)]
    assert lone.batch_size == 4  # empty slots are rows, too
    recorder.check(*requests)
