from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tritonpy.server.server import Server
from tritonpy_testing import ModelRepository, RecordingSink

from ..toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins
from .version_backend import EventLog, version_reporter

Serve = Callable[..., AbstractContextManager[Server]]


@pytest.fixture
def event_log() -> EventLog:
    return EventLog()


@pytest.fixture
def serve(model_repository: ModelRepository, event_log: EventLog) -> Serve:
    """Serve the repository of the test with the version reporter; explicit mode by default."""

    def start(
        *plugins: object, mode: str = "explicit", **settings: Any
    ) -> AbstractContextManager[Server]:
        control = {"mode": mode} | settings.pop("control", {})
        found = toy_plugins(ToyPlugin({"version_reporter": version_reporter(event_log)}), *plugins)
        return serving(model_repository, found, control=control, **settings)

    return start


@pytest.fixture
def recorder() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def number(recorder):
    """Return the number in the file that a model was loaded from."""

    def get(server, model, version=-1):
        (responses,) = recorder.wait(
            ask(server.engine, recorder, model, [0], model_version=version)
        )
        ((value,),) = numbers(responses)
        return value

    return get
