"""The models of a multi-model endpoint, which SageMaker loads and unloads."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from tritonpy import AlreadyExists, Engine, InvalidArgument, NotFound, TritonError, Unavailable
from tritonpy.frontend import LOAD_CALLS, MODEL_CALLS
from tritonpy_protos.model_config_pb2 import ModelConfig

_FORBIDDEN = ("/dev", "/proc", "/sys")
_POLL_S = 0.05
_MANY_FOLDERS = 5


class UnknownModel(NotFound):
    """A model that SageMaker did not load."""

    def __init__(self, name: str) -> None:
        super().__init__(f"model '{name}' is not loaded")


@dataclass(frozen=True)
class LoadedArchive:
    """A loaded model: its repository, and its name in the server."""

    repository: str
    served_name: str


class ModelStore:
    """Loads and unloads the models of one endpoint, each from a repository of its own.

    SageMaker unpacks the archive of a model to `FOLDER/HASH/model`, and loads it as HASH. The
    archive contains one model, or an ensemble and its members. `config.pbtxt` may also be at its
    top. All methods run on the event loop.
    """

    def __init__(
        self, engine: Engine, folder: str, unload_timeout_s: float, log: logging.Logger
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._unload_timeout_s = unload_timeout_s
        self._log = log
        self._path = re.compile(
            rf"(?P<parent>{re.escape(folder.rstrip('/'))}/[0-9A-Za-z._]+)/(?P<folder>model)/?"
            r"(?P<below>[0-9A-Za-z._]+)?"
        )
        self._loaded: dict[str, LoadedArchive] = {}
        self._changing: set[str] = set()

    def served_name(self, name: str) -> str | None:
        """Return the name of a loaded model in the server, None for an unknown one."""
        loaded = self._loaded.get(name)
        return loaded.served_name if loaded is not None else None

    def describe(self, name: str) -> dict[str, str]:
        """Return name and URL of a loaded model. Raises UnknownModel."""
        if name not in self._loaded:
            raise UnknownModel(name)
        return {"modelName": name, "modelUrl": self._loaded[name].repository}

    async def list_models(self) -> dict[str, Any]:
        """Return the loaded models that are ready."""
        ready = await MODEL_CALLS.run(
            lambda: [name for name in list(self._loaded) if self._is_ready(name)]
        )
        return {"models": [self.describe(name) for name in ready if name in self._loaded]}

    def _is_ready(self, name: str) -> bool:
        try:
            return self._engine.is_model_ready(self._loaded[name].served_name)
        except (KeyError, TritonError):
            return False

    async def load(self, name: str, url: str, served_name: str) -> None:
        """Load the model in the folder `url`.

        Raises AlreadyExists for a loaded model and for one that is being loaded or unloaded, and
        InvalidArgument for a wrong URL.
        """
        if not name:
            raise InvalidArgument("'model_name' is required: the name of the model to load")
        self._begin(name)
        try:
            if name in self._loaded:
                raise AlreadyExists(f"model '{name}' is already loaded")
            self._loaded[name] = await LOAD_CALLS.run(self._load, url, served_name)
        finally:
            self._changing.discard(name)

    def _load(self, url: str, served_name: str) -> LoadedArchive:
        repository, folder = self._locate(url)
        self._engine.register_repository(repository, {served_name: folder})
        try:
            self._engine.load_model(served_name)
        except BaseException:
            self._engine.unregister_repository(repository)
            raise
        return LoadedArchive(repository, served_name)

    def _locate(self, url: str) -> tuple[str, str]:
        """Return the repository and the model's folder in it. Raises InvalidArgument."""
        path = os.path.abspath(url)
        real = os.path.realpath(path)
        for each in (path, real):
            if any(each == root or each.startswith(f"{root}/") for root in _FORBIDDEN):
                raise InvalidArgument(
                    f"Invalid \"url\" '{url}': it must not be below /dev, /proc or /sys"
                )
        found = self._path.fullmatch(path)
        if found is None or not url:
            raise InvalidArgument(
                f"Invalid \"url\" '{url}': expected a path of the form "
                f"{self._folder}/<hash>/model[/<subdir>]"
            )
        if not real.startswith(os.path.realpath(self._folder) + "/"):
            raise InvalidArgument(
                f"Invalid \"url\" '{url}': it leads out of {self._folder} through a link"
            )
        if os.path.exists(os.path.join(path, "config.pbtxt")):
            return found["parent"], found["folder"]
        return path, self._only_model(Path(path), url)

    def _only_model(self, path: Path, url: str) -> str:
        """Return the folder of the model in an archive: the only one, or that of the ensemble."""
        try:
            folders = sorted(each.name for each in path.iterdir() if each.is_dir())
        except OSError as error:
            raise InvalidArgument(
                f"Invalid \"url\" '{url}': {error.strerror or 'not readable'}"
            ) from None
        if not folders:
            raise InvalidArgument(f"Invalid \"url\" '{url}': it contains no folder of a model")
        if len(folders) > _MANY_FOLDERS:
            self._log.warning(
                "Several model directories found. If using ensemble, smaller ensembles are "
                "recommended for better memory management."
            )
        if len(folders) == 1:
            return folders[0]
        ensembles = [folder for folder in folders if _is_ensemble(path / folder)]
        if len(ensembles) != 1:
            raise InvalidArgument(
                f"Invalid \"url\" '{url}': it contains the models {', '.join(folders)}. An archive "
                "must contain one model, or one ensemble and its members"
            )
        return ensembles[0]

    async def unload(self, name: str) -> None:
        """Unload a model and the members of an ensemble; return when they are unloaded.

        Raises UnknownModel, and Unavailable if requests in flight take too long.
        """
        loaded = self._loaded.get(name)
        if loaded is None:
            raise UnknownModel(name)
        self._begin(name)
        try:
            self._log.info("Unloading SageMaker TargetModel: %s", loaded.served_name)
            del self._loaded[name]
            try:
                await self._unload(loaded)
            except BaseException:
                self._loaded[name] = loaded
                raise
        finally:
            self._changing.discard(name)

    async def _unload(self, loaded: LoadedArchive) -> None:
        name, engine = loaded.served_name, self._engine
        started_s = time.monotonic()
        await MODEL_CALLS.run(engine.unload_model, name, True)
        while await MODEL_CALLS.run(self._is_active, name):
            if time.monotonic() - started_s > self._unload_timeout_s:
                raise Unavailable(
                    f"model '{name}' still has requests in flight after "
                    f"{self._unload_timeout_s:.0f} s"
                )
            await asyncio.sleep(_POLL_S)
        await MODEL_CALLS.run(engine.unregister_repository, loaded.repository)
        self._log.info(
            "UNLOAD for model %s completed in %d seconds.", name, time.monotonic() - started_s
        )

    def _is_active(self, name: str) -> bool:
        return any(
            line.state != "UNAVAILABLE" or line.reason != "unloaded"
            for line in self._engine.repository_index()
            if line.name == name and line.state
        )

    def _begin(self, name: str) -> None:
        if name in self._changing:
            raise AlreadyExists(f"model '{name}' is being loaded or unloaded")
        self._changing.add(name)


def _is_ensemble(folder: Path) -> bool:
    try:
        config = text_format.Parse((folder / "config.pbtxt").read_text("utf-8"), ModelConfig())
    except (OSError, ValueError, text_format.ParseError):
        return False
    return config.platform == "ensemble" or config.HasField("ensemble_scheduling")
