"""The model loader: creates a served model from a folder."""

from __future__ import annotations

import getpass
import hashlib
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

from tritonpy.api.backend import Backend
from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.contexts import ModelContext
from tritonpy.api.device import NoDevice, missing_plugin
from tritonpy.api.load_cancellation import LoadCancellation
from tritonpy.api.repo_agent import AgentAction, RepoAgent
from tritonpy.api.repository import ModelListing
from tritonpy.api.scheduler import Scheduler, SchedulerContext
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.request_check import RequestCheck
from tritonpy.model.warmup_samples import warmup_samples
from tritonpy.plugins.backends import PYTHON, Backends, C
from tritonpy.repository.agents import AgentChain
from tritonpy.repository.load_context import LoadContext
from tritonpy.repository.local import list_model
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy.repository.shared_objects import SharedObjects, unload_shared
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.instances import Instances
from tritonpy.runners.isolation import PARAMETER, is_isolated, loads_in_worker
from tritonpy.runners.runner import ModelExecution, Runner
from tritonpy_batching.batch_layout import BatchLayout
from tritonpy_config.backend_folders import MODEL_FILE, library_name
from tritonpy_config.completion import fill_backend, merge_auto_complete
from tritonpy_config.config_file import read_config, string_parameters, with_positions
from tritonpy_config.dependencies import is_ensemble
from tritonpy_config.folder_hints import layout_hint
from tritonpy_config.known_backends import BackendFiles, formats
from tritonpy_config.model_files import (
    file_name_problems,
    foreign_path_problems,
    resolve_model_file,
)
from tritonpy_config.normalization import normalize
from tritonpy_config.options import NoOptions
from tritonpy_config.problem import (
    ConfigProblem,
    InvalidConfig,
    ParsedConfig,
    refuse_problems,
)
from tritonpy_config.validate import validate
from tritonpy_config.validate.batch_strategy import with_batch_library
from tritonpy_config.validate.identity import identity_problems
from tritonpy_metrics import ModelMetrics
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup
from tritonpy_types import DATATYPE_OF_NUMBER
from tritonpy_types.errors import InvalidArgument, PluginError, StartupError

log = logging.getLogger("tritonpy.repository")

Answer = TypeVar("Answer")

SCHEDULERS = {
    "dynamic_batching": "dynamic",
    "sequence_batching": "sequence",
    "ensemble_scheduling": "ensemble",
}
_NO_EFFECT = (
    "the parameter batch_policy '%s' has no effect: only dynamic_batching, "
    "and sequence_batching with 'oldest', use a policy"
)


_MOST_FILES = 1000
_ABOUT_LAYOUT = (
    "Could not determine backend",
    "unable to find '",
    "at least one version must be available",
)
"""Error texts that wrong file names may cause."""


def resolve_runtime(config: ModelConfig, backends: Backends, files: Collection[str] = ()) -> str:
    """Return "model.py" if a Python-based backend serves the model, else the configured runtime.

    Without one, return the name of the backend's library if it is among the model's `files`, and
    no plugin has the name. Raises `InvalidArgument` if the configured Python-based backend is
    missing and no plugin serves this runtime.
    """
    folders, name = backends.folders, config.backend
    if (
        config.runtime == MODEL_FILE
        and not folders.has(name)
        and not _plugin_serves_runtime(config, backends)
    ):
        raise InvalidArgument(
            f"unable to find Python backend based backend library '{MODEL_FILE}' for model "
            f"'{config.name}', "
            f"searched: '{folders.folder(name) / MODEL_FILE}'"
        )
    executor = backends.executor(name, config.runtime)
    library = library_name(name)
    if not config.runtime and executor == name and any(PurePath(f).name == library for f in files):
        return library if backends.executor(name, library) == C else ""
    return MODEL_FILE if executor == PYTHON and name != PYTHON else config.runtime


def _plugin_serves_runtime(config: ModelConfig, backends: Backends) -> bool:
    """Return whether a registered backend serves models with this runtime."""
    try:
        return config.runtime in backends.get(config.backend, config.runtime).runtimes
    except PluginError:
        return False


def model_identity(context: ModelContext, shared: bool) -> bytes:
    """Return the identity of the version being loaded: 32 bytes.

    In a private cache the identity is random, so every reload invalidates the previous responses.
    In a `shared` cache it is a digest of namespace, name, version, configuration and the contents
    of all files. Other servers and later runs therefore find the responses. An ensemble's responses
    are never shared: they depend on its members, whose contents are unknown here. Raises `OSError`
    if a file cannot be read.
    """
    digest = hashlib.sha256()
    if not shared or context.config.HasField("ensemble_scheduling"):
        digest.update(os.urandom(32))
        return digest.digest()
    settings = context.config.SerializeToString(deterministic=True)
    for part in (
        context.namespace.encode(),
        context.name.encode(),
        b"%d" % context.version,
        settings,
    ):
        _add(digest, part)
    for path in _files(context.directory, context.path):
        _add(digest, path.relative_to(context.directory).as_posix().encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.digest()


def _add(digest: hashlib._Hash, part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)


def _files(directory: Path, version: Path) -> list[Path]:
    """Return the files of the version and those outside all version folders, such as labels."""
    found = [path for path in version.rglob("*") if path.is_file()]
    for entry in directory.iterdir():
        if entry.is_file():
            found.append(entry)
        elif entry.is_dir() and not entry.name.isdigit() and entry.name != "configs":
            found += [path for path in entry.rglob("*") if path.is_file()]
    return sorted(set(found))


def load_hint(
    text: str,
    listing: ModelListing,
    directory: Path | None,
    installed: Callable[[], Iterable[BackendFiles]],
) -> str:
    """Return the hint for the error `text` of a load, with a full stop before it, or ""."""
    hint = unreadable_hint(directory) if directory is not None else ""
    if not hint and any(sign in text for sign in _ABOUT_LAYOUT):
        hint = layout_hint(listing.name, listing.files, formats(list(installed())))
    start = "" if text.endswith("\n") else " " if text.endswith(".") else ". "
    return f"{start}{hint[:1].upper()}{hint[1:]}." if hint else ""


def unreadable_hint(directory: Path) -> str:
    """Return a hint about a file or folder that the server's user cannot read, or ""."""
    for number, (path, is_folder) in enumerate(_entries(directory)):
        if number >= _MOST_FILES:
            break
        if not os.access(path, os.R_OK | (os.X_OK if is_folder else 0), effective_ids=True):
            kind, mode = ("folder", "a+rx") if is_folder else ("file", "a+r")
            return f"the {kind} '{path}' cannot be read by user {_user()}: chmod {mode} '{path}'"
    return ""


def _entries(directory: Path) -> Iterator[tuple[str, bool]]:
    if directory.is_dir():
        yield str(directory), True
    for folder, folders, files in os.walk(directory):
        yield from ((os.path.join(folder, name), True) for name in folders)
        yield from ((os.path.join(folder, name), False) for name in files)


def _user() -> str:
    try:
        return f"'{getpass.getuser()}'" if os.geteuid() == os.getuid() else str(os.geteuid())
    except (KeyError, OSError):
        return str(os.geteuid())


def read_labels(config: ModelConfig, directory: Path) -> Mapping[str, Sequence[str]]:
    """Return the labels of each output that has a label file.

    Raises `InvalidArgument` for a file that is missing or outside the model's folder.
    """
    labels: dict[str, Sequence[str]] = {}
    for output in config.output:
        if output.label_filename:
            labels[output.name] = _lines(config.name, directory, output.label_filename)
    return labels


def _lines(model: str, directory: Path, filename: str) -> Sequence[str]:
    path = resolve_model_file(filename, directory, directory)
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidArgument(
            f"label file '{filename}' of model '{model}' cannot be read: {error.strerror} ({path})"
        ) from error


class ModelLoader:
    """Loads models in three steps: `prepare`, `complete`, and `load` for each version.

    Stateless.
    """

    def __init__(self, load_context: LoadContext) -> None:
        self._load_context = load_context

    @property
    def load_context(self) -> LoadContext:
        """The context that all models share."""
        return self._load_context

    def prepare(
        self,
        listing: ModelListing,
        path: Path,
        override: str | None,
        release: Callable[[], None],
        namespace: str = "",
        files_from_request: bool = False,
    ) -> PreparedModel:
        """Read the configuration, run the repository agents, and find the backend.

        The configuration of an ensemble is also normalized and validated. `override` is the
        configuration of a load request; with `files_from_request`, all files in `path` came with
        the request. If this raises, it calls `release`; otherwise the caller must call it later.
        Raises `InvalidConfig` with every problem of the configuration, or an agent's exception.
        """
        try:
            prepared = self._prepare(listing, path, override, release)
            prepared.namespace = namespace
            if override is not None:
                prepared.file_config = (
                    ModelConfig() if files_from_request else self._file_config(prepared.directory)
                )
            if is_ensemble(prepared.config):
                self._check_ensemble(prepared)
        except BaseException:
            release()
            raise
        return prepared

    def _check_ensemble(self, prepared: PreparedModel) -> None:
        """Normalize and validate the configuration of an ensemble except its tensors.

        As in Triton, the tensors are validated when the members are loaded.
        """
        prepared.config = self.normalized(prepared.config)
        problems = self._problems(prepared.config, prepared.name, tensors=False)
        if problems:
            prepared.agents.notify(AgentAction.LOAD_FAIL)
            raise InvalidConfig(with_positions(problems, prepared.positions), prepared.source)

    def _prepare(
        self, listing: ModelListing, path: Path, override: str | None, release: Callable[[], None]
    ) -> PreparedModel:
        load_context = self._load_context
        reading, source = read_config(path, load_context.config_name, override)
        if reading.problems:
            raise InvalidConfig(
                [*reading.problems, *self._further_problems(reading, listing.name)], source
            )
        given = reading.config
        agents = AgentChain(listing.name, given, self._agents(listing.name, given))
        try:
            directory = agents.load(path)
            if directory != path:
                listing = list_model(listing.name, directory, listing.renamed)
            if directory != path and override is None:
                reading, source = self._reread(reading, source, directory)
                given = reading.config
            config = self._with_backend(given, listing)
            misnamed = [
                problem
                for problem in identity_problems(config, listing.name)
                if problem.path == "name"
            ]
            refuse_problems(
                misnamed and (self._further_problems(reading, listing.name) or misnamed), source
            )
        except BaseException:
            agents.notify(AgentAction.LOAD_FAIL)
            raise
        return PreparedModel(
            listing,
            directory,
            config,
            source,
            reading.positions,
            agents,
            release,
            SharedObjects(),
            original_config=config,
        )

    def _file_config(self, directory: Path) -> ModelConfig:
        """Return the configuration in the model's file, or an empty one if it cannot be read."""
        try:
            return read_config(directory, self._load_context.config_name, None)[0].config
        except InvalidArgument:
            return ModelConfig()

    def describe(self, given: ModelConfig, listing: ModelListing) -> ModelConfig | None:
        """Return the configuration of a model that is not loaded.

        None if its files do not define inputs and outputs, or if agents may still change it.
        """
        if given.model_repository_agents.agents:
            return None
        try:
            config = self.normalized(self._with_backend(given, listing))
        except (InvalidArgument, StartupError):  # the load reports it
            return None
        config.name = config.name or listing.name
        return config if config.input and config.output else None

    def hint(self, text: str, listing: ModelListing, directory: Path | None) -> str:
        """Return a hint for the operator about a load that failed with `text`, or ""."""
        return load_hint(text, listing, directory, self._load_context.backends.files)

    def in_processes(self, prepared: PreparedModel, config: ModelConfig, version: int) -> bool:
        """Return whether the instances of a version run in their own processes.

        Raises the error if that is not possible.
        """
        if not config.backend:
            return False
        context = self._context(prepared, version)
        try:
            backend = self._backend(config)
            self._load_context.runners.check(context, backend)
            return is_isolated(context, backend)
        finally:
            context.metrics.close()

    def _with_backend(self, given: ModelConfig, listing: ModelListing) -> ModelConfig:
        backends = self._load_context.backends
        config = fill_backend(given, listing.name, listing.files, backends.files(given.backend))
        config.runtime = resolve_runtime(config, backends, listing.files)
        if listing.renamed:
            config.name = listing.name
        return config

    def _reread(
        self, reading: ParsedConfig, source: str, directory: Path
    ) -> tuple[ParsedConfig, str]:
        """Return the configuration in `directory` if the agents changed it, else the given one.

        Raises `InvalidConfig` with every problem of its text, and `InvalidArgument` if it names
        other agents than those that ran.
        """
        reread, where = read_config(directory, self._load_context.config_name, None)
        if not Path(where).is_file() or (reread.config == reading.config and not reread.problems):
            return reading, source
        refuse_problems(reread.problems, where)
        agents = reading.config.model_repository_agents
        if not reread.config.model_repository_agents.agents:
            reread.config.model_repository_agents.CopyFrom(agents)
        elif reread.config.model_repository_agents != agents:
            raise InvalidArgument(
                f"{where} names other repository agents than {source} did when it was read: "
                "it changed meanwhile, load the model again"
            )
        return reread, where

    def _further_problems(self, reading: ParsedConfig, name: str) -> list[ConfigProblem]:
        """Return further problems of a configuration with syntax errors.

        All problems are reported at once. Only keys that were read completely are validated.
        Whether a key is missing is unknown while others are unread.
        """
        config = normalize(reading.config, self._load_context.gpus.ids)
        config.name = config.name or name
        unread = [problem.path for problem in reading.problems]
        found = [
            problem
            for problem in self._problems(config, name)
            if problem.path in reading.positions
            and not any(path.startswith(problem.path) for path in unread)
        ]
        return with_positions(found, reading.positions)

    def complete(self, prepared: PreparedModel) -> None:
        """Make the configuration final: normalize it, complete it and validate it.

        Raises `InvalidConfig` with every problem, or the exception of the backend that completes
        it.
        """
        load_context = self._load_context
        self._check_paths(prepared)
        self._report_missing_device(prepared.config)
        prepared.config = given = self.normalized(prepared.config, self.preferred_groups(prepared))
        source = prepared.source
        if load_context.auto_complete and given.backend:
            prepared.config = self.normalized(self._auto_complete(prepared))
            if prepared.config != given:
                source = f"{source}, completed by backend '{given.backend}'"
        self.check(prepared.config, prepared, source)

    def _report_missing_device(self, config: ModelConfig) -> None:
        """Log the package to install if `config` asks for GPUs, but no plugin provides them."""
        if isinstance(self._load_context.gpus, NoDevice):
            kinds = {group.kind for group in config.instance_group} or {
                ModelInstanceGroup.KIND_AUTO
            }
            uses_gpu = bool(config.backend) and self._backend(config).uses_gpu
            if ModelInstanceGroup.KIND_GPU in kinds or (
                uses_gpu and ModelInstanceGroup.KIND_AUTO in kinds
            ):
                log.warning("model '%s' cannot use a GPU: %s", config.name, missing_plugin())

    def _check_paths(self, prepared: PreparedModel) -> None:
        """Raise `InvalidConfig` for paths outside the model's folder.

        This runs before the backend opens any of them.
        """
        config, own = prepared.config, prepared.file_config
        problems = list(file_name_problems(config))
        if own is not None and config.backend:
            paths = self._backend(config).path_parameters
            problems += foreign_path_problems(config, own, paths, prepared.directory)
        refuse_problems(with_positions(problems, prepared.positions), prepared.source)

    def check(self, config: ModelConfig, prepared: PreparedModel, source: str = "") -> None:
        """Raise `InvalidConfig` with every problem of `config`.

        `source` says where it came from; the default is the source of `prepared`.
        """
        problems = with_positions(self._problems(config, prepared.name), prepared.positions)
        refuse_problems(problems, source or prepared.source)

    def _problems(
        self, config: ModelConfig, name: str, *, tensors: bool = True
    ) -> list[ConfigProblem]:
        gpus = self._load_context.gpus
        minimum = gpus.settings.min_supported_compute_capability
        return validate(config, name, gpus.ids, tensors=tensors, min_compute_capability=minimum)

    def load(self, prepared: PreparedModel, version: int) -> LoadedModel:
        """Load one version; returns when its instances are ready.

        Raises the backend's exception.
        """
        load_context, config = self._load_context, prepared.config
        context = self._context(prepared, version)
        try:
            labels = {**prepared.labels, **read_labels(config, prepared.directory)}
            model = LoadedModel(
                context,
                RequestCheck(config, config.name),
                labels,
                load_context.timer,
                load_context.observers,
                load_context.wakeups,
                load_context.latencies,
            )
            if load_context.cache is not None and config.response_cache.enable:
                model.use_cache(
                    load_context.cache, model_identity(context, load_context.cache.shared)
                )
            scheduler = self._scheduler(context, model)
            model.attach(scheduler)
            if scheduler.uses_instances:
                self._run(context, model, scheduler)
        except BaseException:
            if context.shared is not None:
                unload_shared(self._backend(config), context.shared)
            context.metrics.close()
            raise
        return model

    def _run(self, context: ModelContext, model: LoadedModel, scheduler: Scheduler) -> None:
        backend = self._backend(context.config)
        context.layout = BatchLayout.of(context.config)
        if not loads_in_worker(context, backend):
            context.shared = backend.load(context)
        elif context.shared is not None:  # opened by auto-completion, not needed here
            unload_shared(backend, context.shared)
            context.shared = None
        model.request_parameters = backend.request_parameters
        model.runner = self._runner(context, backend, model, scheduler)
        try:
            model.instances = Instances(
                model.runner, scheduler, model.dispatcher, self._load_context.gpu_limits
            )
            model.instances.make(model.instances.prepare(context.config))
        except BaseException:
            model.runner.stop()
            raise

    def _runner(
        self,
        context: ModelContext,
        backend: type[Backend],
        model: LoadedModel,
        scheduler: Scheduler,
    ) -> Runner:
        config = context.config
        samples = (
            partial(warmup_samples, config, context.directory) if config.model_warmup else None
        )
        execution = ModelExecution(
            context, backend, model.dispatcher, model.callbacks, samples, scheduler.prefetch
        )
        try:
            return self._load_context.runners.get(context, backend).runner(execution)
        except StartupError as error:
            raise InvalidArgument(f"model '{config.name}': {error}") from error

    def preferred_groups(self, prepared: PreparedModel) -> Sequence[ModelInstanceGroup]:
        """Return the instance groups that the backend of a model prefers."""
        return self._ask_backend(
            prepared, lambda backend, model: backend.preferred_groups(model), ()
        )

    def _auto_complete(self, prepared: PreparedModel) -> ModelConfig:
        config = prepared.config
        completed = self._ask_backend(
            prepared, lambda backend, model: backend.auto_complete(model), config
        )
        return merge_auto_complete(config, completed)

    def _ask_backend(
        self,
        prepared: PreparedModel,
        question: Callable[[type[Backend], ModelContext], Answer],
        default: Answer,
    ) -> Answer:
        """Return what the backend says about the newest version to load."""
        versions = prepared.versions or prepared.selected_versions()[0]
        if not versions or not prepared.config.backend:
            return default
        context, backend = self._context(prepared, versions[-1]), self._backend(prepared.config)
        try:
            return question(backend, context)
        finally:
            prepared.shared_objects.store(context.version, backend, context.shared)
            context.metrics.close()

    def _context(self, prepared: PreparedModel, version: int) -> ModelContext:
        config, backends = prepared.config, self._load_context.backends
        return ModelContext(
            name=config.name,
            version=version,
            config=config,
            directory=prepared.directory,
            path=prepared.directory / str(version),
            parameters=_parameters(config, backends),
            output_types={
                output.name: DATATYPE_OF_NUMBER[output.data_type].name
                for output in config.output
                if output.data_type in DATATYPE_OF_NUMBER
            },
            options=backends.options(config.backend, config.runtime)
            if config.backend
            else NoOptions(),
            engine=self._load_context.engine,
            log=logging.LoggerAdapter(
                logging.getLogger("tritonpy.backend"), {"model": config.name, "version": version}
            ),
            shared=prepared.shared_objects.take(version),
            metrics=ModelMetrics(self._load_context.metrics),
            default_max_batch_size=(
                backends.default_max_batch_size(config.backend, config.runtime)
                if config.backend
                else 0
            ),
            backend_directory=backends.folder(config.backend, config.runtime),
            namespace=prepared.namespace,
            memory=self._load_context.gpus.model_memory(config.optimization),
            cancellation=prepared.attempt.cancellation
            if prepared.attempt is not None
            else LoadCancellation(),
            gpus=self._load_context.gpus,
        )

    def normalized(
        self, config: ModelConfig, preferred: Sequence[ModelInstanceGroup] = ()
    ) -> ModelConfig:
        """Return `config` with all defaults written out, including those of its backend."""
        if not config.backend:
            return normalize(config, self._load_context.gpus.ids)
        backend = self._backend(config)
        gpus, count = self._load_context.gpus.ids, backend.default_instance_count
        return normalize(config, gpus, count, backend.uses_gpu, preferred)

    def _agents(self, model: str, config: ModelConfig) -> list[RepoAgent]:
        named = [entry.name for entry in config.model_repository_agents.agents]
        missing = [name for name in self._load_context.required_agents if name not in named]
        if missing:
            raise InvalidArgument(
                f"model '{model}': this server loads only models that name the repository agent "
                f"'{missing[0]}' under model_repository_agents"
            )
        try:
            return [self._load_context.agents(name) for name in named]
        except StartupError as error:
            raise InvalidArgument(f"model '{model}': {error}") from error

    def _backend(self, config: ModelConfig) -> type[Backend]:
        try:
            return self._load_context.backends.get(config.backend, config.runtime)
        except StartupError as error:
            raise InvalidArgument(f"model '{config.name}': {error}") from error

    def _scheduler(self, context: ModelContext, model: LoadedModel) -> Scheduler:
        choice = context.config.WhichOneof("scheduling_choice")
        kind: type[Scheduler] = DirectScheduler
        if choice is not None:
            kind = self._registered(
                "tritonpy_schedulers", SCHEDULERS[choice], "scheduler", context.name
            )
        load_context = self._load_context

        policies: list[BatchPolicy] = []

        def policy(name: str) -> BatchPolicy:
            kind = self._registered("tritonpy_batch_policies", name, "batch policy", context.name)
            found: BatchPolicy = kind.create(config, context.version, context.directory, policy)
            model.accounting.add_policy(found)
            policies.append(found)
            return found

        folders = [context.path, context.directory, context.backend_directory]
        config = with_batch_library(context.config, folders)
        scheduler = kind(
            SchedulerContext(
                context.name,
                context.version,
                config,
                load_context.engine,
                policy,
                model.dispatcher.wake,
                context.directory,
                load_context.new_queue,
            )
        )
        if "batch_policy" in context.config.parameters and not policies:
            context.log.warning(_NO_EFFECT, context.config.parameters["batch_policy"].string_value)
        return scheduler

    def _registered(self, hook: str, name: str, description: str, model: str) -> Any:
        try:
            return self._load_context.plugins.get(hook, name, description).load()
        except StartupError as error:
            raise InvalidArgument(f"model '{model}': {error}") from error


def _parameters(config: ModelConfig, backends: Backends) -> Mapping[str, str]:
    """Return the model's parameters, plus those that the server sets for its backend."""
    own = string_parameters(config)
    isolation = backends.isolation(config.backend, config.runtime) if config.backend else None
    return own if isolation is None or PARAMETER in own else {**own, PARAMETER: isolation}
