"""Unloading a model frees its memory."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from core.tests.repository.instance_backends import BASE, write
from core.tests.toys.isolated import isolating
from core.tests.toys.serving import ToyPlugin, ask
from tritonpy.api.backend import Array, Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.repository import draining
from tritonpy_testing import RecordingSink, RunningServer
from tritonpy_testing.model_repository import ModelRepository


class Weights:
    """A large object."""


class Weighty(Backend):
    """`alive` has the weights of the model and of its instances."""

    alive: ClassVar[weakref.WeakSet[Weights]] = weakref.WeakSet()

    @classmethod
    def load(cls, model: ModelContext) -> object:
        return cls._made()

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self.shared = model.shared
        self.own = self._made()

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"OUT": inputs["IN"]}

    @classmethod
    def _made(cls) -> Weights:
        made = Weights()
        cls.alive.add(made)
        return made


@pytest.fixture(autouse=True)
def _without_a_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def unload(server: RunningServer) -> None:
    server.engine.unload_model("m")
    assert server.server._repository._drainer.wait(10)


def used(server: RunningServer) -> int:
    """Run the model, and return the number of live weights."""
    recorder = RecordingSink()
    ((response,),) = recorder.wait(ask(server.engine, recorder, "m", [1]))
    assert response.error is None
    return len(Weighty.alive)


@pytest.mark.parametrize("load", [["m"], []], ids=["at start", "later"])
def test_unloading_frees_all_memory_of_a_model(
    model_repository: ModelRepository, load: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    returned: list[int] = []
    monkeypatch.setattr(draining, "return_free_memory", lambda: returned.append(len(Weighty.alive)))
    write(model_repository, BASE + "instance_group { count: 2 kind: KIND_CPU }")
    plugin = ToyPlugin({"counting": Weighty})
    with isolating(model_repository, plugin, control={"mode": "explicit", "load": load}) as server:
        for _ in range(3):
            server.engine.load_model("m")
            assert used(server) == 3
            unload(server)
            assert len(Weighty.alive) == 0
    assert returned == [0, 0, 0]


def test_reloading_frees_all_memory_of_the_replaced_version(
    model_repository: ModelRepository,
) -> None:
    write(model_repository, BASE + "instance_group { kind: KIND_CPU }")
    plugin = ToyPlugin({"counting": Weighty})
    with isolating(model_repository, plugin, control={"mode": "explicit", "load": ["m"]}) as server:
        write(
            model_repository,
            BASE + 'instance_group { kind: KIND_CPU } parameters { key: "new" value {} }',
        )
        server.engine.load_model("m")
        assert server.server._repository._drainer.wait(10)
        assert used(server) == 2
        write(
            model_repository,
            BASE + 'instance_group { kind: KIND_CPU count: 3 } parameters { key: "new" value {} }',
        )
        server.engine.load_model("m")
        assert used(server) == 4
        write(
            model_repository,
            BASE + 'instance_group { kind: KIND_CPU } parameters { key: "new" value {} }',
        )
        server.engine.load_model("m")
        until = time.monotonic() + 10
        while used(server) > 2 and time.monotonic() < until:
            pass  # removed instances may still be closing
        assert used(server) == 2
