from __future__ import annotations

from types import SimpleNamespace

import pytest

from tritonpy import InvalidArgument, MemoryUsage
from tritonpy_backend_openvino.devices import (
    check_device,
    check_precision,
    select_device,
    weight_memory,
)
from tritonpy_backend_openvino.settings import model_settings

INTEL = ["CPU", "GPU.0", "GPU.1", "NPU"]


@pytest.mark.parametrize(
    ("kind", "target", "device"),
    [("CPU", "", "CPU"), ("CPU", "npu", "NPU"), ("MODEL", "", "AUTO"), ("MODEL", "GPU.1", "GPU.1")],
)
def test_the_configuration_chooses_the_device(kind, target, device):
    assert select_device(kind, model_settings({"TARGET_DEVICE": target}), "m") == device


def test_nvidias_devices_are_refused():
    with pytest.raises(InvalidArgument, match=r"supports only Kind CPU and AUTO$"):
        select_device("GPU", model_settings({}), "m")


@pytest.mark.parametrize(
    "device",
    [
        "CPU",
        "GPU",
        "GPU.1",
        "NPU",
        "AUTO",
        "AUTO:GPU,CPU",
        "AUTO:-GPU.0",
        "MULTI:GPU.0,CPU",
        "HETERO:NPU,CPU",
        "BATCH:GPU(16)",
    ],
)
def test_available_devices_are_accepted(device):
    check_device(device, INTEL, "m")


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("TPU", "TPU"),
        ("GPU.2", "GPU.2"),
        ("AUTO:CPU,VPU", "VPU"),
        ("BATCH:XPU(4)", "XPU"),
        ("AUTO:", ""),
    ],
)
def test_an_unknown_device_is_rejected_with_the_available_ones(device, name):
    with pytest.raises(InvalidArgument) as caught:
        check_device(device, INTEL, "m")
    assert caught.value.message == (
        f"unable to load model 'm', TARGET_DEVICE {device} names the unknown device '{name}', available devices are: CPU, GPU.0, GPU.1, NPU;"
        " and the virtual devices AUTO, MULTI, HETERO, BATCH"
    )


def compiled(*devices):
    return SimpleNamespace(get_property=lambda _name: list(devices))


CORE = SimpleNamespace(
    get_property=lambda device, _name: {"CPU": ["FP32", "BF16", "INT8"], "GPU.0": ["FP32", "FP16"]}[
        device
    ]
)


def test_every_device_must_support_the_precision():
    check_precision(compiled("CPU"), CORE, "bf16", "m")
    check_precision(compiled("(CPU)", "GPU.0"), CORE, "fp32", "m")
    with pytest.raises(
        InvalidArgument,
        match=r"^unable to load model 'm', device GPU.0 does not support bf16, only fp16, fp32$",
    ):
        check_precision(compiled("CPU", "GPU.0"), CORE, "bf16", "m")


@pytest.mark.parametrize(
    ("device", "usage"),
    [
        ("CPU", ("CPU", 0)),
        ("(CPU)", ("CPU", 0)),
        ("GPU.1", ("GPU", 1)),
        ("GPU", ("GPU", 0)),
        ("NPU", ("CPU", 0)),
    ],
)
def test_weights_lie_on_the_device(device, usage):
    nodes = [
        SimpleNamespace(get_type_name=lambda kind=kind: kind, get_byte_size=lambda: 8)
        for kind in ("Constant", "Add", "Constant")
    ]
    model = SimpleNamespace(get_ops=lambda: nodes)
    assert weight_memory(model, compiled(device)) == MemoryUsage(*usage, 16)
