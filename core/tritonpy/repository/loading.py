"""Loads the versions of one model that its policy chooses: all of them, or none."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from tritonpy.errors import Internal, TritonError
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.loader import ModelLoader, Prepared
from tritonpy.repository.table import ModelTable, State
from tritonpy.repository.versions import version_folders, versions_to_load

log = logging.getLogger("tritonpy.repository")


class VersionLoading:
    """Keeps the table told of what loads and what failed; what serves is left alone."""

    def __init__(self, table: ModelTable, loader: ModelLoader, retries: int) -> None:
        self._table = table
        self._loader = loader
        self._attempts = retries + 1

    def load(self, prepared: Prepared) -> dict[int, LoadedModel]:
        """Return the loaded versions; when one fails, those that had loaded are closed again and its error is raised."""
        name = prepared.config.name
        models: dict[int, LoadedModel] = {}
        chosen = self._choose(name, prepared)
        for version in chosen:
            self._table.set_state(name, version, State.LOADING)
        for version in chosen:
            try:
                models[version] = self._load(name, version, prepared)
            except Exception as error:
                if not isinstance(error, TritonError):
                    log.debug("version %d of '%s' raised", version, name, exc_info=error)
                self._abandon(name, chosen, models, version, _reason(error))
                raise Internal(f"version {version} is at UNAVAILABLE state: {_reason(error)};") from error
        return models

    def _choose(self, name: str, prepared: Prepared) -> Sequence[int]:
        available, ignored = version_folders(prepared.listing.files)
        for folder in ignored:
            log.warning("ignore version directory '%s' which contains leading zeros in its directory name", folder)
        chosen, missing = versions_to_load(prepared.config, available)
        for version in missing:
            log.error("version %d is specified for model '%s', but the version directory is not present", version, name)
        return chosen

    def _load(self, name: str, version: int, prepared: Prepared) -> LoadedModel:
        for attempt in range(1, self._attempts + 1):
            log.info("loading: %s:%d", name, version)
            started = time.monotonic()
            try:
                model = self._loader.load(prepared, version)
            except Exception as error:
                if attempt == self._attempts:
                    raise
                log.warning("failed to load '%s' version %d, trying again: %s", name, version, _reason(error))
            else:
                model.load_seconds = time.monotonic() - started
                log.info("successfully loaded '%s' version %d in %.2f s", name, version, model.load_seconds)
                return model
        raise AssertionError("the last attempt returns or raises: this is a bug")

    def _abandon(
        self, name: str, chosen: Sequence[int], models: Mapping[int, LoadedModel], failed: int, reason: str
    ) -> None:
        for model in models.values():
            model.close()
        for version in chosen:
            why = reason if version == failed else f"version {failed} failed to load"
            self._table.set_state(name, version, State.UNAVAILABLE, why)


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, TritonError) else f"{type(error).__name__}: {error}"
