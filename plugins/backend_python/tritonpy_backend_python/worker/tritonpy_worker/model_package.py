"""Modules of a model in a process with several models."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from .model_file import import_module

_NO_NAMES = ("__name__",)  # lets an import return the module itself, not its top-level package


class _Loader(SourceFileLoader):
    """Loads modules that use their model's builtins instead of Python's."""

    def __init__(self, name: str, path: str, own: Mapping[str, Any]) -> None:
        super().__init__(name, path)
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__dict__["__builtins__"] = self._own
        return module


class _Finder(MetaPathFinder):
    """Finds the modules of open packages. Python calls it for every import in the process."""

    def __init__(self) -> None:
        self.builtins: dict[str, Mapping[str, Any]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        own = self.builtins.get(fullname.partition(".")[0])
        if own is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, own)
        return spec


_FINDER = _Finder()


class ModelPackage:
    """A package with a unique name for the files in `folders`, so that models do not collide.

    Its code can import these files by absolute name, as if the folders were at the end of
    `sys.path`, which is not changed. Relative imports also work. Imports by a string (importlib,
    pickle) find the files only under the package's name. `extra` are additional builtins of the
    code.
    """

    def __init__(self, name: str, folders: Sequence[str], extra: Mapping[str, Any]) -> None:
        self.name = name
        self._folders = list(folders)
        self._owned: set[str] = set()
        self._builtins = {**vars(builtins), "__import__": self._import, **extra}

    def load(self, module: str) -> Any:
        """Import and return a module of the package. Raises exceptions of the import."""
        spec = ModuleSpec(self.name, None, is_package=True)
        spec.submodule_search_locations = self._folders
        sys.modules[self.name] = module_from_spec(spec)
        _FINDER.builtins[self.name] = self._builtins
        if _FINDER not in sys.meta_path:  # never removed: that would break concurrent imports
            sys.meta_path.insert(0, _FINDER)
        return import_module(f"{self.name}.{module}")

    def close(self) -> None:
        """Remove the modules. The next package with these folders reads the files again."""
        _FINDER.builtins.pop(self.name, None)
        for name in list(sys.modules):
            if name.partition(".")[0] == self.name:
                del sys.modules[name]
        for folder in self._folders:
            sys.path_importer_cache.pop(folder, None)

    def _import(
        self,
        name: str,
        globals: Any = None,  # noqa: A002 - the signature of the replaced function
        locals: Any = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        """Import a module for the package's code, which uses this method as `__import__`."""
        top = name.partition(".")[0]
        if level or not self._owns(top):
            return builtins.__import__(name, globals, locals, fromlist, level)
        module = builtins.__import__(f"{self.name}.{name}", globals, locals, fromlist or _NO_NAMES)
        return module if fromlist else sys.modules[f"{self.name}.{top}"]

    def _owns(self, top: str) -> bool:
        if top in self._owned:
            return True
        # Installed packages have priority, as in a worker.
        if top in sys.modules or find_spec(top) is not None:
            return False
        if PathFinder.find_spec(f"{self.name}.{top}", self._folders) is None:
            return False
        self._owned.add(top)
        return True
