from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest

from core.tests.toys.decoupled import Repeat
from core.tests.toys.doubler import Doubler
from core.tests.toys.isolated import (
    ISOLATED,
    Broken,
    Caller,
    CountingBackend,
    CrashingBackend,
    ForkingBackend,
    ProcessInspector,
    WaitsForCancellation,
    isolating,
)
from core.tests.toys.rescheduling import ReschedulingScheduler
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers
from plugins.workers.tests.backend_process.wire import eventually
from tritonpy.api.engine import Engine
from tritonpy.frontend import LogChanges
from tritonpy_metrics import SERVER_METRICS, FamilySnapshot
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types.errors import Internal, InvalidArgument, TritonError

EXPLICIT = {"mode": "explicit", "load": ["*"]}


def response_of_number(engine: Engine, model: str, number: int) -> int:
    """Return the number that a model returns for `number`."""
    recorder = RecordingSink()
    ((found,),) = numbers(*recorder.wait(ask(engine, recorder, model, [number])))
    return found


def made(engine: Engine) -> list[FamilySnapshot]:
    """Return the metrics that the server itself did not define."""
    return [family for family in engine.custom_metrics() if family.name not in SERVER_METRICS]


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def parameter(name: str, value: object) -> str:
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'


def test_each_instance_is_a_process_that_inherits_no_descriptors(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("who", config_of("introvert", more=ISOLATED))
    with isolating(model_repository, ToyPlugin({"introvert": ProcessInspector})) as server:
        pid = response_of_number(server.engine, "who", ProcessInspector.PID)
        assert pid != os.getpid()
        assert response_of_number(server.engine, "who", ProcessInspector.SESSION) == pid
        assert response_of_number(server.engine, "who", ProcessInspector.STDIN) == 0
        assert response_of_number(server.engine, "who", ProcessInspector.INHERITED) == 0
    assert is_gone(pid)


def test_a_process_drops_records_that_the_server_does_not_log(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("who", config_of("introvert", more=ISOLATED))
    with isolating(model_repository, ToyPlugin({"introvert": ProcessInspector})) as server:

        def level() -> int:
            return response_of_number(server.engine, "who", ProcessInspector.LOG_LEVEL)

        server.engine.change_log_settings(LogChanges(verbose=0, info=False))
        eventually(lambda: level() == logging.WARNING)
        server.engine.change_log_settings(LogChanges(verbose=3))
        eventually(lambda: level() == logging.DEBUG - 2)


def test_a_process_runs_on_the_cores_of_its_policy(model_repository: ModelRepository) -> None:
    model_repository.add("who", config_of("introvert", more=ISOLATED))
    policies = {"cpu": {"cpu_cores": str(min(os.sched_getaffinity(0)))}}
    with isolating(
        model_repository, ToyPlugin({"introvert": ProcessInspector}), host_policies=policies
    ) as server:
        assert response_of_number(server.engine, "who", ProcessInspector.CORES) == 1
        assert response_of_number(server.engine, "who", ProcessInspector.KNOWN_CORES) == 1


def test_unloading_ends_the_process(model_repository: ModelRepository) -> None:
    model_repository.add("who", config_of("introvert", more=ISOLATED))
    with isolating(
        model_repository, ToyPlugin({"introvert": ProcessInspector}), control=EXPLICIT
    ) as server:
        pid = response_of_number(server.engine, "who", ProcessInspector.PID)
        server.engine.unload_model("who")
        eventually(lambda: is_gone(pid))
        server.engine.load_model("who")
        assert response_of_number(server.engine, "who", ProcessInspector.PID) not in {
            pid,
            os.getpid(),
        }


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (CrashingBackend.KILLED, "it was killed by signal 9 (SIGKILL)"),
        (CrashingBackend.EXITED, "it exited with status 3"),
        (CrashingBackend.ABORTED, "it was killed by signal 6 (SIGABRT)"),
    ],
)
def test_a_dead_process_fails_its_requests_with_the_reason_and_restarts(
    model_repository: ModelRepository, number: int, reason: str
) -> None:
    model_repository.add("fragile", config_of("fragile", more=ISOLATED))
    model_repository.add("double", config_of("doubler"))
    recorder = RecordingSink()
    with isolating(
        model_repository, ToyPlugin({"fragile": CrashingBackend, "doubler": Doubler})
    ) as server:
        fatal = ask(server.engine, recorder, "fragile", [number])
        waiting = ask(server.engine, recorder, "fragile", [5])
        answers = recorder.wait(fatal, waiting)
        with pytest.raises(Internal) as death:
            numbers(answers[0])
        assert reason in death.value.message
        assert numbers(answers[1]) == [[10]]
        assert response_of_number(server.engine, "double", 4) == 8
    recorder.check(fatal, waiting)


def test_the_last_output_of_a_process_is_logged(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tritonpy")
    model_repository.add("fragile", config_of("fragile", more=ISOLATED))
    with isolating(model_repository, ToyPlugin({"fragile": CrashingBackend})) as server:
        with pytest.raises(Internal):
            response_of_number(server.engine, "fragile", CrashingBackend.EXITED)
        with pytest.raises(Internal):
            response_of_number(server.engine, "fragile", CrashingBackend.ABORTED)
    printed = [record.getMessage() for record in caplog.records if record.name == "tritonpy.worker"]
    assert "about to leave" in printed
    assert any("Fatal Python error: Aborted" in line for line in printed)
    assert any(__name__.rpartition(".")[0] or "infer" in line for line in printed)


def test_a_backend_that_raises_system_exit_fails_only_its_batch(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("fragile", config_of("fragile", more=ISOLATED))
    with isolating(model_repository, ToyPlugin({"fragile": CrashingBackend})) as server:
        with pytest.raises(Internal, match="the backend wants to leave"):
            response_of_number(server.engine, "fragile", CrashingBackend.EXIT_CAUGHT)
        assert response_of_number(server.engine, "fragile", 5) == 10


@pytest.mark.parametrize("place", ["load", "init"])
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("refused", "Invalid argument: the weights are of the wrong kind"),
        ("unexpected", "Internal: ValueError: no weights"),
        ("dead", "it exited with status 7.\nIts last output:\nout of luck"),
    ],
)
def test_a_load_error_in_the_process_fails_the_load_with_its_text(
    model_repository: ModelRepository,
    place: str,
    how: str,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    more = ISOLATED + parameter("fails", f"{place}:{how}") + parameter("server", os.getpid())
    model_repository.add("broken", config_of("broken", more=more))
    with isolating(
        model_repository, ToyPlugin({"broken": Broken}), control={"mode": "explicit"}
    ) as server:
        with pytest.raises(TritonError):
            server.engine.load_model("broken")
        (line,) = server.engine.repository_index()
    assert reason in line.reason
    traces = [
        getattr(record, "table", "") for record in caplog.records if record.name == "tritonpy.model"
    ]
    assert [trace.rpartition("\n")[2] for trace in traces] == (
        ["ValueError: no weights"] if how == "unexpected" else []
    )


def test_a_class_that_cannot_be_imported_fails_the_load_with_an_explanation(
    model_repository: ModelRepository,
) -> None:
    class Local(Doubler):
        pass

    model_repository.add("local", config_of("local", more=ISOLATED))
    with isolating(
        model_repository, ToyPlugin({"local": Local}), control={"mode": "explicit"}
    ) as server:
        with pytest.raises(InvalidArgument, match="load failed"):
            server.engine.load_model("local")
        (line,) = server.engine.repository_index()
    assert (
        "cannot run in a process of its own: it must be defined at the top of a module"
        in line.reason
    )


def test_it_calls_other_models(model_repository: ModelRepository) -> None:
    model_repository.add("double", config_of("doubler"))
    model_repository.add("caller", config_of("caller", instances=2, more=ISOLATED))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"doubler": Doubler, "caller": Caller})) as server:
        requests = [
            ask(server.engine, recorder, "caller", [number]) for number in (1, 2, 3, 13, 404, 5)
        ]
        answers = recorder.wait(*requests)
    good = [*answers[:3], answers[5]]
    assert [numbers(each) for each in good] == [[[5]], [[9]], [[13]], [[21]]]
    with pytest.raises(Internal, match="thirteen cannot be doubled"):
        numbers(answers[3])
    with pytest.raises(InvalidArgument, match="Request for unknown model: 'unknown' is not found"):
        numbers(answers[4])
    recorder.check(*requests)


def test_isolated_models_call_each_other(model_repository: ModelRepository) -> None:
    model_repository.add("double", config_of("doubler", more=ISOLATED))
    model_repository.add("caller", config_of("caller", more=ISOLATED))
    with isolating(model_repository, ToyPlugin({"doubler": Doubler, "caller": Caller})) as server:
        assert [response_of_number(server.engine, "caller", number) for number in (1, 2, 50)] == [
            5,
            9,
            201,
        ]


def test_a_cancellation_reaches_a_running_execution(model_repository: ModelRepository) -> None:
    model_repository.add("patient", config_of("patient", more=ISOLATED))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"patient": WaitsForCancellation})) as server:
        request = ask(server.engine, recorder, "patient", [1])
        eventually(lambda: request.batch is not None)
        request.cancel()
        with pytest.raises(InvalidArgument, match="cancelled while it ran"):
            numbers(*recorder.wait(request))
    recorder.check(request)


def test_a_response_does_not_wait_for_the_end_of_execute(model_repository: ModelRepository) -> None:
    folder = model_repository.add("patient", config_of("patient", more=ISOLATED))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"patient": WaitsForCancellation})) as server:
        request = ask(server.engine, recorder, "patient", [0])
        assert numbers(*recorder.wait(request)) == [[0]]
        (folder / "go").touch()


def test_readiness_is_checked_during_an_execution(model_repository: ModelRepository) -> None:
    folder = model_repository.add("patient", config_of("patient", more=ISOLATED))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"patient": WaitsForCancellation})) as server:
        assert server.engine.is_model_ready("patient")
        ask(server.engine, recorder, "patient", [0])
        (folder / "not_ready").touch()
        assert not server.engine.is_model_ready("patient")
        (folder / "go").touch()


def test_its_metrics_are_the_servers(model_repository: ModelRepository) -> None:
    model_repository.add("measured", config_of("measured", instances=2, more=ISOLATED))
    with isolating(
        model_repository, ToyPlugin({"measured": CountingBackend}), control=EXPLICIT
    ) as server:
        counted = [response_of_number(server.engine, "measured", number) for number in (1, 2, 3)]
        with pytest.raises(
            InvalidArgument, match="can only be incremented monotonically by non-negative values"
        ):
            response_of_number(server.engine, "measured", -1)
        (family,) = made(server.engine)
        assert (family.name, family.metrics[0].labels, family.metrics[0].value) == (
            "toys_counted",
            {"toy": "1"},
            6.0,
        )
        server.engine.unload_model("measured")
        eventually(lambda: not made(server.engine))
    assert counted == [1, 3, 6]


def test_a_forked_process_may_log_without_disturbing_the_worker(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tritonpy")
    model_repository.add("forking", config_of("forking", more=ISOLATED))
    with isolating(model_repository, ToyPlugin({"forking": ForkingBackend})) as server:
        assert [response_of_number(server.engine, "forking", number) for number in (1, 2)] == [2, 4]
        eventually(lambda: "logged by a child" in caplog.text)


def test_workers_ignore_signals_sent_to_all_processes(model_repository: ModelRepository) -> None:
    model_repository.add("who", config_of("introvert", more=ISOLATED))
    with isolating(model_repository, ToyPlugin({"introvert": ProcessInspector})) as server:
        pid = response_of_number(server.engine, "who", ProcessInspector.PID)
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
        assert response_of_number(server.engine, "who", ProcessInspector.PID) == pid


def test_many_megabytes_are_transferred_in_both_directions(
    model_repository: ModelRepository,
) -> None:
    size = 1 << 18
    model_repository.add("double", config_of("doubler", dims=size, more=ISOLATED))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"doubler": Doubler})) as server:
        for number in range(40):
            request = ask(server.engine, recorder, "double", [number + 100] * size)
            (answer,) = numbers(*recorder.wait(request))
            assert (len(answer), answer[0], answer[-1]) == (
                size,
                2 * number + 200,
                2 * number + 200,
            )
            recorder = RecordingSink()


def test_every_request_gets_one_response_while_processes_die(
    model_repository: ModelRepository,
) -> None:
    model_repository.add(
        "fragile", config_of("fragile", batch=4, instances=2, more=ISOLATED + "dynamic_batching {}")
    )
    recorder, deaths = (
        RecordingSink(),
        {10: CrashingBackend.KILLED, 35: CrashingBackend.EXITED, 60: CrashingBackend.KILLED},
    )
    with isolating(
        model_repository,
        ToyPlugin({"fragile": CrashingBackend}, {"dynamic": ReschedulingScheduler}),
    ) as server:
        requests = [
            ask(server.engine, recorder, "fragile", [[deaths.get(number, number)]])
            for number in range(100)
        ]
        answers = recorder.wait(*requests, timeout_s=60)
        gauges = server.engine.gauges()["fragile", "1"]
    good = [number for number, each in enumerate(answers) if each[0].error is None]
    assert all(numbers(answers[number]) == [[2 * number]] for number in good)
    assert not set(good) & set(deaths)
    assert (gauges.pending, gauges.late_responses) == (0, 0)
    recorder.check(*requests)


def test_a_replaced_model_finishes_its_requests(model_repository: ModelRepository) -> None:
    decoupled = "model_transaction_policy { decoupled: true }"
    model_repository.add("many", config_of("repeat", more=ISOLATED + decoupled))
    recorder = RecordingSink()
    with isolating(model_repository, ToyPlugin({"repeat": Repeat}), control=EXPLICIT) as server:
        requests = []
        for _ in range(3):
            requests += [
                ask(server.engine, recorder, "many", [20], accepts_decoupled=True)
                for _ in range(10)
            ]
            server.engine.load_model("many")
        assert [len(each) for each in recorder.wait(*requests)] == [21] * 30
    recorder.check(*requests)
