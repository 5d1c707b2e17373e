"""A model's code in this process."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from tritonpy import ModelContext
from tritonpy_backend_python.arguments import model_message
from tritonpy_worker.host import HOST_OF_CODE, Host
from tritonpy_worker.model_file import class_file
from tritonpy_worker.model_package import ModelPackage

_NOT_OF_A_NAME = re.compile(r"\W")
_serial = count(1)


class LocalCode:
    """The modules of one instance. As in a worker, instances do not share modules.

    `path` is the file of its class. `extra` are additional builtins of the code. Raises
    `ModelContractError` if the file does not exist.
    """

    def __init__(self, model: ModelContext, host: Host, extra: Mapping[str, Any]) -> None:
        message = model_message(model)
        self.path = class_file(message["model_file"], message["backend_directory"])
        folder, file = os.path.split(self.path)
        folders = [folder] if message["backend_directory"] else [folder, os.path.dirname(folder)]
        name = f"tritonpy_model_{_NOT_OF_A_NAME.sub('_', host.name)}_{next(_serial)}"
        self._module = file.removesuffix(".py")
        self._package = ModelPackage(name, folders, {HOST_OF_CODE: host, **extra})

    def load(self) -> Any:
        """Import and return the module of the model's class. Raises the import's exceptions."""
        return self._package.load(self._module)

    def close(self) -> None:
        """Remove the modules."""
        self._package.close()
