"""Programs of torch.export."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from torch.export.passes import move_to_device_pass
from torch.utils import _pytree as pytree

from tritonpy import InvalidArgument
from tritonpy_backend_torch.archive import Records, open_records
from tritonpy_backend_torch.exported_signature import exported_signature, program_of
from tritonpy_backend_torch.pytorch.network import LoadSpec, Network
from tritonpy_backend_torch.pytorch.pickles import REFUSAL, is_harmless
from tritonpy_backend_torch.pytorch.programs import read_program
from tritonpy_backend_torch.pytorch.torch_compile import compile_module
from tritonpy_backend_torch.pytorch.weight_memory import find_weight_device

# PyTorch keeps state of a load in a global and rejects concurrent loads, but instances load in
# parallel.
_load_lock = threading.Lock()


class ExportedNetwork(Network):
    """A torch.export program, run as a module; compiled if the model enables it."""

    def __init__(self, load_spec: LoadSpec) -> None:
        path = load_spec.files.path
        with open_records(path) as found:
            signature = exported_signature(program_of(found))
            if not load_spec.settings.allow_pickles:
                check_pickles(path, found)
        with _load_lock:
            program = read_program(path)
            if load_spec.device is not None and load_spec.device.type != "cpu":
                program = move_to_device_pass(program, load_spec.device)
            module = program.module()
        self._program = program
        self._in_spec = program.call_spec.in_spec
        self._module = (
            module
            if load_spec.settings.compile is None
            else compile_module(module, load_spec.settings.compile)
        )
        super().__init__(signature, find_weight_device(self.weights()))

    def __call__(self, inputs: list[Any]) -> Any:
        arguments, named = pytree.tree_unflatten(inputs, self._in_spec)
        return tuple(pytree.tree_leaves(self._module(*arguments, **named)))

    def weights(self) -> Iterable[Any]:
        return chain(self._program.state_dict.values(), self._program.constants.values())


def check_pickles(path: Path, found: Records) -> None:
    """Raise `InvalidArgument` if a pickle in the archive would execute code."""
    pickles = [name for name in found.below("") if name.endswith(".pt")]
    for folder in ("data/weights/", "data/constants/"):
        for config in found.below(folder):
            if config.endswith(".json"):
                entries = json.loads(found.read(config)).get("config", {}).values()
                pickles += [folder + entry["path_name"] for entry in entries if entry["use_pickle"]]
    for name in pickles:
        if not is_harmless(io.BytesIO(found.read(name))):
            raise InvalidArgument(REFUSAL % f"The pickle '{name}' in '{path}'")
