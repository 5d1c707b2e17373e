"""Backends whose instances tell who they are, in threads and in processes, and a server of one such model."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from tritonpy.api.backend import Array, Backend, InstanceContext, ModelContext
from tritonpy.testing import RunningServer, Witness
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.types import InferRequest

from ..toys.isolated import isolating
from ..toys.serving import ToyPlugin, ask, config_of

_clock = itertools.count(1)
BASE = config_of("staff").replace("instance_group { count: 1 kind: KIND_CPU }", "")
ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'


class Staff(Backend):
    """OUT is (index of the instance, how many requests it has had, process). A group of the name "broken" cannot be made, one of the name
    "broken in 2" not in version 2."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        if instance.name.startswith("broken_") or (instance.name.startswith("broken in 2") and model.version == 2):
            raise ValueError("nobody wants this place")
        self.count = 0

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self.count += 1
        return {"OUT": np.array([self.instance.index, self.count, os.getpid()], np.int32)}


class Watched(Staff):
    """In the server's own process: `open` are the instances there are, executions wait while `gate` is closed."""

    open: ClassVar[list[str]] = []
    changed: ClassVar[threading.Condition] = threading.Condition()
    gate: ClassVar[threading.Event] = threading.Event()
    birth: ClassVar[threading.Event] = threading.Event()
    inside: ClassVar[int] = 0
    begun: ClassVar[int] = 0  # instances, also those that are not made yet

    @classmethod
    def begin(cls) -> None:
        """Forget everything; both gates are open."""
        cls.open, cls.inside, cls.begun = [], 0, 0
        cls.gate.set()
        cls.birth.set()

    @classmethod
    def wait(cls, condition: Any) -> None:
        """Wait until `condition()` holds, whatever instances do."""
        with cls.changed:
            assert cls.changed.wait_for(condition, 10), f"open: {cls.open}, inside: {cls.inside}"

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        with Watched.changed:
            Watched.begun += 1
            Watched.changed.notify_all()
        assert Watched.birth.wait(10)
        super().__init__(model, instance)
        with Watched.changed:
            Watched.open.append(instance.name)
            Watched.changed.notify_all()

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        with Watched.changed:
            Watched.inside += 1
            Watched.changed.notify_all()
        assert Watched.gate.wait(10)
        with Watched.changed:
            Watched.inside -= 1
        return super().infer(inputs)

    def close(self) -> None:
        with Watched.changed:
            Watched.open.remove(self.instance.name)
            Watched.changed.notify_all()


def groups(*texts: str, more: str = "") -> str:
    """Return a configuration with these instance groups."""
    return BASE + "".join([f"instance_group {{ kind: KIND_CPU {text} }}\n" for text in texts]) + more


def write(repository: ModelRepository, config: str) -> None:
    """Write the model's configuration; each write has a time of its own, however quick they follow each other."""
    path = repository.add("m", config) / "config.pbtxt"
    moment = next(_clock)
    os.utime(path, (moment, moment))


@contextmanager
def staffed(repository: ModelRepository, kind: type[Backend] = Staff, **settings: Any) -> Iterator[RunningServer]:
    """Serve the model "m" of `repository`, loaded on request."""
    settings = {"control": {"mode": "explicit", "load": ["m"]}} | settings
    with isolating(repository, ToyPlugin({"staff": kind}), **settings) as server:
        yield server


def answers(server: RunningServer, witness: Witness, count: int = 1) -> list[list[int]]:
    """Ask one after the other; return what each was told."""
    return [told(witness, ask(server.engine, witness, "m", [1])) for _ in range(count)]


def told(witness: Witness, request: InferRequest) -> list[int]:
    """Return what `request` was told; raises the error that it was answered."""
    ((answer,),) = witness.wait(request)
    if answer.error is not None:
        raise answer.error
    return [int(number) for number in answer.outputs[0].numpy()]


def counts(server: RunningServer) -> list[int]:
    """Return the counts of the configuration that holds."""
    return [group.count for group in server.engine.model_config("m").instance_group]
