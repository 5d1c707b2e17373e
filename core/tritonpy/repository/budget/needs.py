"""What a model needs: as it was measured, as its configuration declares, or as its files let one guess."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonpy.config.parameters import parameter_bytes
from tritonpy.config.server.memory_settings import HOST
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.budget.estimate import estimate
from tritonpy.repository.budget.sizes import ALL, Sizes, added, held_in, larger, scaled, sizes_of
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.prepared import Prepared
from tritonpy_protos.model_config_pb2 import ModelConfig

DECLARED = "memory_bytes"
"""The parameter of a model that says what it needs: bytes of the host, or by place: `cpu:512MiB,0:2GiB`."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a load of `content` asks for, where that is known from, and what was guessed and declared whatever is known."""

    sizes: Sizes
    source: str
    guessed: Sizes
    declared: Sizes
    content: str


class Needs:
    """Remembers what was measured, by content of files and configuration, also while the model is not loaded."""

    def __init__(self, loader: ModelLoader) -> None:
        self._loader = loader
        self._measured: dict[str, Sizes] = {}
        self._ratios: dict[str, float] = {}
        self._guard = threading.Lock()

    def of(self, prepared: Prepared) -> Need:
        """Return what the model needs when it is loaded as `prepared`. Raises InvalidArgument for a declaration that is none."""
        config = self._loader.normalized(prepared.config)
        declared = declared_sizes(config)
        chosen = prepared.versions or prepared.chosen()[0]
        processes = bool(chosen) and self._loader.in_processes(prepared, config, chosen[-1])
        guessed = estimate(config, chosen, _file_sizes(prepared.directory), processes)
        content = content_of(prepared)
        with self._guard:
            measured = self._measured.get(content)
            ratio = self._ratios.get(prepared.key, 1.0)
        if measured is not None:
            return Need(larger(measured, declared), "measured", guessed, declared, content)
        if declared:
            return Need(declared, "declared", guessed, declared, content)
        return Need(scaled(guessed, ratio), "estimated", guessed, declared, content)

    def measured(self, key: str, need: Need, models: Iterable[LoadedModel]) -> Sizes:
        """Return what the loaded `models` of the model `key` hold, and remember it; where nobody tells, it is what was needed."""
        found = _found(models)
        if not held_in(found, ALL):
            return need.sizes
        with self._guard:
            self._measured[need.content] = larger(found, self._measured.get(need.content, {}))
            guessed = held_in(need.guessed, ALL)
            if guessed:  # other content of the same model is likely to be as much larger than its files
                self._ratios[key] = held_in(found, ALL) / guessed
        return larger(found, need.declared)

    @staticmethod
    def held(need: Need, models: Iterable[LoadedModel]) -> Sizes:
        """Return the same of models that have more instances than their content asks for, and do not remember it."""
        found = _found(models)
        return larger(found, need.declared) if held_in(found, ALL) else need.sizes


def _found(models: Iterable[LoadedModel]) -> dict[str, int]:
    return added(sizes_of(model.runner.memory_usage()) for model in models if model.runner is not None)


def declared_sizes(config: ModelConfig) -> dict[str, int]:
    """Return what the parameter of a configuration says, nothing where it has none. Raises InvalidArgument."""
    text = config.parameters[DECLARED].string_value if DECLARED in config.parameters else ""
    sizes: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        place, colon, size = part.strip().rpartition(":")
        sizes[place if colon else HOST] = parameter_bytes(DECLARED, size)
    return sizes


def content_of(prepared: Prepared) -> str:
    """Return what is the same for two loads of the same files with the same configuration."""
    digest = hashlib.sha256(repr((*prepared.versions,)).encode())
    digest.update(prepared.given.SerializeToString(deterministic=True))
    for path, fingerprint in sorted(prepared.listing.files.items()):
        digest.update(f"{path}\0{fingerprint}\0".encode("utf-8", "surrogateescape"))
    return f"{prepared.key}\0{digest.hexdigest()}"


def _file_sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file below `folder`; one that vanishes meanwhile is left to who reads it."""
    sizes: dict[str, int] = {}
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
        except OSError:
            continue
    return sizes
