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
from tritonpy_backend_torch.archive import Records, records
from tritonpy_backend_torch.exported_signature import exported_signature, program_of
from tritonpy_backend_torch.serving.compiling import compiled
from tritonpy_backend_torch.serving.homes import home_of
from tritonpy_backend_torch.serving.network import Network, Opening
from tritonpy_backend_torch.serving.pickles import REFUSED, is_harmless
from tritonpy_backend_torch.serving.programs import read_program

# PyTorch keeps what it reads in a global, and refuses a second program meanwhile; instances load at the same time.
_ONE_AT_A_TIME = threading.Lock()


class ExportedNetwork(Network):
    """A program of torch.export, as the module that it came from; compiled where the model asks for it."""

    def __init__(self, opening: Opening) -> None:
        path = opening.files.path
        with records(path) as found:
            signature = exported_signature(program_of(found))
            if not opening.settings.allow_pickles:
                check_pickles(path, found)
        with _ONE_AT_A_TIME:
            program = read_program(path)
            if opening.device is not None and opening.device.type != "cpu":
                program = move_to_device_pass(program, opening.device)
            module = program.module()
        self._program = program
        self._in_spec = program.call_spec.in_spec
        self._module = module if opening.settings.compile is None else compiled(module, opening.settings.compile)
        super().__init__(signature, home_of(self.weights()))

    def __call__(self, inputs: list[Any]) -> Any:
        arguments, named = pytree.tree_unflatten(inputs, self._in_spec)
        return tuple(pytree.tree_leaves(self._module(*arguments, **named)))

    def weights(self) -> Iterable[Any]:
        return chain(self._program.state_dict.values(), self._program.constants.values())


def check_pickles(path: Path, found: Records) -> None:
    """Raise InvalidArgument where loading the archive would run code that a pickle in it brings along."""
    pickles = [name for name in found.below("") if name.endswith(".pt")]
    for folder in ("data/weights/", "data/constants/"):
        for config in found.below(folder):
            if config.endswith(".json"):
                entries = json.loads(found.read(config)).get("config", {}).values()
                pickles += [folder + entry["path_name"] for entry in entries if entry["use_pickle"]]
    for name in pickles:
        if not is_harmless(io.BytesIO(found.read(name))):
            raise InvalidArgument(REFUSED % f"'{path}' holds the pickle '{name}', which")
