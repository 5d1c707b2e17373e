from __future__ import annotations

import asyncio
import base64
import threading

import pytest

from plugins.workers.tests.fake_worker import on_loop
from tritonpy_ipc import ProtocolError
from tritonpy_testing.recording_sink import WAIT_S
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types.errors import Internal, Unavailable
from tritonpy_workers.model_control import LoadMessage, ModelControl, ReadyMessage, UnloadMessage


class RecordingEngine(ToyEngine):
    """Records its calls; a load waits until `others` loads have begun."""

    def __init__(self, others=0):
        super().__init__()
        self.requested = []
        self._together = threading.Barrier(1 + others)

    def load_model(self, name, config=None, files=None):
        self._together.wait(WAIT_S)
        self.requested.append(("load", name, config, files))

    def unload_model(self, name, unload_dependents=False):
        self.requested.append(("unload", name, unload_dependents))

    def is_model_ready(self, name, version=-1):
        self.requested.append(("ready", name, version))
        return super().is_model_ready(name, version)


@on_loop
async def test_loads_and_unloads_reach_the_engine():
    engine = RecordingEngine()
    control = ModelControl(engine)
    await control.load(LoadMessage("m"))
    await control.load(
        LoadMessage("m", "{}", {"file:1/model.py": base64.b64encode(b"x\0").decode()})
    )
    await control.unload(UnloadMessage("m"))
    await control.unload(UnloadMessage("m", unload_dependents=True))
    assert engine.requested == [
        ("load", "m", None, None),
        ("load", "m", "{}", {"file:1/model.py": b"x\0"}),
        ("unload", "m", False),
        ("unload", "m", True),
    ]


@on_loop
async def test_many_loads_run_concurrently_without_blocking_the_loop():
    engine = RecordingEngine(others=99)
    control = ModelControl(engine)
    await asyncio.gather(*(control.load(LoadMessage(f"m{number}")) for number in range(100)))
    assert len(engine.requested) == 100


@on_loop
async def test_an_error_of_a_load_is_raised():
    control = ModelControl(ToyEngine([]))
    with pytest.raises(
        Internal, match=r"^failed to load 'm', failed to poll from model repository$"
    ):
        await control.load(LoadMessage("m"))


def test_a_file_with_invalid_base64_is_refused():
    for text in ("?", "abc", "ö"):
        with pytest.raises(ProtocolError, match="a file of model 'm' is not valid base64"):
            ModelControl(ToyEngine([])).load(LoadMessage("m", "", {"file:1/model.py": text}))


@on_loop
async def test_the_readiness_of_the_given_version_is_queried():
    engine = RecordingEngine()
    control = ModelControl(engine)
    assert [
        await control.is_ready(ReadyMessage("identity", version)) for version in (-1, 1, 7)
    ] == [True, True, False]
    assert await control.is_ready(ReadyMessage("identity"))
    assert [version for _, _, version in engine.requested] == [-1, 1, 7, -1]


@on_loop
async def test_an_unknown_model_is_not_ready():
    assert await ModelControl(ToyEngine([])).is_ready(ReadyMessage("m")) is False


@on_loop
async def test_an_error_of_the_server_is_raised():
    class Starting(ToyEngine):
        def is_model_ready(self, name, version=-1):
            raise Unavailable("Server not ready")

    with pytest.raises(Unavailable, match="Server not ready"):
        await ModelControl(Starting([])).is_ready(ReadyMessage("m"))
