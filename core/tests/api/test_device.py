from __future__ import annotations

import pytest

from tritonpy.api.device import DeviceUnavailable, ModelMemory, NoDevice
from tritonpy_config.server.sections import DeviceSettings
from tritonpy_testing import DeviceContract
from tritonpy_types.errors import Unavailable


class TestNoDevice(DeviceContract):
    plugin_class = NoDevice


def test_a_model_has_host_memory_by_default() -> None:
    model = ModelMemory()
    assert (model.pinned_input, model.pinned_output, list(model.held()), model.has_pools) == (
        None,
        None,
        [],
        False,
    )
    with pytest.raises(Unavailable, match="on GPU 0: no such GPU"):
        model.on_device(0, 8)


def test_there_are_no_gpus_by_default() -> None:
    device = NoDevice()
    assert (device.ids, device.settings.min_supported_compute_capability) == ([], 7.5)


def test_the_pinned_pool_has_its_size_without_gpus_as_in_triton() -> None:
    families = NoDevice(DeviceSettings(pinned_memory_pool_byte_size=1024)).metrics()
    assert [
        (family.name, family.description, [each.value for each in family.metrics])
        for family in families
    ] == [
        (
            "nv_pinned_memory_pool_total_bytes",
            "Pinned memory pool total memory size, in bytes",
            [1024],
        ),
        ("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes", [0]),
    ]


def test_unknown_memory_names_the_package_to_install() -> None:
    for query in (NoDevice().monitor, lambda: NoDevice().memory(0)):
        with pytest.raises(
            DeviceUnavailable, match=r"no plugin provides device 'cuda': .*tritonpy-device-cuda"
        ):
            query()
