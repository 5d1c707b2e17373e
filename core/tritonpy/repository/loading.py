"""Loads the versions of one model that its policy chooses: all of them, or none."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from tritonpy.errors import Code, Internal, InvalidArgument, TritonError
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.table import UNLOADED, ModelTable, State
from tritonpy.repository.versions import version_folders

log = logging.getLogger("tritonpy.repository")


class VersionsFailed(Internal):
    """Versions of a model failed to load; the log says which, and why."""


class NoVersions(InvalidArgument):
    """A model has no version that is to serve; the log says so."""


class VersionLoading:
    """Keeps the table told of what loads and what failed; what serves is left alone."""

    def __init__(self, table: ModelTable, loader: ModelLoader, retries: int) -> None:
        self._table = table
        self._loader = loader
        self._attempts = retries + 1

    def load(self, prepared: Prepared, versions: Sequence[int]) -> dict[int, LoadedModel]:
        """Complete the configuration and return the loaded `versions`, at least one.

        When one fails, those that had loaded are closed again and its error is raised.
        """
        prepared.versions = tuple(versions)
        for version in versions:
            log.info("loading: %s:%d", prepared.key, version)
            self._set_state(prepared, version, State.LOADING)
        try:
            self._complete(prepared, versions)
            return self._load_all(prepared, versions)
        finally:
            prepared.opened.close()

    def _complete(self, prepared: Prepared, chosen: Sequence[int]) -> None:
        # Triton completes the configuration of each version for itself: what is wrong there is wrong with every version.
        try:
            self._loader.complete(prepared)
        except Exception as error:
            reason = self._reason(prepared, error)
            if not isinstance(error, TritonError):
                log.debug("the configuration of '%s' cannot be completed", prepared.key, exc_info=error)
            for version in chosen:
                self._set_state(prepared, version, State.UNAVAILABLE, reason)
                self._log_failure(prepared, version, reason)
            states = [f"version {version} is at UNAVAILABLE state: {reason};" for version in chosen]
            raise VersionsFailed("".join(states)) from error

    def _load_all(self, prepared: Prepared, chosen: Sequence[int]) -> dict[int, LoadedModel]:
        name = prepared.key
        models: dict[int, LoadedModel] = {}
        for version in chosen:
            try:
                models[version] = self._load(name, version, prepared)
            except Exception as error:
                if not isinstance(error, TritonError):
                    log.debug("version %d of '%s' raised", version, name, exc_info=error)
                reason = self._reason(prepared, error)
                self._abandon(prepared, chosen, models, version, reason)
                self._log_failure(prepared, version, reason)
                raise VersionsFailed(f"version {version} is at UNAVAILABLE state: {reason};") from error
        return models

    def _reason(self, prepared: Prepared, error: Exception) -> str:
        reason = reason_of(error)
        return f"{reason}{self._loader.hint(reason, prepared.listing, prepared.directory)}"

    def choose(self, prepared: Prepared) -> Sequence[int]:
        """Return the versions that are to serve. Raises InvalidArgument where there is none, or one is missing that was asked for by name."""
        name = prepared.key
        for folder in version_folders(prepared.listing.files)[1]:
            fault = "contains leading zeros in" if folder.startswith("0") else "has too large a number for a version as"
            log.warning("ignore version directory '%s' which %s its directory name", folder, fault)
        chosen, missing = prepared.chosen()
        if prepared.named and missing:
            raise InvalidArgument(f"model '{name}' has no version {', '.join(map(str, missing))} in its folder")
        for version in missing:
            log.error("version %d is specified for model '%s', but the version directory is not present", version, name)
        if not chosen:
            text = f"at least one version must be available under the version policy of model '{name}'"
            text += self._loader.hint(text, prepared.listing, prepared.directory)
            log.error("failed to load model '%s': %s", name, text)
            raise NoVersions(text)
        return chosen

    def _load(self, name: str, version: int, prepared: Prepared) -> LoadedModel:
        for attempt in range(1, self._attempts + 1):
            started = time.monotonic()
            try:
                model = self._loader.load(prepared, version)
            except Exception as error:
                if attempt == self._attempts or (prepared.attempt is not None and prepared.attempt.error is not None):
                    raise
                log.warning("failed to load '%s' version %d, trying again: %s", name, version, reason_of(error))
            else:
                model.load_seconds = time.monotonic() - started
                return model
        raise AssertionError("the last attempt returns or raises: this is a bug")

    def _abandon(
        self, prepared: Prepared, chosen: Sequence[int], models: Mapping[int, LoadedModel], failed: int, reason: str
    ) -> None:
        for model in models.values():
            model.close()
        for version in chosen:
            self._set_state(prepared, version, State.UNAVAILABLE, reason if version == failed else UNLOADED)

    @staticmethod
    def _log_failure(prepared: Prepared, version: int, reason: str) -> None:
        if (
            prepared.attempt is None or prepared.attempt.error is None
        ):  # the caller of a canceled load has its error already
            log.error("failed to load '%s' version %d: %s", prepared.key, version, reason)

    def _set_state(self, prepared: Prepared, version: int, state: State, reason: str = "") -> None:
        write = partial(self._table.set_state, prepared.key, version, state, reason)
        if prepared.attempt is None:
            write()
        else:
            prepared.attempt.record(write)


def reason_of(error: Exception) -> str:
    """Return the error with its code in words, as Triton gives the reason of a state: `Invalid argument: text`."""
    code, text = (error.code, error.message) if isinstance(error, TritonError) else (Code.INTERNAL, "")
    words = "Invalid argument" if code is Code.INVALID_ARG else code.name.capitalize().replace("_", " ")
    return f"{words}: {text or f'{type(error).__name__}: {error}'}"
