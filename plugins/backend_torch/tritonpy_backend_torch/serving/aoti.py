"""AOTInductor packages: models compiled to a library."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import torch
from torch._inductor.package import load_package

from tritonpy import InvalidArgument
from tritonpy_backend_torch.aoti_signature import aoti_signature, input_infos
from tritonpy_backend_torch.archive import Records, records
from tritonpy_backend_torch.exported_signature import exported_signature, program_of
from tritonpy_backend_torch.serving.network import Network, Opening
from tritonpy_backend_torch.serving.probing import with_outputs
from tritonpy_backend_torch.signature import Signature, TensorInfo

_FOLDER = "data/aotinductor/model/"


class CompiledNetwork(Network):
    """A compiled model: what it takes is in its package, what it returns shows when it runs."""

    def __init__(self, opening: Opening) -> None:
        path, device = opening.files.path, opening.device
        with records(path) as found:
            made_for = _check_fit(opening, found)
            program = exported_signature(program_of(found)) if found.below("models/") else None
            infos = _input_infos(found)
        index = -1 if device is None or device.index is None else device.index
        package = load_package(str(path), num_runners=opening.runners, device_index=index)
        self._run = package.loader.boxed_run
        in_spec, out_spec = package.loader.get_call_spec()
        signature = aoti_signature(in_spec, out_spec, infos, program)
        super().__init__(signature, None if made_for in ("", "cpu") else device or torch.device(made_for))

    def told(self) -> Signature:
        """Return the signature with its outputs, for which the model runs twice on zeros unless the package tells them."""
        return with_outputs(self.signature, self._run, self.home)

    def __call__(self, inputs: list[Any]) -> Any:
        return tuple(self._run(inputs))

    def weights(self) -> Iterable[Any]:
        return ()


def _input_infos(found: Records) -> list[TensorInfo] | None:
    sources = [name for name in found.below(_FOLDER) if name.endswith(".wrapper.cpp")]
    return input_infos(found.read(sources[0]).decode()) if len(sources) == 1 else None


def _check_fit(opening: Opening, found: Records) -> str:
    """Return the kind of device that the package was made for, empty where it does not say.

    Raises InvalidArgument where that is another one than the instance's, or where parameters ask for what is settled.
    """
    settings, path = opening.settings, opening.files.path
    if not found.below(_FOLDER):
        raise InvalidArgument(f"'{path}' holds no model called 'model'")
    if settings.precision != "fp32" or settings.channels_last or settings.compile is not None:
        raise InvalidArgument(
            f"'{path}' is compiled: its precision, layout and compilation are settled, remove the parameters that ask for others"
        )
    made_for = _device_of(found)
    wanted = "cpu" if opening.device is None else opening.device.type
    if opening.device is not None and made_for not in ("", wanted):
        raise InvalidArgument(f"'{path}' was compiled for {made_for}, the instance runs on {wanted}")
    return made_for


def _device_of(found: Records) -> str:
    for name in found.below(_FOLDER):
        if name.endswith("_metadata.json"):
            return str(json.loads(found.read(name)).get("AOTI_DEVICE_KEY", ""))
    return ""
