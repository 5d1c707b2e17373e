"""Backends whose instances report their identity, and a server with one such model."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from tritonpy.api.backend import Array, Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_testing import RecordingSink, RunningServer
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_types import InferRequest

from ..toys.isolated import isolating
from ..toys.serving import ToyPlugin, ask, config_of

_clock = itertools.count(1)
BASE = config_of("counting").replace("instance_group { count: 1 kind: KIND_CPU }", "")
ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'


class CountingBackend(Backend):
    """Returns (index of the instance, number of its requests, process id).

    Instances of the group "broken" raise when created, and those of "broken in 2" raise in version
    2.
    """

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        if instance.name.startswith("broken_") or (
            instance.name.startswith("broken in 2") and model.version == 2
        ):
            raise ValueError("this group is broken")
        self.count = 0

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self.count += 1
        return {"OUT": np.array([self.instance.index, self.count, os.getpid()], np.int32)}


class MonitoredBackend(CountingBackend):
    """Runs in the server's process and records its instances in `open`.

    Executions wait while `gate` is closed, and new instances while `creation_gate` is.
    """

    open: ClassVar[list[str]] = []
    changed: ClassVar[threading.Condition] = threading.Condition()
    gate: ClassVar[threading.Event] = threading.Event()
    creation_gate: ClassVar[threading.Event] = threading.Event()
    inside: ClassVar[int] = 0
    created: ClassVar[int] = 0  # instances, including those being created

    @classmethod
    def begin(cls) -> None:
        """Reset the state; both gates are open."""
        cls.open, cls.inside, cls.created = [], 0, 0
        cls.gate.set()
        cls.creation_gate.set()

    @classmethod
    def wait(cls, condition: Any) -> None:
        """Wait until `condition()` is true."""
        with cls.changed:
            assert cls.changed.wait_for(condition, 10), f"open: {cls.open}, inside: {cls.inside}"

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        with MonitoredBackend.changed:
            MonitoredBackend.created += 1
            MonitoredBackend.changed.notify_all()
        assert MonitoredBackend.creation_gate.wait(10)
        super().__init__(model, instance)
        with MonitoredBackend.changed:
            MonitoredBackend.open.append(instance.name)
            MonitoredBackend.changed.notify_all()

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        with MonitoredBackend.changed:
            MonitoredBackend.inside += 1
            MonitoredBackend.changed.notify_all()
        assert MonitoredBackend.gate.wait(10)
        with MonitoredBackend.changed:
            MonitoredBackend.inside -= 1
        return super().infer(inputs)

    def close(self) -> None:
        with MonitoredBackend.changed:
            MonitoredBackend.open.remove(self.instance.name)
            MonitoredBackend.changed.notify_all()


def groups(*texts: str, more: str = "") -> str:
    """Return a configuration with these instance groups."""
    return (
        BASE + "".join([f"instance_group {{ kind: KIND_CPU {text} }}\n" for text in texts]) + more
    )


def write(repository: ModelRepository, config: str) -> None:
    """Write the model's configuration with a unique modification time."""
    path = repository.add("m", config) / "config.pbtxt"
    timestamp = next(_clock)
    os.utime(path, (timestamp, timestamp))


@contextmanager
def serve_counting(
    repository: ModelRepository, kind: type[Backend] = CountingBackend, **settings: Any
) -> Iterator[RunningServer]:
    """Serve the model "m" of `repository`."""
    settings = {"control": {"mode": "explicit", "load": ["m"]}} | settings
    with isolating(repository, ToyPlugin({"counting": kind}), **settings) as server:
        yield server


def infer_many(server: RunningServer, recorder: RecordingSink, count: int = 1) -> list[list[int]]:
    """Send `count` requests in order; return their results."""
    return [infer_result(recorder, ask(server.engine, recorder, "m", [1])) for _ in range(count)]


def infer_result(recorder: RecordingSink, request: InferRequest) -> list[int]:
    """Return the result of `request`. Raises its error."""
    ((response,),) = recorder.wait(request)
    if response.error is not None:
        raise response.error
    return [int(number) for number in response.outputs[0].numpy()]


def instance_counts(server: RunningServer) -> list[int]:
    """Return the instance counts in the current configuration."""
    return [group.count for group in server.engine.model_config("m").instance_group]
