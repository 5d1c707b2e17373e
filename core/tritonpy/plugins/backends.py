"""The registered backends: their classes, options, and model files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tritonpy.api.backend import Backend
from tritonpy.plugins.manager import PluginManager
from tritonpy_config.known_backends import KNOWN_FORMATS, BackendFiles
from tritonpy_config.options import Options
from tritonpy_config.server import decode_options
from tritonpy_config.server.server_config import DEFAULT_BACKEND_DIRECTORY
from tritonpy_types.errors import PluginError

log = logging.getLogger("tritonpy.plugins")

HOOK, FOLDER_HOOK = "tritonpy_backends", "tritonpy_backend_folders"
ISOLATION = "isolation"
DEFAULT_MAX_BATCH_SIZE = 4  # Triton's default for models that can batch and have no maximum


MODEL_FILE = "model.py"
"""The file of a Python-based backend, and the `runtime` of its models."""
PYTHON = "python"


class BackendFolders:
    """The folders of Python-based backends: those below `root`, and those of plugins.

    Folders below `root` may change while the server runs. They have priority.
    """

    def __init__(
        self,
        root: str | Path = DEFAULT_BACKEND_DIRECTORY,
        of_plugins: Mapping[str, Path] | None = None,
    ) -> None:
        self._root = Path(root)
        self._of_plugins = dict(of_plugins or {})

    @classmethod
    def with_plugins(cls, root: str | Path, plugins: PluginManager) -> BackendFolders:
        """Return the folders below `root` and those that the plugins register."""
        registered = plugins.table(FOLDER_HOOK)
        return cls(root, {name: Path(entry.target) for name, entry in registered.items()})

    def of_plugins(self) -> Iterable[str]:
        """Return the names of the backends whose folders are in plugins."""
        return self._of_plugins

    def folder(self, name: str) -> Path:
        """Return the folder of the backend `name`, which need not exist."""
        folder = self._root / name
        if (folder / MODEL_FILE).is_file():
            return folder
        return self._of_plugins.get(name, folder)

    def has(self, name: str) -> bool:
        """Return whether the backend exists. Names that leave the root do not."""
        is_plain = bool(name) and "/" not in name and name not in {".", ".."}
        return is_plain and (self.folder(name) / MODEL_FILE).is_file()


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

    A name without a plugin may be a folder: a Python-based backend, which the Python backend
    executes. `runtime` comes from the model configuration: "model.py" selects the folder, even if a
    plugin has the name.
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
        self.folders = folders or BackendFolders()
        self._decoded: dict[tuple[str, bool], Options] = {}
        self._isolation: dict[tuple[str, bool], str | None] = {}

    def get(self, name: str, runtime: str = "") -> type[Backend]:
        """Return the class. Raises PluginError that names the package to install."""
        folder = self.folder(name, runtime)
        if folder is None:
            return self._registered(name)
        try:
            return self._registered(PYTHON)
        except PluginError as error:
            raise PluginError(
                f"the backend in {folder} is written in Python, and {error}"
            ) from error

    def folder(self, name: str, runtime: str = "") -> Path | None:
        """Return the folder of the Python-based backend `name`.

        Returns None if a plugin provides the name, or if the backend is unknown.
        """
        uses_folder = runtime == MODEL_FILE or (
            not runtime and name not in self._plugins.table(HOOK)
        )
        return self.folders.folder(name) if uses_folder and self.folders.has(name) else None

    def options(self, name: str, runtime: str = "") -> Options:
        """Return the options of the backend `name`.

        A Python-based backend inherits those of the Python backend.

        Raises InvalidServerConfig.
        """
        key = name, self.folder(name, runtime) is not None
        if key not in self._decoded:
            self._decoded[key] = self._decode(name, runtime)
        return self._decoded[key]

    def isolation(self, name: str, runtime: str = "") -> str | None:
        """Return where instances of the backend's models run: "process", "thread", or None.

        None means that neither is configured.
        """
        self.options(name, runtime)
        return self._isolation[name, self.folder(name, runtime) is not None]

    def _registered(self, name: str) -> type[Backend]:
        backend: type[Backend] = self._plugins.get(HOOK, name, "backend").load()
        return backend

    def _decode(self, name: str, runtime: str) -> Options:
        kind = self.get(name, runtime).Options
        known = {_key(field.name) for field in msgspec.structs.fields(kind)}
        shared = {key: value for key, value in self._defaults.items() if key in known}
        inherited = self._own(PYTHON) if self.folder(name, runtime) is not None else {}
        given = self._defaults_of(ISOLATION) | shared | inherited | self._own(name)
        path = f"backends.{name}"
        isolated = decode_options(
            IsolationOption, {k: v for k, v in given.items() if k == ISOLATION}, path
        )
        self._isolation[name, self.folder(name, runtime) is not None] = isolated.isolation
        if ISOLATION not in known:
            given.pop(ISOLATION, None)
        # errors use the original spelling of a key
        spelled = {_key(key): key for key in self._options.get(name, {})}
        return decode_options(
            kind, {spelled.get(key, key): value for key, value in given.items()}, path
        )

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
            if name in self._plugins.table(HOOK) or (
                PYTHON in self._plugins.table(HOOK) and self.folder(name)
            ):
                self.options(name)


def _key(key: str) -> str:
    return key.replace("-", "_")
