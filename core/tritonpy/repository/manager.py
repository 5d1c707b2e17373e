"""The repository manager, which loads, reloads and unloads models for clients and polls."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy.api.engine import ModelIndex
from tritonpy.api.repository import Repository, RepositoryContext
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.draining import Drainer
from tritonpy.repository.ensemble_reconciler import EnsembleReconciler
from tritonpy.repository.lazy_choice import LazyChoice, lazy_choice
from tritonpy.repository.load_attempts import SLOW_S, LoadThreads, load_many
from tritonpy.repository.local import LocalRepository
from tritonpy.repository.memory_reservation import InsufficientCapacity, LoadDeadline
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_operations import LoadRequest, ModelOperations
from tritonpy.repository.model_table import LazyListing, ModelTable, State
from tritonpy.repository.overrides import check_file_names
from tritonpy.repository.residency import ResidencyContext
from tritonpy.repository.sources import DUPLICATE, FoundModel, Scan, Sources
from tritonpy.repository.version_loader import VersionLoader
from tritonpy_config.model_fit import qualified_name
from tritonpy_config.options import NoOptions
from tritonpy_config.server.sections import MemorySettings
from tritonpy_config.versions import version_folders, versions_to_load
from tritonpy_types.errors import Internal, InvalidArgument, StartupError, TritonError, Unavailable

if TYPE_CHECKING:
    from tritonpy.api.engine import Operation
    from tritonpy.api.operation import OperationHandler
    from tritonpy.repository.residency import ResidencyPolicy

DEFAULT_MEMORY = MemorySettings()
REMOVED = "model is no longer in a repository"
log = logging.getLogger("tritonpy.repository")

_SLOW_AT_START_S = 60.0  # a load that takes longer no longer counts against `threads`
_SPACES = " \t\n\r\v\f"
_SEQUENCE_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class ModelEvents:
    """Callbacks for versions that became ready or are unloaded."""

    loaded: Callable[[LoadedModel], None]
    unloaded: Callable[[LoadedModel], None]


class RepositoryManager:
    """Manages the models of all repositories.

    Operations on one model run in order. Different models load concurrently, up to `threads` at
    once. The members of an ensemble are loaded with it. Methods called by clients take plain names;
    everything else uses qualified names.
    """

    def __init__(
        self,
        repositories: Sequence[Repository],
        table: ModelTable,
        loader: ModelLoader,
        events: ModelEvents,
        threads: int = 4,
        retries: int = 0,
        namespaced: bool = False,
        memory: MemorySettings = DEFAULT_MEMORY,
        load_timeout_s: float = 0.0,
    ) -> None:
        version_loader = VersionLoader(table, loader, retries)
        self._sources = Sources(repositories, namespaced)
        self._table = table
        self._threads = threads
        self._loader = loader
        self._events = events
        self._drainer = Drainer(table, self._unloaded)
        self._ensembles = EnsembleReconciler(table, version_loader, self._drainer, events.loaded)
        load_threads = LoadThreads(load_timeout_s)
        self._models = ModelOperations(
            table,
            loader,
            version_loader,
            self._ensembles,
            self._drainer,
            events.loaded,
            load_threads,
        )
        self._names: dict[str, str] = {}
        self._requested: set[str] = set()
        self._guard = threading.Lock()
        self._memory = memory
        self._residency: ResidencyPolicy | None = None
        if memory != DEFAULT_MEMORY:
            self._ensure_residency()

    def register(self, path: str, folders: Mapping[str, str]) -> None:
        """Add the local repository `path`, in which `folders` have models of other names."""
        context = RepositoryContext(path, Path(path))
        with self._guard:
            self._sources.register(LocalRepository(NoOptions(), context, folders))

    def unregister(self, path: str) -> None:
        """Remove a repository; its loaded models keep serving."""
        with self._guard:
            self._sources.unregister(path)

    def load_all(self, names: Collection[str] | None = None) -> dict[str, TritonError]:
        """Load the models `names`, or all models, and return the failures by name.

        Raises `Unavailable` for an unreadable repository.
        """
        found = self._sources.scan()
        keys = (
            found.names
            if names is None
            else [key for name in sorted(names) for key in found.keys_for(name)]
        )
        failures: dict[str, TritonError] = {}
        done = 0

        def progress() -> str:
            nonlocal done
            with self._guard:
                done += 1
                return f" ({done} of {len(keys)}{f', {len(failures)} failed' if failures else ''})"

        def record_failure(key: str, error: TritonError | None) -> None:
            nonlocal done
            if error is not None:
                with self._guard:
                    done += 1
                    failures[key] = error  # already logged

        def load(key: str) -> None:
            record_failure(key, self._try_load(key, found, note=progress))

        self._mark_requested(keys)
        keys = self._select_eager(keys, found, failures)
        self._load_concurrently(load, keys)
        self._load_members(keys)
        for key in keys:
            if key not in failures and self._ensembles.member_names(key):
                record_failure(key, self._settle_ensemble(key))
        return failures

    def load(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        """Load or reload a model and the members it needs; returns when the model serves.

        With `versions`, those are loaded regardless of the version policy, and other serving
        versions are kept until the next load without `versions`. With namespaces, all models of
        this name are loaded. Raises a `TritonError` with the reason; the previous versions then
        keep serving.
        """
        _check_name(name)
        if files and config is None:
            raise InvalidArgument(
                "Load parameter 'config' must be specified for model file override"
            )
        check_file_names(files or ())
        found = self._sources.look_up(name)
        if not found.models and not files:
            raise _not_found(name, found)
        if files:
            requests = [LoadRequest(name, name, found.models.get(name), config, files, versions)]
        else:
            requests = [
                LoadRequest(key, name, model, config, None, versions)
                for key, model in found.models.items()
            ]
        keys = [request.key for request in requests]
        self._mark_requested(keys)
        for request in requests:
            self._register_lazy(request)
        errors = [error for request in requests if (error := self._load_one(request)) is not None]
        self._load_members(keys)
        errors += [error for key in keys if (error := self._settle_ensemble(key)) is not None]
        if errors:
            raise (
                errors[0]
                if len(errors) == 1
                else InvalidArgument("".join(error.message for error in errors))
            )

    def unload(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        """Stop accepting requests for a model; return while requests in flight finish.

        An unknown name is not an error, as in Triton. With `versions`, only those are unloaded,
        until the next load without `versions`; unloading the last one unloads the model. With
        `unload_dependents`, the members of an ensemble are unloaded too, unless they were requested
        themselves or belong to another ensemble.
        """
        self._unload(
            {key for key, plain_name in list(self._names.items()) if plain_name == name},
            unload_dependents,
            versions,
        )

    def poll(self) -> None:
        """Load new and changed models, and unload removed ones."""
        found = self._sources.scan()
        changed = [
            key
            for key, model in found.models.items()
            if self._models.is_changed(LoadRequest(key, model.listing.name, model))
            and not self._is_current_lazy(key, model)
        ]
        removed = {
            key
            for key in (*self._models.active_models(), *self._lazy_keys())
            if key not in found.models
        }
        for key in sorted(removed):
            log.info("'%s': %s", key, DUPLICATE if key in found.duplicates else REMOVED)
        self._unload(removed)
        changed = self._select_eager(changed, found, {})
        if changed:
            for key in changed:
                self._models.cancel_slow_load(
                    LoadRequest(key, found.models[key].listing.name, found.models[key])
                )
            load_many(
                partial(self._reload, found=found),
                changed,
                self._threads,
                SLOW_S,
                wait_for_all=False,
            )
            for key in changed:
                self._remark_failure(key, self._settle_ensemble(key))

    def _reload(self, key: str, found: Scan) -> None:
        self._remark_failure(key, self._try_load(key, found))

    def _remark_failure(self, key: str, error: TritonError | None) -> None:
        """Show in the index why a serving model does not match its files.

        A poll has no caller that would get the error.
        """
        if error is not None:
            self._table.set_remarks(
                key,
                f"still serves the previous load; the last load failed: {error.message.rstrip()}",
            )

    def operations(self) -> Mapping[Operation, OperationHandler]:
        """Return the management operations of the residency policy; none without one."""
        return {} if self._residency is None else self._residency.operations()

    def index(self, ready: bool) -> list[ModelIndex]:
        """List every model in the repositories and every loaded model."""
        counts = self._sources.names()
        found = {qualified_name(*model): model[1] for model in sorted(counts)}
        duplicates = {qualified_name(*model) for model, count in counts.items() if count > 1}
        found |= {key: self._names[key] for key, _, _ in self._table.records() if key not in found}
        lines: list[ModelIndex] = []
        for key, name in found.items():
            if key in duplicates:
                lines.append(ModelIndex(name, "", State.UNAVAILABLE.value, DUPLICATE))
            else:
                lines += self._table.index(key, name)
        return [line for line in lines if not ready or line.state == State.READY.value]

    def wait_for_sequences(self, timeout_s: float) -> None:
        """Reject new sequences, and wait up to `timeout_s` for active ones to end."""
        deadline = time.monotonic() + timeout_s
        while (
            any([model.dispatcher.stop_sequences() for model in self._table.all_ready()])
            and time.monotonic() < deadline
        ):
            time.sleep(_SEQUENCE_POLL_S)

    def in_flight(self) -> list[tuple[str, int, int]]:
        """Return (name, version, requests in flight) of every ready version that has some."""
        return [
            (model.name, model.version, model.in_flight)
            for model in self._table.all_ready()
            if model.in_flight
        ]

    def stop(self, timeout_s: float) -> bool:
        """Unload everything, waiting up to `timeout_s` for requests in flight.

        False if some of them had to be failed.
        """
        self.stop_loading()
        self._models.unload_all()
        return self._drainer.wait(timeout_s)

    def stop_loading(self) -> None:
        """Reject further loads, and cancel those in progress."""
        self._models.stop_loading()
        if self._residency is not None:
            self._residency.stop()
        self._sources.interrupt()

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` when a repository notices that its models may have changed."""
        self._sources.watch(changed)

    def close(self) -> None:
        """Close the repositories."""
        if self._residency is not None:
            self._residency.close()
        self._drainer.close()
        self._sources.close()

    def _mark_requested(self, keys: Iterable[str]) -> None:
        with self._guard:
            self._requested.update(keys)

    def _unload(
        self, keys: Collection[str], unload_dependents: bool = False, versions: Collection[int] = ()
    ) -> None:  # fmt: skip
        while keys:
            members = (
                {key: self._ensembles.members(key) for key in keys} if unload_dependents else {}
            )
            names = {key: self._names[key] for key in sorted(keys)}
            removed = [
                key
                for key in names
                if not (versions and self._models.unload_versions(key, names[key], versions))
            ]
            with self._guard:
                self._requested.difference_update(removed)
            if self._residency is not None:
                self._residency.remove(removed)
            if not versions:
                self._models.unload(names)
            followed = {member for key in removed for member in members.get(key, ())}
            keys = {
                member
                for member in followed
                if member not in self._requested and not self._ensembles.is_member(member)
            }
            versions = ()

    def _select_eager(
        self, keys: Sequence[str], found: Scan, failures: dict[str, TritonError]
    ) -> list[str]:
        """Return the models to load now, and register the lazy ones."""
        eager: dict[str, bool] = {}

        def check(key: str) -> None:
            model = found.models.get(key)
            try:
                lazy = model is not None and self._register_lazy(
                    LoadRequest(key, model.listing.name, model)
                )
            except TritonError as error:
                log.error("failed to load '%s': %s", key, error.message)
                self._table.set_model_reason(key, error.message)
                failures[key] = error
            else:
                eager[key] = not lazy or bool(self._table.ready(key))

        self._load_concurrently(check, keys)
        return [key for key in keys if eager.get(key)]

    def _register_lazy(self, request: LoadRequest, *, as_member: bool = False) -> bool:
        """Return whether a model is lazy, and register it if so.

        Raises `InvalidArgument` for an invalid `lazy` or `pinned` parameter, or if no residency
        policy is installed.
        """
        key, found = request.key, request.found
        config_name = self._loader.load_context.config_name
        choice = None
        if found is not None and not request.files:
            choice = lazy_choice(
                found, request.config, config_name, self._memory, as_member=as_member
            )
        if choice is not None and found is not None:
            self._names[key] = request.name
            listing = found.listing
            policy = self._residency_for(request.name)
            policy.add(
                key,
                listing.name,
                self._lazy_listing(found, choice),
                listing.fingerprint,
                choice.pinned,
                request.config,
            )
        elif self._residency is not None:
            self._residency.remove([key])
        return choice is not None

    def _lazy_listing(self, found: FoundModel, choice: LazyChoice) -> LazyListing:
        listing = found.listing
        versions, _ = versions_to_load(choice.config, version_folders(listing.files)[0])
        return LazyListing(self._loader.describe(choice.config, listing), tuple(versions))

    def _lazy_keys(self) -> list[str]:
        return [] if self._residency is None else self._residency.keys()

    def _is_current_lazy(self, key: str, found: FoundModel) -> bool:
        """Return whether a model is lazy, has the files of `found`, and is not loaded."""
        return (
            self._residency is not None
            and self._residency.fingerprint(key) == found.listing.fingerprint
            and not self._table.ready(key)
        )

    def _residency_for(self, name: str) -> ResidencyPolicy:
        try:
            return self._ensure_residency()
        except StartupError as error:
            raise InvalidArgument(f"model '{name}': {error}") from error

    def _ensure_residency(self) -> ResidencyPolicy:
        with self._guard:
            if self._residency is None:
                load_context = self._loader.load_context
                kind = load_context.plugins.get(
                    "tritonpy_residency_policies", "lru", "residency policy"
                ).load()
                policy: ResidencyPolicy = kind(
                    ResidencyContext(
                        self._memory,
                        self._table,
                        self._loader,
                        self._ensembles,
                        load_context.metrics,
                        load_context.timer,
                        self._threads,
                        self._load_lazy,
                        self._models.unload_if_idle,
                    )
                )
                self._models.memory = policy.memory
                self._table.lazy_loader = self._residency = policy
            return self._residency

    def _load_lazy(self, key: str, name: str, override: str | None, deadline: LoadDeadline) -> None:
        """Load a lazy model and its members, lazy too unless requested otherwise.

        Raises `InsufficientCapacity` if memory is missing.
        """
        errors: Sequence[TritonError] = ()
        try:
            found = self._sources.look_up(name).models.get(key)
            if found is None:
                raise Unavailable(f"'{key}' is no longer in a model repository")
            request = LoadRequest(key, name, found, override, as_member=True, deadline=deadline)
            self._models.load(request, " for a request")
            errors = self._load_members([key], deadline)
            self._models.settle_ensemble(key)
        except TritonError as error:
            # An ensemble would keep waiting for its members.
            if not self._table.ready(key):
                self._models.unload({key: name})
            capacity_error = next(filter(None, map(_capacity_error, (error, *errors))), None)
            if capacity_error is None:
                raise
            raise type(capacity_error)(
                capacity_error.message, retry_after_s=capacity_error.retry_after_s
            ) from None

    def _unloaded(self, model: LoadedModel) -> None:
        if self._residency is not None:
            self._residency.unloaded(model)
        self._events.unloaded(model)

    def _load_members(
        self, keys: Iterable[str], deadline: LoadDeadline | None = None
    ) -> list[TritonError]:
        """Load the members of the ensembles among `keys`, recursively; return the errors."""
        errors: list[TritonError] = []

        def load(key: str) -> None:
            model = found.models.get(key)
            try:
                if model is not None:
                    as_member = deadline is not None and key not in self._requested
                    if (
                        as_member
                        or self._residency is None
                        or self._residency.fingerprint(key) is None
                    ):
                        self._register_lazy(
                            LoadRequest(key, model.listing.name, model), as_member=as_member
                        )
            except TritonError as error:
                errors.append(error)
                return
            failure = self._try_load(key, found, as_member=True, deadline=deadline)
            if failure is not None:
                errors.append(failure)

        seen = {self._names.get(key, key) for key in keys}
        while names := {name for key in keys for name in self._ensembles.member_names(key)} - seen:
            seen |= names
            found = self._sources.look_up(*sorted(names))
            keys = found.names
            self._load_concurrently(load, keys)
        return errors

    def _load_concurrently(self, load: Callable[[str], object], keys: Sequence[str]) -> None:
        load_many(load, keys, self._threads, _SLOW_AT_START_S, wait_for_all=True)

    def _try_load(
        self,
        key: str,
        found: Scan,
        *,
        as_member: bool = False,
        deadline: LoadDeadline | None = None,
        note: str | Callable[[], str] = "",
    ) -> TritonError | None:
        if key not in found.models:
            return _not_found(key, found)
        model = found.models[key]
        return self._load_one(
            LoadRequest(key, model.listing.name, model, as_member=as_member, deadline=deadline),
            note,
        )

    def _load_one(
        self, request: LoadRequest, note: str | Callable[[], str] = ""
    ) -> TritonError | None:
        self._names[request.key] = request.name
        try:
            self._models.load(request, note)
        except TritonError as error:
            return error
        return None

    def _settle_ensemble(self, key: str) -> TritonError | None:
        try:
            self._models.settle_ensemble(key)
        except TritonError as error:
            return error
        return None


def _check_name(name: str) -> None:
    trimmed = name.strip(_SPACES)
    if not trimmed:
        raise InvalidArgument("Model name cannot be empty. Please enter a valid name to deploy.")
    if "/" in name or any(part in {".", ".."} for part in trimmed.split("\\")):
        raise InvalidArgument(
            f"invalid model name '{name}', model name must not contain path traversal characters"
        )


def _capacity_error(error: TritonError) -> InsufficientCapacity | None:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, InsufficientCapacity):
        cause = cause.__cause__
    return cause


def _not_found(name: str, found: Scan) -> TritonError:
    """Log that no model of this name can be loaded, and return the error for the caller."""
    duplicates = name in found.duplicates
    text = (
        "not unique across all model repositories"
        if duplicates
        else "model not found in any model repository."
    )
    log.error("failed to poll model '%s': %s", name, text)
    reason = f": {DUPLICATE}" if name in found.duplicates else ""
    return Internal(f"failed to load '{name}', failed to poll from model repository{reason}")
