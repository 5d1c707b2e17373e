"""A name that a plugin registered, and its class."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from tritonpy.errors import PluginError
from tritonpy.installation import install_command


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered name.

    `target` is a class, or "module:Class", which is imported when needed. `owner` is the
    distribution.
    """

    hook: str
    name: str
    target: type | str
    owner: str
    version: str

    def load(self) -> Any:
        """Return the class. Raises PluginError that names the owner if it cannot be imported."""
        if not isinstance(self.target, str):
            return self.target
        name, _, attribute = self.target.partition(":")
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise PluginError(
                f"plugin '{self.name}' of {self.owner} cannot be imported: {type(error).__name__}: {error}. "
                f"Reinstall it ({install_command(self.owner, reinstall=True)}) or disable it under 'plugins: disable:'."
            ) from error
        if not hasattr(module, attribute):
            raise PluginError(f"plugin '{self.name}' of {self.owner} names '{self.target}', which does not exist")
        return getattr(module, attribute)
