"""The registered backends: their classes, options, and model files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tritonpy.api.backend import Backend
from tritonpy.plugins.manager import PluginManager
from tritonpy_config.backend_folders import MODEL_FILE, BackendFolders, is_library
from tritonpy_config.known_backends import KNOWN_FORMATS, BackendFiles
from tritonpy_config.options import Options
from tritonpy_config.server import decode_options
from tritonpy_types.errors import PluginError

log = logging.getLogger("tritonpy.plugins")

HOOK = "tritonpy_backends"
ISOLATION = "isolation"
DEFAULT_MAX_BATCH_SIZE = 4  # Triton's default for models that can batch and have no maximum
PYTHON, C = "python", "c"
"""The backends that execute others: those in folders, and libraries of the C interface."""


class IsolationOption(Options, frozen=True):
    """The option of every backend that the server itself reads."""

    isolation: Annotated[
        Literal["process", "thread"] | None,
        msgspec.Meta(
            description="Where instances of models without the parameter `isolation` run."
        ),
    ] = None


class Backends:
    """Finds a backend by name and decodes its options from server.yaml.

    A name without a plugin may be a Python-based backend or a library of the C interface, which the
    backends `python` and `c` execute. `runtime` comes from the model configuration: "model.py" and
    the name of a library select those, even if a plugin has the name.
    """

    def __init__(
        self,
        plugins: PluginManager,
        options: Mapping[str, Mapping[str, Any]],
        defaults: Mapping[str, Any],
        folders: BackendFolders | None = None,
    ) -> None:
        self._plugins = plugins
        self._options = options
        self._defaults = {_key(key): value for key, value in defaults.items()}
        self._spelling = {_key(key): key for key in defaults}
        self.folders = folders or BackendFolders()
        self._decoded: dict[tuple[str, str], tuple[Options, str | None]] = {}

    def get(self, name: str, runtime: str = "") -> type[Backend]:
        """Return the class. Raises PluginError that names the package to install."""
        executor = self.executor(name, runtime)
        try:
            return self._registered(executor)
        except PluginError as error:
            if executor == name:
                raise
            language = "Python" if executor == PYTHON else "C"
            raise PluginError(
                f"the backend in {self.folders.folder(name)} is written in {language}, and {error}"
            ) from error

    def executor(self, name: str, runtime: str = "") -> str:
        """Return the registered name of the backend that executes the models of `name`."""
        is_plugin = name in self._plugins.table(HOOK)
        names_library = is_library(runtime)
        if (names_library and not is_plugin) or (
            (names_library or not (runtime or is_plugin))
            and self.folders.has_library(name, runtime)
        ):
            return C
        if runtime == MODEL_FILE or not (runtime or is_plugin):
            return PYTHON if self.folders.has(name) else name
        return name

    def folder(self, name: str, runtime: str = "") -> Path | None:
        """Return the folder of a backend that another one executes; None for a plugin's own."""
        return None if self.executor(name, runtime) == name else self.folders.folder(name)

    def options(self, name: str, runtime: str = "") -> Options:
        """Return the options of the backend `name`.

        A Python-based backend inherits those of the Python backend.

        Raises InvalidServerConfig.
        """
        return self._settings(name, runtime)[0]

    def isolation(self, name: str, runtime: str = "") -> str | None:
        """Return where instances of the backend's models run: "process", "thread", or None.

        None means that neither is configured.
        """
        return self._settings(name, runtime)[1]

    def _settings(self, name: str, runtime: str) -> tuple[Options, str | None]:
        key = name, self.executor(name, runtime)
        if key not in self._decoded:
            self._decoded[key] = self._decode(*key)
        return self._decoded[key]

    def _registered(self, name: str) -> type[Backend]:
        backend: type[Backend] = self._plugins.get(HOOK, name, "backend").load()
        return backend

    def _decode(self, name: str, executor: str) -> tuple[Options, str | None]:
        kind = self._registered(executor).Options
        known = {_key(field.name) for field in msgspec.structs.fields(kind)}
        shared = {k: v for k, v in self._defaults.items() if k in known or kind.collects}
        inherited = self._own(PYTHON) if executor == PYTHON else {}
        given = self._defaults_of(ISOLATION) | shared | inherited | self._own(name)
        path = f"backends.{name}"
        isolated = decode_options(
            IsolationOption, {k: v for k, v in given.items() if k == ISOLATION}, path
        )
        if ISOLATION not in known:
            given.pop(ISOLATION, None)
        # errors, and backends that collect keys, get the original spelling of a key
        spelled = self._spelling | {_key(key): key for key in self._options.get(name, {})}
        given = {spelled.get(key, key): value for key, value in given.items()}
        return decode_options(kind, given, path), isolated.isolation

    def _defaults_of(self, key: str) -> dict[str, Any]:
        return {key: self._defaults[key]} if key in self._defaults else {}

    def _own(self, name: str) -> dict[str, Any]:
        return {_key(key): value for key, value in self._options.get(name, {}).items()}

    def default_max_batch_size(self, name: str, runtime: str = "") -> int:
        """Return the batch size that auto-completion sets for models that can batch."""
        chosen = getattr(self.options(name, runtime), "default_max_batch_size", None)
        return int(
            chosen
            if chosen is not None
            else self._defaults.get("default_max_batch_size", DEFAULT_MAX_BATCH_SIZE)
        )

    def files(self, backend: str = "") -> list[BackendFiles]:
        """Return the file names of `backend`, or of all installed backends.

        Imports the modules of the returned backends. Without `backend`, one that cannot be imported
        is left out, since models may not need it. Raises PluginError for a named one.
        """
        table = self._plugins.table(HOOK)
        if backend:
            return [self._files(backend)] if backend in table else []
        found = []
        for name in table:
            try:
                found.append(self._files(name))
            except PluginError as error:
                log.warning("%s", error)
        for name in self.folders.of_plugins():  # a folder names no files: some are known
            filenames = [form.filename for form in KNOWN_FORMATS if form.backend == name]
            if filenames and name not in table:
                found.append(BackendFiles(name, (), filenames))
        return found

    def _files(self, name: str) -> BackendFiles:
        kind = self._registered(name)
        return BackendFiles(name, kind.platforms, kind.default_filenames)

    def check_options(self) -> None:
        """Decode the options of every configured and installed backend, to report errors early."""
        for name in self._options:
            if self.executor(name) in self._plugins.table(HOOK):
                self.options(name)


def _key(key: str) -> str:
    return key.replace("-", "_")
