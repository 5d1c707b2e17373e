"""Loads, reloads and unloads models: the only place where the table changes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tritonpy.api.engine import ModelIndex
from tritonpy.api.repo_agent import AgentAction
from tritonpy.api.repository import Repository
from tritonpy.errors import Internal, InvalidArgument, TritonError, Unavailable
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.loader import ModelLoader, Prepared
from tritonpy.repository.loading import VersionLoading
from tritonpy.repository.local import list_model
from tritonpy.repository.overrides import write_override
from tritonpy.repository.retiring import Retiring
from tritonpy.repository.sources import DUPLICATE, Found, Scan, look_up, names, scan
from tritonpy.repository.table import ModelTable, State

GONE = "model is no longer in a repository"
log = logging.getLogger("tritonpy.repository")


@dataclass(frozen=True, slots=True)
class ModelEvents:
    """Whom to tell that a version became ready, or is gone."""

    loaded: Callable[[LoadedModel], None]
    unloaded: Callable[[LoadedModel], None]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What stands behind the serving versions of a model."""

    fingerprint: str
    overridden: bool
    prepared: Prepared


class RepositoryManager:
    """Operations on one model wait for each other; different models load at the same time, `threads` at once."""

    def __init__(
        self,
        repositories: Sequence[Repository],
        table: ModelTable,
        loader: ModelLoader,
        events: ModelEvents,
        threads: int = 4,
        retries: int = 0,
    ) -> None:
        self._repositories = repositories
        self._table = table
        self._loader = loader
        self._events = events
        self._threads = threads
        self._versions = VersionLoading(table, loader, retries)
        self._failed: dict[str, str] = {}
        self._loaded: dict[str, _Loaded] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._retiring = Retiring(table, events.unloaded)
        self._stopping = False

    def load_all(self, names: Collection[str] | None = None) -> dict[str, TritonError]:
        """Load `names` (None: every model there is) and return what failed, by name. Raises Unavailable for an unreadable repository."""
        found = scan(self._repositories)
        wanted = found.names if names is None else sorted(names)
        failures: dict[str, TritonError] = {}
        done = 0

        def load(name: str) -> None:
            nonlocal done
            started = time.monotonic()
            error = self._try_load(name, found)
            with self._guard:
                done += 1
                if error is not None:
                    failures[name] = error  # its text is in the log already
                    return
                progress = f"{done} of {len(wanted)}" + (f", {len(failures)} failed" if failures else "")
                log.info("loaded '%s' in %.2f s (%s)", name, time.monotonic() - started, progress)

        with ThreadPoolExecutor(self._threads, thread_name_prefix="load") as pool:
            list(pool.map(load, wanted))
        return failures

    def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload one model; returns when it serves. Raises a TritonError with the reason, the old versions then serve on."""
        _check_name(name)
        if files and config is None:
            raise InvalidArgument("Load parameter 'config' must be specified for model file override")
        found = look_up(self._repositories, name)
        if name not in found.models and not files:
            raise _not_found(name, found)
        self._load_found(name, found.models.get(name), config, files or {})

    def unload(self, name: str) -> None:
        """Let no new request reach the model; returns at once, what is in flight finishes. An unknown name is no error, as in Triton."""
        if name not in self._locks:
            return  # nobody ever loaded it
        with self._lock_of(name):
            loaded = self._loaded.pop(name, None)
            if loaded is not None:
                self._retiring.retire(name, self._table.swap(name, {}), loaded.prepared)

    def poll(self) -> None:
        """Make the served models those on disk: load what is new or changed, unload what is gone."""
        found = scan(self._repositories)
        changed = [name for name, model in found.models.items() if self._is_changed(name, model)]
        for name in [name for name in list(self._loaded) if name not in found.models]:
            log.info("'%s': %s", name, DUPLICATE if name in found.duplicates else GONE)
            self.unload(name)
        if changed:
            with ThreadPoolExecutor(self._threads, thread_name_prefix="load") as pool:
                list(pool.map(lambda name: self._try_load(name, found), changed))

    def index(self, ready: bool) -> list[ModelIndex]:
        """List every model of the repositories and every one that is loaded."""
        found = names(self._repositories)
        lines: list[ModelIndex] = []
        for name in sorted({*found, *(name for name, _, _ in self._table.records())}):
            if found[name] > 1:
                lines.append(ModelIndex(name, "", State.UNAVAILABLE.value, DUPLICATE))
            else:
                lines += self._table.index(name)
        return [line for line in lines if not ready or line.state == State.READY.value]

    def stop(self, timeout_s: float) -> bool:
        """Unload everything, waiting `timeout_s` for requests in flight; False when some had to be given up."""
        self.stop_loading()
        with self._guard:
            loaded, self._loaded = self._loaded, {}
        for name, entry in loaded.items():
            self._retiring.retire(name, self._table.swap(name, {}), entry.prepared)
        return self._retiring.wait(timeout_s)

    def stop_loading(self) -> None:
        """Load nothing more: what has not begun fails, and what is loading now is dropped when it is done."""
        with self._guard:
            self._stopping = True

    def close(self) -> None:
        """Close the repositories."""
        for repository in self._repositories:
            repository.close()

    def _is_changed(self, name: str, found: Found) -> bool:
        loaded, fingerprint = self._loaded.get(name), found.listing.fingerprint
        if self._failed.get(name) == fingerprint:
            return False  # it failed as it is now: not again before a file changes
        return loaded is None or loaded.fingerprint != fingerprint

    def _try_load(self, name: str, found: Scan) -> TritonError | None:
        try:
            if name not in found.models:
                error = _not_found(name, found)
                log.error("%s", error.message)
                return error
            self._load_found(name, found.models[name], None, {})
        except TritonError as error:
            return error
        return None

    def _load_found(self, name: str, found: Found | None, config: str | None, files: Mapping[str, bytes]) -> None:
        with self._lock_of(name):
            loaded = self._loaded.get(name)
            fingerprint = found.listing.fingerprint if found is not None else ""
            if config is None and loaded is not None and not loaded.overridden and loaded.fingerprint == fingerprint:
                return
            try:
                prepared = self._prepare(name, found, config, files)
                models, old = self._load_versions(name, prepared, _Loaded(fingerprint, config is not None, prepared))
            except TritonError as error:
                self._failed[name] = fingerprint
                log.error("%s", error.message.rstrip())
                self._table.explain(name, error.message.rstrip())
                raise
            self._failed.pop(name, None)
            prepared.agents.tell(AgentAction.LOAD_COMPLETE)
            for model in models:
                self._events.loaded(model)
            if loaded is not None:
                self._retiring.retire(name, old, loaded.prepared)

    def _prepare(self, name: str, found: Found | None, config: str | None, files: Mapping[str, bytes]) -> Prepared:
        try:
            self._refuse_when_stopping()
            if files:
                folder = write_override(name, files)
                path = Path(folder.name)
                return self._loader.prepare(list_model(name, path), path, config, folder.cleanup)
            assert found is not None, "a load without files has a model on disk: this is a bug"  # noqa: S101
            path = found.repository.localize(found.listing)
            return self._loader.prepare(found.listing, path, config, lambda: found.repository.release(path))
        except Exception as error:
            raise _failure(f"failed to load '{name}', failed to poll from model repository", error) from error

    def _load_versions(
        self, name: str, prepared: Prepared, entry: _Loaded
    ) -> tuple[Sequence[LoadedModel], Sequence[LoadedModel]]:
        """Return the versions that serve from now on, and those that did before."""
        try:
            models = self._versions.load(prepared)
            try:
                with self._guard:  # from here on `stop` sees it
                    self._refuse_when_stopping()
                    self._loaded[name] = entry
                    return list(models.values()), self._table.swap(name, models)
            except Unavailable:
                for model in models.values():
                    model.close()
                raise
        except Exception as error:
            prepared.agents.tell(AgentAction.LOAD_FAIL)
            prepared.release()
            # Triton's code for this is INVALID_ARG, whatever went wrong in the backend
            raise InvalidArgument(_failure(f"load failed for model '{name}'", error).message + "\n") from error

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise Unavailable("Server exiting")

    def _lock_of(self, name: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(name, threading.Lock())


def _failure(what: str, error: Exception) -> TritonError:
    if isinstance(error, TritonError):
        return Internal(f"{what}: {error.message}")
    log.error("%s", what, exc_info=error)
    return Internal(f"{what}: {type(error).__name__}: {error}")


def _check_name(name: str) -> None:
    if not name:
        raise InvalidArgument("Model name cannot be empty. Please enter a valid name to deploy.")
    if "/" in name or "\\" in name or name in {".", ".."}:
        raise InvalidArgument(f"invalid model name '{name}', model name must not contain path traversal characters")


def _not_found(name: str, found: Scan) -> TritonError:
    reason = f": {DUPLICATE}" if name in found.duplicates else ""
    return Internal(f"failed to load '{name}', failed to poll from model repository{reason}")
