"""What the statistics say of the memory of models, in threads and in processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core.tests.repository.staff import groups, write
from core.tests.runners.workers.backend_process.wire import eventually
from core.tests.toys.doubler import Doubler
from core.tests.toys.heavy import OWN, WEIGHTS, Heavy
from core.tests.toys.isolated import ISOLATED, isolating
from core.tests.toys.serving import ToyPlugin, ask
from tritonpy.runners import memory_report
from tritonpy.testing import RunningServer, Witness
from tritonpy.testing.model_repository import ModelRepository

IN_PROCESSES = pytest.mark.parametrize("where", ["", ISOLATED], ids=["threads", "processes"])
MIB = 1 << 20


@contextmanager
def serving(repository: ModelRepository) -> Iterator[RunningServer]:
    """Serve the model "m" of `repository`, loaded on request."""
    plugin = ToyPlugin({"staff": Heavy, "toy": Doubler})
    with isolating(repository, plugin, control={"mode": "explicit", "load": ["m"]}) as server:
        yield server


def usage(server: RunningServer) -> dict[tuple[str, int], int]:
    (statistics,) = server.engine.statistics("m")
    return {(each.type, each.id): each.byte_size for each in statistics.memory_usage}


@IN_PROCESSES
def test_a_loaded_model_shows_what_its_instances_hold_and_what_they_share(
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
def test_it_follows_the_instances_when_they_change_in_place(model_repository: ModelRepository, where: str) -> None:
    write(model_repository, groups("count: 1", more=where))
    with serving(model_repository) as server:
        seen = []
        for count in (3, 2):
            write(model_repository, groups(f"count: {count}", more=where))
            server.engine.load_model("m")
            seen.append(usage(server)["GPU", 0])
    assert seen == [3 * OWN, 2 * OWN]


@IN_PROCESSES
def test_it_follows_what_the_instances_come_to_hold(
    model_repository: ModelRepository, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_report, "REFRESH_NS", 0)
    write(model_repository, groups("count: 1", more=where))
    witness = Witness()
    with serving(model_repository) as server:
        assert usage(server)["GPU", 0] == OWN
        witness.wait(ask(server.engine, witness, "m", [1]))
        eventually(lambda: usage(server)["GPU", 0] == OWN + 1)


def test_a_backend_that_fails_to_tell_is_served_all_the_same(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Heavy, "lie", "nobody knows")
    write(model_repository, groups("count: 1"))
    witness = Witness()
    with serving(model_repository) as server:
        ((answer,),) = witness.wait(ask(server.engine, witness, "m", [1]))
        assert (answer.error, usage(server)) == (None, {})
    assert "its memory usage is not known: ValueError: nobody knows" in caplog.text


def test_a_process_tells_nothing_when_its_model_is_gone_and_shows_what_it_is_when_it_was_started_again(
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


def test_a_backend_that_says_nothing_costs_and_shows_nothing(model_repository: ModelRepository) -> None:
    write(model_repository, groups("count: 2").replace("staff", "toy"))
    with serving(model_repository) as server:
        assert usage(server) == {}
