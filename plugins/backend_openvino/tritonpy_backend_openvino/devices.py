"""Selection and checks of OpenVINO devices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tritonpy import InvalidArgument, MemoryUsage
from tritonpy_backend_openvino.settings import ModelSettings

# Devices that select among the physical devices, or combine several of them.
VIRTUAL_DEVICES = ("AUTO", "MULTI", "HETERO", "BATCH")


def select_device(kind: str, settings: ModelSettings, model: str) -> str:
    """Return the device for an instance of `kind`: the model's TARGET_DEVICE, or else the CPU.

    KIND_MODEL lets OpenVINO choose. Raises `InvalidArgument` for KIND_GPU, which means NVIDIA GPUs.
    """
    if kind == "GPU":
        raise InvalidArgument(
            f"unable to load model '{model}', Triton OpenVINO backend supports only Kind CPU and "
            "AUTO"
        )
    return settings.device or ("AUTO" if kind == "MODEL" else "CPU")


def check_device(device: str, available: Sequence[str], model: str) -> None:
    """Raise `InvalidArgument` if `device`, such as `GPU.1` or `AUTO:GPU,CPU`, is not `available`.

    The error lists the available devices.
    """
    virtual, colon, listed = device.partition(":")
    names = [virtual, *listed.split(",")] if colon else [virtual]
    for name in names:
        plain = re.sub(r"\(\d+\)$", "", name.strip()).removeprefix("-")
        if plain in VIRTUAL_DEVICES or any(
            plain in (each, each.partition(".")[0]) for each in available
        ):
            continue
        raise InvalidArgument(
            f"unable to load model '{model}', TARGET_DEVICE {device} names the unknown device "
            f"'{plain}', available devices are: "
            f"{', '.join(available)}; and the virtual devices {', '.join(VIRTUAL_DEVICES)}"
        )


def check_precision(compiled: Any, core: Any, precision: str, model: str) -> None:
    """Raise `InvalidArgument` if a device of the model `compiled` does not support `precision`."""
    for device in compiled.get_property("EXECUTION_DEVICES"):
        has = core.get_property(device.strip("()"), "OPTIMIZATION_CAPABILITIES")
        if precision.upper() not in has:
            supported = ", ".join(
                sorted(each.lower() for each in has if each in {"FP32", "BF16", "FP16"})
            )
            raise InvalidArgument(
                f"unable to load model '{model}', device {device} does not support {precision}, "
                f"only {supported}"
            )


def weight_memory(model: Any, compiled: Any) -> MemoryUsage:
    """Return the size of the constants of `model`, on the first device that `compiled` runs on."""
    kind, _, number = compiled.get_property("EXECUTION_DEVICES")[0].strip("()").partition(".")
    size = sum(
        node.get_byte_size() for node in model.get_ops() if node.get_type_name() == "Constant"
    )
    return (
        MemoryUsage("GPU", int(number or 0), size) if kind == "GPU" else MemoryUsage("CPU", 0, size)
    )
