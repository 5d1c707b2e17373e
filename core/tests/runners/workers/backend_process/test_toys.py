"""The toys do in a process of their own what they do in a thread of the server."""

from __future__ import annotations

import pytest

from core.tests.toys.continuous import MAX_OPEN, FarCountdown, FarStepper
from core.tests.toys.decoupled import Repeat
from core.tests.toys.doubler import Doubler
from core.tests.toys.isolated import ISOLATED, Scarce, isolating
from core.tests.toys.pinned import CONFIG, Accumulate, PinnedScheduler
from core.tests.toys.rescheduling import CountedTurns, ReschedulesThenFails, TurnScheduler
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers
from tritonpy.errors import Internal, ResourceExhausted
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import SequenceInfo

BATCHES = "dynamic_batching {}"


def test_a_doubler_doubles(model_repository: ModelRepository) -> None:
    model_repository.add("double", config_of("doubler", batch=4, dims=2, instances=2, more=ISOLATED + BATCHES))
    witness = Witness()
    with isolating(model_repository, ToyPlugin({"doubler": Doubler}, {"dynamic": TurnScheduler})) as server:
        requests = [
            ask(server.engine, witness, "double", [[number, -number]] * (number % 3 + 1), id=str(number))
            for number in range(100, 160)
        ]
        answers = witness.wait(*requests)
        (statistics,) = server.engine.statistics("double")
    assert [numbers(each) for each in answers] == [
        [[2 * number, -2 * number] * (number % 3 + 1)] for number in range(100, 160)
    ]
    assert [each[0].id for each in answers] == [str(number) for number in range(100, 160)]
    assert statistics.inference_stats.success.count == 60
    assert statistics.inference_stats.compute_infer.ns > 0
    witness.check(*requests)


def test_what_a_backend_raises_answers_its_batch_with_its_text(model_repository: ModelRepository) -> None:
    model_repository.add("double", config_of("doubler", more=ISOLATED))
    witness = Witness()
    with isolating(model_repository, ToyPlugin({"doubler": Doubler})) as server:
        good, bad, later = (ask(server.engine, witness, "double", [number]) for number in (1, 13, 2))
        answers = witness.wait(good, bad, later)
        gauges = server.engine.gauges()["double", "1"]
    assert [numbers(answers[0]), numbers(answers[2])] == [[[2]], [[4]]]
    with pytest.raises(Internal, match=r"^ValueError: thirteen cannot be doubled$"):
        numbers(answers[1])
    assert gauges.failures["BACKEND"] == 1
    witness.check(good, bad, later)


def test_when_to_come_again_reaches_the_client(model_repository: ModelRepository) -> None:
    model_repository.add("scarce", config_of("scarce", more=ISOLATED))
    witness = Witness()
    with isolating(model_repository, ToyPlugin({"scarce": Scarce})) as server:
        ((answer,),) = witness.wait(ask(server.engine, witness, "scarce", [1]))
    assert isinstance(answer.error, ResourceExhausted)
    assert (answer.error.message, answer.error.retry_after_s) == ("nothing left", 7.5)


def test_a_decoupled_model_answers_from_its_own_thread(model_repository: ModelRepository) -> None:
    decoupled = "model_transaction_policy { decoupled: true }"
    model_repository.add("many", config_of("repeat", more=ISOLATED + decoupled))
    witness = Witness()
    with isolating(model_repository, ToyPlugin({"repeat": Repeat})) as server:
        requests = [ask(server.engine, witness, "many", [count], accepts_decoupled=True) for count in (3, 0, 1, 500)]
        answers = witness.wait(*requests)
        (statistics,) = server.engine.statistics("many")
    assert [numbers(each) for each in answers] == [
        [[0], [1], [2]], [], [[0]], [[number] for number in range(500)],
    ]  # fmt: skip
    assert [response.final for response in answers[3]] == [False] * 500 + [True]
    assert answers[1][0].empty
    assert (statistics.inference_stats.success.count, statistics.execution_count) == (4, 4)
    witness.check(*requests)


def test_requests_join_a_running_execution_up_to_max_open(model_repository: ModelRepository) -> None:
    stepper, witness = FarStepper(model_repository.path), Witness()
    where = f'parameters {{ key: "stepper" value {{ string_value: "{model_repository.path}" }} }}'
    model_repository.add("countdown", config_of("countdown", more=ISOLATED + where))
    with isolating(model_repository, ToyPlugin({"countdown": FarCountdown})) as server:
        requests = [ask(server.engine, witness, "countdown", [3])]
        stepper.wait_for([3])
        requests += [ask(server.engine, witness, "countdown", [steps]) for steps in (1, 2, 5, 4, 6)]
        stepper.allow()
        stepper.wait_for([2, 1, 2, 5])  # four are open, two wait
        assert server.engine.gauges()["countdown", "1"].pending == 2
        stepper.allow()
        assert numbers(*witness.wait(requests[1])) == [[1]]  # at once, not when the execution is over
        stepper.wait_for([1, 1, 4, 4])
        stepper.allow(100)
        answers = witness.wait(*requests)
        failing = [ask(server.engine, witness, "countdown", [steps]) for steps in (5, 13)]
        for each in witness.wait(*failing):
            with pytest.raises(Internal, match="thirteen steps are too many"):
                numbers(each)
        later = ask(server.engine, witness, "countdown", [1])
        assert numbers(*witness.wait(later)) == [[1]]  # the instance lives, and has room
    stepper.close()
    assert [numbers(each) for each in answers] == [[[steps]] for steps in (3, 1, 2, 5, 4, 6)]
    assert max(map(len, stepper.steps)) == MAX_OPEN
    witness.check(*requests, *failing, later)


def test_a_request_that_is_handed_back_runs_again(model_repository: ModelRepository) -> None:
    model_repository.add("turns", config_of("turns", batch=4, more=ISOLATED + BATCHES))
    witness = Witness()
    plugin = ToyPlugin({"turns": CountedTurns}, {"dynamic": TurnScheduler})
    with isolating(model_repository, plugin) as server:
        requests = [ask(server.engine, witness, "turns", [[10 * number]], id=str(number)) for number in range(8)]
        answers = witness.wait(*requests)
        gauges = server.engine.gauges()["turns", "1"]
    assert [numbers(each) for each in answers] == [[[10 * number + 3]] for number in range(8)]
    assert (gauges.pending, gauges.late_answers) == (0, 0)
    witness.check(*requests)


def test_a_failure_leaves_the_requests_alone_that_were_handed_back_before_it(model_repository: ModelRepository) -> None:
    model_repository.add("fails", config_of("fails", batch=4, more=ISOLATED + BATCHES))
    witness = Witness()
    plugin = ToyPlugin({"fails": ReschedulesThenFails}, {"dynamic": TurnScheduler})
    with isolating(model_repository, plugin) as server:
        request = ask(server.engine, witness, "fails", [[7]])
        assert numbers(*witness.wait(request)) == [[7]]
    witness.check(request)


def test_sequences_keep_their_state_and_slots_may_be_holes(model_repository: ModelRepository) -> None:
    model_repository.add("sum", CONFIG + ISOLATED + "instance_group { count: 2 kind: KIND_CPU }")
    witness = Witness()
    plugin = ToyPlugin({"accumulate": Accumulate}, {"sequence": PinnedScheduler})
    with isolating(model_repository, plugin) as server:
        requests = [
            ask(server.engine, witness, "sum", [[value * each]], sequence=SequenceInfo(each, end=value == 5))
            for value in range(1, 6)
            for each in range(1, 9)  # as many as there are slots
        ]
        sums = [numbers(each)[0][0] for each in witness.wait(*requests)]
        (lone,) = server.engine.statistics("sum")[0].batch_stats
    assert sums == [total * each for total in (1, 3, 6, 10, 15) for each in range(1, 9)]
    assert lone.batch_size == 4  # holes are rows, too
    witness.check(*requests)
