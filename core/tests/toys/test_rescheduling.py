from __future__ import annotations

from tritonpy.errors import Code
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness

from .rescheduling import ReschedulesThenFails, ThreeTurns, TurnScheduler
from .serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins

BACKENDS = {"three_turns": ThreeTurns, "fails": ReschedulesThenFails}


def test_a_rescheduled_request_runs_again_until_it_is_answered(model_repository: ModelRepository) -> None:
    model_repository.add("turns", config_of("three_turns", batch=4, instances=2, more="dynamic_batching {}"))
    witness = Witness()
    with serving(model_repository, toy_plugins(ToyPlugin(BACKENDS, {"dynamic": TurnScheduler}))) as server:
        requests = [ask(server.engine, witness, "turns", [[10 * number]]) for number in range(8)]
        answers = witness.wait(*requests)
        gauges = server.engine.gauges()["turns", "1"]
    assert [numbers(each) for each in answers] == [[[10 * number + 3]] for number in range(8)]
    witness.check(*requests)
    assert (gauges.pending, gauges.late_answers) == (0, 0)


def test_a_scheduler_without_the_notion_answers_in_tritons_words(model_repository: ModelRepository) -> None:
    model_repository.add("turns", config_of("three_turns"))
    witness = Witness()
    with serving(model_repository, toy_plugins(ToyPlugin(BACKENDS))) as server:
        request = ask(server.engine, witness, "turns", [1])
        ((answer,),) = witness.wait(request)
        gauges = server.engine.gauges()["turns", "1"]
    assert answer.error is not None
    assert answer.error.code is Code.INTERNAL
    assert answer.error.message == (
        "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, "
        "while the model is not configured to handle such a flag."
    )
    assert gauges.pending == 0


def test_a_failure_leaves_the_requests_alone_that_were_handed_back_before_it(model_repository: ModelRepository) -> None:
    model_repository.add("fails", config_of("fails", batch=4, more="dynamic_batching {}"))
    witness = Witness()
    with serving(model_repository, toy_plugins(ToyPlugin(BACKENDS, {"dynamic": TurnScheduler}))) as server:
        request = ask(server.engine, witness, "fails", [[7]])
        (answer,) = witness.wait(request)
        gauges = server.engine.gauges()["fails", "1"]
    assert numbers(answer) == [[7]]
    assert (gauges.pending, gauges.late_answers) == (0, 0)
