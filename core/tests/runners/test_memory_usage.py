"""Memory usage of models in the statistics, in threads and in worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core.tests.repository.instance_backends import groups, write
from core.tests.toys.doubler import Doubler
from core.tests.toys.heavy import OWN, WEIGHTS, HeavyBackend
from core.tests.toys.isolated import ISOLATED, isolating
from core.tests.toys.serving import ToyPlugin, ask
from plugins.workers.tests.backend_process.wire import eventually
from tritonpy.runners import memory_report
from tritonpy_testing import RecordingSink, RunningServer
from tritonpy_testing.model_repository import ModelRepository

IN_PROCESSES = pytest.mark.parametrize("where", ["", ISOLATED], ids=["threads", "processes"])
MIB = 1 << 20


@contextmanager
def serving(repository: ModelRepository) -> Iterator[RunningServer]:
    """Serve the model "m" of `repository`, loaded on request."""
    plugin = ToyPlugin({"counting": HeavyBackend, "toy": Doubler})
    with isolating(repository, plugin, control={"mode": "explicit", "load": ["m"]}) as server:
        yield server


def usage(server: RunningServer) -> dict[tuple[str, int], int]:
    (statistics,) = server.engine.statistics("m")
    return {(each.type, each.id): each.byte_size for each in statistics.memory_usage}


@IN_PROCESSES
def test_statistics_show_memory_of_instances_and_shared_memory(
    model_repository: ModelRepository, where: str
) -> None:
    write(model_repository, groups("count: 2", more=where))
    with serving(model_repository) as server:
        found = usage(server)
    shares = 2 if where else 1  # each process has loaded it
    on_host = found.pop(("CPU", 0))
    assert found == {("CPU_PINNED", 0): 10, ("GPU", 0): 2 * OWN, ("GPU", 1): shares * WEIGHTS}
    assert (10 * MIB < on_host < 1000 * MIB) if where else on_host == 14


@IN_PROCESSES
def test_memory_statistics_follow_changed_instances(
    model_repository: ModelRepository, where: str
) -> None:
    write(model_repository, groups("count: 1", more=where))
    with serving(model_repository) as server:
        seen = []
        for count in (3, 2):
            write(model_repository, groups(f"count: {count}", more=where))
            server.engine.load_model("m")
            seen.append(usage(server)["GPU", 0])
    assert seen == [3 * OWN, 2 * OWN]


@IN_PROCESSES
def test_memory_statistics_follow_later_allocations(
    model_repository: ModelRepository, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_report, "REFRESH_NS", 0)
    write(model_repository, groups("count: 1", more=where))
    recorder = RecordingSink()
    with serving(model_repository) as server:
        assert usage(server)["GPU", 0] == OWN
        recorder.wait(ask(server.engine, recorder, "m", [1]))
        eventually(lambda: usage(server)["GPU", 0] == OWN + 1)


def test_a_backend_whose_memory_report_fails_still_serves(
    model_repository: ModelRepository,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(HeavyBackend, "error", "unknown")
    write(model_repository, groups("count: 1"))
    recorder = RecordingSink()
    with serving(model_repository) as server:
        ((answer,),) = recorder.wait(ask(server.engine, recorder, "m", [1]))
        assert (answer.error, usage(server)) == (None, {})
    assert "its memory usage is unknown: ValueError: unknown" in caplog.text


def test_process_memory_follows_unload_and_reload(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_report, "REFRESH_NS", 0)
    write(model_repository, groups("count: 1", more=ISOLATED))
    with serving(model_repository) as server:
        runner = server.engine._table.find("m", 1).runner  # type: ignore[attr-defined]
        (instance,) = runner._instances.values()
        before = instance.worker.pid
        instance.worker.kill("the test wants it")
        eventually(lambda: instance.worker is not None and instance.worker.pid != before)
        eventually(lambda: usage(server).get(("GPU", 0)) == OWN)
        server.engine.unload_model("m")
        eventually(lambda: not server.engine.repository_index(ready=True))
        runner.measure_memory()
        assert list(runner.memory_usage()) == []


def test_a_backend_without_memory_methods_shows_no_memory(
    model_repository: ModelRepository,
) -> None:
    write(model_repository, groups("count: 2").replace("counting", "toy"))
    with serving(model_repository) as server:
        assert usage(server) == {}
