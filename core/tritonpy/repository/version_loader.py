"""Loading of the selected versions of one model: all of them, or none."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_table import UNLOADED, ModelTable, State
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy_config.versions import version_folders
from tritonpy_types.errors import Code, Internal, InvalidArgument, TritonError

log = logging.getLogger("tritonpy.repository")


class VersionsFailed(Internal):
    """Versions of a model failed to load; the log has the details."""


class NoVersions(InvalidArgument):
    """A model has no version to serve; the log says so."""


class VersionLoader:
    """Loads versions and records their states in the model table; serving ones stay."""

    def __init__(self, table: ModelTable, loader: ModelLoader, retries: int) -> None:
        self._table = table
        self._loader = loader
        self._attempts = retries + 1

    def load(self, prepared: PreparedModel, versions: Sequence[int]) -> dict[int, LoadedModel]:
        """Complete the configuration, and load and return `versions`, at least one.

        If one fails, the versions loaded so far are closed and its error is raised.
        """
        prepared.versions = tuple(versions)
        for version in versions:
            log.info("loading: %s:%d", prepared.key, version)
            self._set_state(prepared, version, State.LOADING)
        try:
            self._complete(prepared, versions)
            return self._load_all(prepared, versions)
        finally:
            prepared.shared_objects.close()

    def _complete(self, prepared: PreparedModel, chosen: Sequence[int]) -> None:
        # Triton completes the configuration of each version separately, so every version has the
        # error.
        try:
            self._loader.complete(prepared)
        except Exception as error:
            reason = self._reason(prepared, error)
            if not isinstance(error, TritonError):
                log.debug(
                    "the configuration of '%s' cannot be completed", prepared.key, exc_info=error
                )
            for version in chosen:
                self._set_state(prepared, version, State.UNAVAILABLE, reason)
                self._log_failure(prepared, version, reason)
            states = [f"version {version} is at UNAVAILABLE state: {reason};" for version in chosen]
            raise VersionsFailed("".join(states)) from error

    def _load_all(self, prepared: PreparedModel, chosen: Sequence[int]) -> dict[int, LoadedModel]:
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
                raise VersionsFailed(
                    f"version {version} is at UNAVAILABLE state: {reason};"
                ) from error
        return models

    def _reason(self, prepared: PreparedModel, error: Exception) -> str:
        reason = state_reason(error)
        return f"{reason}{self._loader.hint(reason, prepared.listing, prepared.directory)}"

    def choose(self, prepared: PreparedModel) -> Sequence[int]:
        """Return the versions to serve.

        Raises `InvalidArgument` if there is none, or if a version named by the request is missing.
        """
        name = prepared.key
        for folder in version_folders(prepared.listing.files)[1]:
            fault = (
                "contains leading zeros in"
                if folder.startswith("0")
                else "has too large a number for a version as"
            )
            log.warning("ignore version directory '%s' which %s its directory name", folder, fault)
        chosen, missing = prepared.selected_versions()
        if prepared.requested_versions and missing:
            raise InvalidArgument(
                f"model '{name}' has no version {', '.join(map(str, missing))} in its folder"
            )
        for version in missing:
            log.error(
                "version %d is specified for model '%s', but the version directory is not present",
                version,
                name,
            )
        if not chosen:
            text = (
                f"at least one version must be available under the version policy of model '{name}'"
            )
            text += self._loader.hint(text, prepared.listing, prepared.directory)
            log.error("failed to load model '%s': %s", name, text)
            raise NoVersions(text)
        return chosen

    def _load(self, name: str, version: int, prepared: PreparedModel) -> LoadedModel:
        for attempt in range(1, self._attempts + 1):
            started = time.monotonic()
            try:
                model = self._loader.load(prepared, version)
            except Exception as error:
                if attempt == self._attempts or (
                    prepared.attempt is not None and prepared.attempt.error is not None
                ):
                    raise
                log.warning(
                    "failed to load '%s' version %d, retrying: %s",
                    name,
                    version,
                    state_reason(error),
                )
            else:
                model.load_seconds = time.monotonic() - started
                return model
        raise AssertionError("the last attempt returns or raises: this is a bug")

    def _abandon(
        self,
        prepared: PreparedModel,
        chosen: Sequence[int],
        models: Mapping[int, LoadedModel],
        failed: int,
        reason: str,
    ) -> None:
        for model in models.values():
            model.close()
        for version in chosen:
            self._set_state(
                prepared, version, State.UNAVAILABLE, reason if version == failed else UNLOADED
            )

    @staticmethod
    def _log_failure(prepared: PreparedModel, version: int, reason: str) -> None:
        # The caller of a canceled load already has its error.
        if prepared.attempt is None or prepared.attempt.error is None:
            log.error("failed to load '%s' version %d: %s", prepared.key, version, reason)

    def _set_state(
        self, prepared: PreparedModel, version: int, state: State, reason: str = ""
    ) -> None:
        write = partial(self._table.set_state, prepared.key, version, state, reason)
        if prepared.attempt is None:
            write()
        else:
            prepared.attempt.record(write)


def state_reason(error: Exception) -> str:
    """Return the error with its code in words, as in Triton's reasons: `Invalid argument: text`."""
    code, text = (
        (error.code, error.message) if isinstance(error, TritonError) else (Code.INTERNAL, "")
    )
    words = (
        "Invalid argument" if code is Code.INVALID_ARG else code.name.capitalize().replace("_", " ")
    )
    return f"{words}: {text or f'{type(error).__name__}: {error}'}"
