from __future__ import annotations

from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types.errors import Code

from .rescheduling import ReschedulesThenFails, ReschedulingScheduler, ThreeExecutions
from .serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins

BACKENDS = {"three_turns": ThreeExecutions, "fails": ReschedulesThenFails}


def test_a_rescheduled_request_runs_again_until_it_is_finished(
    model_repository: ModelRepository,
) -> None:
    model_repository.add(
        "turns", config_of("three_turns", batch=4, instances=2, more="dynamic_batching {}")
    )
    recorder = RecordingSink()
    with serving(
        model_repository, toy_plugins(ToyPlugin(BACKENDS, {"dynamic": ReschedulingScheduler}))
    ) as server:
        requests = [ask(server.engine, recorder, "turns", [[10 * number]]) for number in range(8)]
        responses = recorder.wait(*requests)
        gauges = server.engine.gauges()["turns", "1"]
    assert [numbers(each) for each in responses] == [[[10 * number + 3]] for number in range(8)]
    recorder.check(*requests)
    assert (gauges.pending, gauges.late_responses) == (0, 0)


def test_a_scheduler_without_rescheduling_fails_with_tritons_text(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("turns", config_of("three_turns"))
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(ToyPlugin(BACKENDS))) as server:
        request = ask(server.engine, recorder, "turns", [1])
        ((response,),) = recorder.wait(request)
        gauges = server.engine.gauges()["turns", "1"]
    assert response.error is not None
    assert response.error.code is Code.INTERNAL
    assert response.error.message == (
        "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, "
        "while the model is not configured to handle such a flag."
    )
    assert gauges.pending == 0


def test_a_failure_does_not_affect_requests_rescheduled_before_it(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("fails", config_of("fails", batch=4, more="dynamic_batching {}"))
    recorder = RecordingSink()
    with serving(
        model_repository, toy_plugins(ToyPlugin(BACKENDS, {"dynamic": ReschedulingScheduler}))
    ) as server:
        request = ask(server.engine, recorder, "fails", [[7]])
        (response,) = recorder.wait(request)
        gauges = server.engine.gauges()["fails", "1"]
    assert numbers(response) == [[7]]
    assert (gauges.pending, gauges.late_responses) == (0, 0)
