"""AOTInductor packages: models compiled to a library."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import torch
from torch._inductor.package import load_package

from tritonpy import InvalidArgument
from tritonpy_backend_torch.aoti_signature import aoti_signature, input_infos
from tritonpy_backend_torch.archive import Records, open_records
from tritonpy_backend_torch.exported_signature import exported_signature, program_of
from tritonpy_backend_torch.pytorch.network import LoadSpec, Network
from tritonpy_backend_torch.pytorch.output_probe import probe_outputs
from tritonpy_backend_torch.signature import Signature, TensorInfo

_FOLDER = "data/aotinductor/model/"


class AotiNetwork(Network):
    """A compiled model.

    The package defines its inputs; outputs may be known only after a run.
    """

    def __init__(self, load_spec: LoadSpec) -> None:
        path, device = load_spec.files.path, load_spec.device
        with open_records(path) as found:
            made_for = _check_fit(load_spec, found)
            program = exported_signature(program_of(found)) if found.below("models/") else None
            infos = _input_infos(found)
        index = -1 if device is None or device.index is None else device.index
        package = load_package(str(path), num_runners=load_spec.runners, device_index=index)
        self._run = package.loader.boxed_run
        in_spec, out_spec = package.loader.get_call_spec()
        signature = aoti_signature(in_spec, out_spec, infos, program)
        super().__init__(
            signature, None if made_for in ("", "cpu") else device or torch.device(made_for)
        )

    def full_signature(self) -> Signature:
        """Return the signature with outputs.

        If the package does not describe them, the model runs twice on zeros.
        """
        return probe_outputs(self.signature, self._run, self.weight_device)

    def __call__(self, inputs: list[Any]) -> Any:
        return tuple(self._run(inputs))

    def weights(self) -> Iterable[Any]:
        return ()


def _input_infos(found: Records) -> list[TensorInfo] | None:
    sources = [name for name in found.below(_FOLDER) if name.endswith(".wrapper.cpp")]
    return input_infos(found.read(sources[0]).decode()) if len(sources) == 1 else None


def _check_fit(load_spec: LoadSpec, found: Records) -> str:
    """Return the device type that the package was compiled for, or "" if unknown.

    Raises `InvalidArgument` if the instance runs on another device type, or if parameters set
    properties that compilation fixed.
    """
    settings, path = load_spec.settings, load_spec.files.path
    if not found.below(_FOLDER):
        raise InvalidArgument(f"'{path}' contains no model named 'model'")
    if settings.precision != "fp32" or settings.channels_last or settings.compile is not None:
        raise InvalidArgument(
            f"'{path}' is compiled: remove the parameters that change its precision, "
            "layout or compilation"
        )
    made_for = _device_of(found)
    wanted = "cpu" if load_spec.device is None else load_spec.device.type
    if load_spec.device is not None and made_for not in ("", wanted):
        raise InvalidArgument(
            f"'{path}' was compiled for {made_for}, the instance runs on {wanted}"
        )
    return made_for


def _device_of(found: Records) -> str:
    for name in found.below(_FOLDER):
        if name.endswith("_metadata.json"):
            return str(json.loads(found.read(name)).get("AOTI_DEVICE_KEY", ""))
    return ""
