from __future__ import annotations

import asyncio
import base64
import threading

import pytest

from core.tests.runners.workers.fake_worker import on_loop
from tritonpy.errors import Internal, Unavailable
from tritonpy.ipc import ProtocolError
from tritonpy.runners.workers.model_control import LoadSaid, ModelControl, ReadySaid, UnloadSaid
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import PATIENCE_S


class Noting(ToyEngine):
    """Notes what it is asked; a load waits until `others` loads have begun."""

    def __init__(self, others=0):
        super().__init__()
        self.asked = []
        self._together = threading.Barrier(1 + others)

    def load_model(self, name, config=None, files=None):
        self._together.wait(PATIENCE_S)
        self.asked.append(("load", name, config, files))

    def unload_model(self, name, unload_dependents=False):
        self.asked.append(("unload", name, unload_dependents))

    def is_model_ready(self, name, version=-1):
        self.asked.append(("ready", name, version))
        return super().is_model_ready(name, version)


@on_loop
async def test_loads_and_unloads_reach_the_engine():
    engine = Noting()
    control = ModelControl(engine)
    await control.load(LoadSaid("m"))
    await control.load(LoadSaid("m", "{}", {"file:1/model.py": base64.b64encode(b"x\0").decode()}))
    await control.unload(UnloadSaid("m"))
    await control.unload(UnloadSaid("m", unload_dependents=True))
    assert engine.asked == [
        ("load", "m", None, None),
        ("load", "m", "{}", {"file:1/model.py": b"x\0"}),
        ("unload", "m", False),
        ("unload", "m", True),
    ]


@on_loop
async def test_any_number_of_loads_wait_at_once_and_the_loop_does_not():
    engine = Noting(others=99)
    control = ModelControl(engine)
    await asyncio.gather(*(control.load(LoadSaid(f"m{number}")) for number in range(100)))
    assert len(engine.asked) == 100


@on_loop
async def test_what_a_load_raises_is_raised():
    control = ModelControl(ToyEngine([]))
    with pytest.raises(Internal, match=r"^failed to load 'm', failed to poll from model repository$"):
        await control.load(LoadSaid("m"))


def test_a_file_that_is_not_in_base64_is_no_file():
    for text in ("?", "abc", "ö"):
        with pytest.raises(ProtocolError, match="a file of model 'm' is not in base64"):
            ModelControl(ToyEngine([])).load(LoadSaid("m", "", {"file:1/model.py": text}))


@on_loop
async def test_the_version_is_the_one_that_is_asked_for():
    engine = Noting()
    control = ModelControl(engine)
    assert [await control.is_ready(ReadySaid("identity", version)) for version in (-1, 1, 7)] == [True, True, False]
    assert await control.is_ready(ReadySaid("identity"))
    assert [version for _, _, version in engine.asked] == [-1, 1, 7, -1]


@on_loop
async def test_a_model_that_nobody_knows_is_not_ready():
    assert await ModelControl(ToyEngine([])).is_ready(ReadySaid("m")) is False


@on_loop
async def test_a_server_that_is_not_ready_says_so():
    class Starting(ToyEngine):
        def is_model_ready(self, name, version=-1):
            raise Unavailable("Server not ready")

    with pytest.raises(Unavailable, match="Server not ready"):
        await ModelControl(Starting([])).is_ready(ReadySaid("m"))
