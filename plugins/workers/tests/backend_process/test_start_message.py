from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

from core.tests.toys.device import ToyDevice
from plugins.workers.tests.backend_process.wire import context
from tritonpy.api.contexts import InstanceContext
from tritonpy_config.server.sections import DeviceSettings
from tritonpy_ipc import VERSION
from tritonpy_types.errors import Internal
from tritonpy_workers.backend_process.start_message import InstanceStartMessage

MESSAGE = {"version": VERSION, "kind": "backend"}


def test_a_start_message_is_decoded_as_encoded() -> None:
    model, _ = context()
    model.parameters = {"key": "value"}
    model.backend_directory = Path("/backends/mine")
    model.gpus = ToyDevice(DeviceSettings(pinned_memory_pool_byte_size=8), [1])
    start = InstanceStartMessage.of(
        model, "module:Class", InstanceContext("caller_0_1", "GPU", 2, 1, ("fast", "small"))
    )
    read = InstanceStartMessage.read(json.loads(json.dumps(msgspec.to_builtins(start))))
    assert read == start
    assert (read.model.device, read.model.gpus) == ("core.tests.toys.device:ToyDevice", [1])
    assert read.model.devices.pinned_memory_pool_byte_size == 8
    assert read.search == sys.path
    assert read.model.parsed_config() == model.config
    assert read.model.backend_folder() == Path("/backends/mine")
    made = read.instance.context()
    assert (made.name, made.kind, made.device_id, made.index, made.profiles, made.max_open) == (
        "caller_0_1", "GPU", 2, 1, ("fast", "small"), None,
    )  # fmt: skip


@pytest.mark.parametrize("payload", [{"version": VERSION + 1}, {"kind": "python"}])
def test_another_version_of_the_server_is_refused(payload: dict[str, object]) -> None:
    with pytest.raises(Internal, match="was tritonpy replaced while the server ran"):
        InstanceStartMessage.read(MESSAGE | payload)
