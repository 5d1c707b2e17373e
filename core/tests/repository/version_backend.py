"""A backend that reports the file it was loaded from, and a log of its open handles."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy.api.backend import Array, Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import ModelRepository
from tritonpy_types.errors import TritonError, Unavailable

FILE = "model.txt"
_clock = itertools.count(1)


class EventLog:
    """The calls and open handles of all `VersionReporter` models of one test."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[tuple[str, str, int]] = []
        self.open_handles: list[tuple[str, int]] = []

    def record(self, event: str, model: ModelContext) -> None:
        """Record an event."""
        with self._changed:
            self._events.append((event, model.name, model.version))
            self._changed.notify_all()

    def events(self, *kinds: str) -> list[tuple[str, str, int]]:
        """Return the events of these kinds."""
        return [event for event in self._events if event[0] in kinds]

    def open_handle(self, key: tuple[str, int]) -> tuple[str, int]:
        """Count an open handle."""
        with self._changed:
            self.open_handles.append(key)
        return key

    def free_handle(self, key: tuple[str, int]) -> None:
        """Remove an open handle."""
        with self._changed:
            self.open_handles.remove(key)
            self._changed.notify_all()

    def wait_for_handles(self, *keys: tuple[str, int]) -> None:
        """Wait until exactly these handles are open."""
        with self._changed:
            assert self._changed.wait_for(lambda: sorted(self.open_handles) == sorted(keys), 10), (
                f"open: {self.open_handles}"
            )


def version_reporter(event_log: EventLog) -> type[Backend]:
    """Return a backend whose models return the number in their file, or their version.

    Words in the file make a model fail.
    """

    class VersionReporter(Backend):
        default_filenames = (FILE,)
        is_healthy = True

        @classmethod
        def auto_complete(cls, model: ModelContext) -> ModelConfig:
            event_log.record("auto_complete", model)
            model.shared = event_log.open_handle((model.name, model.version))
            if _text(model.path) == "cannot be completed":
                raise ValueError("no signature")
            config = ModelConfig()
            config.CopyFrom(model.config)
            if not config.input:
                config.input.add(name="IN", data_type="TYPE_INT32", dims=[1])
                config.output.add(name="OUT", data_type="TYPE_INT32", dims=[1])
            return config

        @classmethod
        def load(cls, model: ModelContext) -> object:
            event_log.record("load", model)
            if _text(model.path) == "cannot be loaded":
                raise ValueError("no weights")
            if _text(model.path) == "is not there":
                raise Unavailable("the weights are on their way")
            return model.shared or event_log.open_handle((model.name, model.version))

        def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
            if _text(model.path) == "has no instance":
                raise ValueError("no memory")
            super().__init__(model, instance)
            text = _text(model.path)
            self.number = int(text) if text.isdigit() else model.version

        def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            return {"OUT": np.full_like(inputs["IN"], self.number)}

        def is_ready(self) -> bool:
            return type(self).is_healthy

        @classmethod
        def unload(cls, shared: Any) -> None:
            event_log.free_handle(shared)

    return VersionReporter


def _text(path: Path) -> str:
    file = path / FILE
    return file.read_text() if file.is_file() else ""


def write(
    repository: ModelRepository,
    name: str,
    text: object = "",
    version: int = 1,
    config: str | None = None,
) -> None:
    """Write a version of a model with unique modification times."""
    folder = repository.add(name, config, versions={version: {FILE: str(text)}})
    for path in (folder / str(version) / FILE, folder / "config.pbtxt"):
        if path.exists():
            timestamp = next(_clock)
            os.utime(path, (timestamp, timestamp))


def index(server, ready=False):
    return [
        (line.name, line.version, line.state, line.reason)
        for line in server.engine.repository_index(ready)
    ]


def error_of(call, *arguments):
    with pytest.raises(TritonError) as failed:
        call(*arguments)
    return failed.value
