"""Which of OpenVINO's devices a model runs on, and what they can compute in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tritonpy import InvalidArgument, MemoryUsage
from tritonpy_backend_openvino.settings import Settings

# They choose among the devices that there are, or put several of them to work.
VIRTUAL = ("AUTO", "MULTI", "HETERO", "BATCH")


def device_for(kind: str, settings: Settings, model: str) -> str:
    """Return the device for an instance of `kind`: the model's TARGET_DEVICE, or else the CPU; KIND_MODEL leaves the choice to OpenVINO.

    Raises InvalidArgument for KIND_GPU, which means NVIDIA's.
    """
    if kind == "GPU":
        raise InvalidArgument(
            f"unable to load model '{model}', Triton OpenVINO backend supports only Kind CPU and AUTO"
        )
    return settings.device or ("AUTO" if kind == "MODEL" else "CPU")


def check_device(device: str, available: Sequence[str], model: str) -> None:
    """Raise InvalidArgument where `device`, such as `GPU.1` or `AUTO:GPU,CPU`, names one that is not `available`, listing what there is."""
    virtual, colon, listed = device.partition(":")
    names = [virtual, *listed.split(",")] if colon else [virtual]
    for name in names:
        plain = re.sub(r"\(\d+\)$", "", name.strip()).removeprefix("-")
        if plain in VIRTUAL or any(plain in (each, each.partition(".")[0]) for each in available):
            continue
        raise InvalidArgument(
            f"unable to load model '{model}', TARGET_DEVICE {device} names the device '{plain}', and OpenVINO has here: "
            f"{', '.join(available)}; and over these {', '.join(VIRTUAL)}"
        )


def check_precision(compiled: Any, core: Any, precision: str, model: str) -> None:
    """Raise InvalidArgument where a device that `compiled` runs on cannot compute in `precision`."""
    for device in compiled.get_property("EXECUTION_DEVICES"):
        has = core.get_property(device.strip("()"), "OPTIMIZATION_CAPABILITIES")
        if precision.upper() not in has:
            able = ", ".join(sorted(each.lower() for each in has if each in {"FP32", "BF16", "FP16"}))
            raise InvalidArgument(
                f"unable to load model '{model}', device {device} cannot compute in {precision}: it has {able}"
            )


def weights_of(model: Any, compiled: Any) -> MemoryUsage:
    """Return the bytes of the constants of `model`, where the first device lies that `compiled` runs on."""
    kind, _, number = compiled.get_property("EXECUTION_DEVICES")[0].strip("()").partition(".")
    size = sum(node.get_byte_size() for node in model.get_ops() if node.get_type_name() == "Constant")
    return MemoryUsage("GPU", int(number or 0), size) if kind == "GPU" else MemoryUsage("CPU", 0, size)
