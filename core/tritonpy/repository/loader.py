"""Makes a served model of a folder: configuration, backend, scheduler, instances."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tritonpy.api.backend import Backend, ModelContext
from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.load_cancellation import LoadCancellation
from tritonpy.api.options import NoOptions
from tritonpy.api.repo_agent import AgentAction, RepoAgent
from tritonpy.api.repository import ModelListing
from tritonpy.api.scheduler import Scheduler, SchedulerContext
from tritonpy.config.complete import fill_backend, merge_auto_complete
from tritonpy.config.model_files import file_name_problems, foreign_path_problems
from tritonpy.config.normalize import normalize
from tritonpy.config.problem import ConfigProblem, InvalidConfig, refuse_problems
from tritonpy.config.reading import ConfigReading
from tritonpy.config.validate import validate
from tritonpy.config.validate.batch_strategy import batch_library_problems
from tritonpy.config.validate.identity import identity_problems
from tritonpy.custom_metrics import ModelMetrics
from tritonpy.direct import DirectScheduler
from tritonpy.errors import InvalidArgument, StartupError
from tritonpy.layout import BatchLayout
from tritonpy.model.labels import read_labels
from tritonpy.model.loaded import LoadedModel
from tritonpy.model.request_check import RequestCheck
from tritonpy.model.warmup_samples import warmup_samples
from tritonpy.plugins.backends import Backends
from tritonpy.repository.agents import AgentChain
from tritonpy.repository.dependencies import is_ensemble
from tritonpy.repository.load_hints import load_hint
from tritonpy.repository.local import list_model
from tritonpy.repository.model_identity import model_identity
from tritonpy.repository.opened import Opened, free
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.reading import placed, read_config, string_parameters
from tritonpy.repository.runtime import runtime_of
from tritonpy.repository.surroundings import Surroundings
from tritonpy.runners.instances import Instances
from tritonpy.runners.isolation import PARAMETER, isolated, loads_elsewhere
from tritonpy.runners.local import LocalRunner
from tritonpy.runners.runner import Runner
from tritonpy.runners.workers.runner import WorkerRunner
from tritonpy.types import DATATYPE_OF_NUMBER
from tritonpy_protos.model_config_pb2 import ModelConfig

SCHEDULERS = {"dynamic_batching": "dynamic", "sequence_batching": "sequence", "ensemble_scheduling": "ensemble"}
_NO_EFFECT = "the parameter batch_policy '%s' has no effect: only dynamic_batching, and sequence_batching with 'oldest', ask a policy"


class ModelLoader:
    """Loads models in three steps, `prepare`, `complete`, and `load` for each version; keeps nothing of them."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings

    @property
    def surroundings(self) -> Surroundings:
        """What the models have in common."""
        return self._around

    def prepare(
        self,
        listing: ModelListing,
        path: Path,
        override: str | None,
        release: Callable[[], None],
        namespace: str = "",
        files_from_request: bool = False,
    ) -> Prepared:
        """Read the configuration, ask the agents to LOAD, and find the backend; an ensemble's steps are checked too.

        `override` is the configuration of a load request; with `files_from_request` all that lies in `path` came with it.
        `release` is called here when this raises, later by the caller. Raises InvalidConfig with every problem of the text, or what an agent raised.
        """
        try:
            prepared = self._prepare(listing, path, override, release)
            prepared.namespace = namespace
            if override is not None:
                prepared.own_config = ModelConfig() if files_from_request else self._own_config(prepared.directory)
            if is_ensemble(prepared.config):
                self._check_ensemble(prepared)
        except BaseException:
            release()
            raise
        return prepared

    def _check_ensemble(self, prepared: Prepared) -> None:
        """Normalise the configuration, and refuse it for all but its tensors: those are looked at when its members are there, as in Triton."""
        prepared.config = self.normalized(prepared.config)
        problems = self._problems(prepared.config, prepared.name, tensors=False)
        if problems:
            prepared.agents.tell(AgentAction.LOAD_FAIL)
            raise InvalidConfig(placed(problems, prepared.positions), prepared.source)

    def _prepare(
        self, listing: ModelListing, path: Path, override: str | None, release: Callable[[], None]
    ) -> Prepared:
        around = self._around
        reading, source = read_config(path, around.config_name, override)
        if reading.problems:
            raise InvalidConfig([*reading.problems, *self._also_wrong(reading, listing.name)], source)
        given = reading.config
        agents = AgentChain(listing.name, given, self._agents(listing.name, given))
        try:
            directory = agents.load(path)
            if directory != path:
                listing = list_model(listing.name, directory)
            if directory != path and override is None:
                reading, source = self._reread(reading, source, directory)
                given = reading.config
            config = self._with_backend(given, listing)
            misnamed = [problem for problem in identity_problems(config, listing.name) if problem.path == "name"]
            refuse_problems(misnamed and (self._also_wrong(reading, listing.name) or misnamed), source)
        except BaseException:
            agents.tell(AgentAction.LOAD_FAIL)
            raise
        return Prepared(listing, directory, config, source, reading.positions, agents, release, Opened(), given=config)

    def _own_config(self, directory: Path) -> ModelConfig:
        """Return what a model's own configuration file says; one that cannot be read says nothing."""
        try:
            return read_config(directory, self._around.config_name, None)[0].config
        except InvalidArgument:
            return ModelConfig()

    def described(self, given: ModelConfig, listing: ModelListing) -> ModelConfig | None:
        """Return the configuration of a model that is not loaded, None where its files do not tell its inputs and outputs, or are not final."""
        if given.model_repository_agents.agents:
            return None
        try:
            config = self.normalized(self._with_backend(given, listing))
        except (InvalidArgument, StartupError):  # its load will say so
            return None
        config.name = config.name or listing.name
        return config if config.input and config.output else None

    def hint(self, text: str, listing: ModelListing, directory: Path | None) -> str:
        """Return what an operator can do about a load that failed with `text`; empty where that is not known."""
        return load_hint(text, listing, directory, self._around.backends.files)

    def in_processes(self, prepared: Prepared, config: ModelConfig, version: int) -> bool:
        """Say whether the instances of a version will be processes of their own. Raises what isolation is refused with."""
        if not config.backend:
            return False
        context = self._context(prepared, version)
        try:
            return isolated(context, self._backend(config))
        finally:
            context.metrics.close()

    def _with_backend(self, given: ModelConfig, listing: ModelListing) -> ModelConfig:
        backends = self._around.backends
        config = fill_backend(given, listing.name, listing.files, backends.files(given.backend))
        config.runtime = runtime_of(config, backends)
        return config

    def _reread(self, reading: ConfigReading, source: str, directory: Path) -> tuple[ConfigReading, str]:
        """Return the configuration that the agents left, if they left one: that which named them was read before they looked at it.

        Raises InvalidConfig with every problem of its text, InvalidArgument where it names other agents than those that were asked.
        """
        again, where = read_config(directory, self._around.config_name, None)
        if not Path(where).is_file() or (again.config == reading.config and not again.problems):
            return reading, source
        refuse_problems(again.problems, where)
        asked = reading.config.model_repository_agents
        if not again.config.model_repository_agents.agents:
            again.config.model_repository_agents.CopyFrom(asked)
        elif again.config.model_repository_agents != asked:
            raise InvalidArgument(
                f"{where} names other repository agents than {source} did when it was read: it changed meanwhile, load it again"
            )
        return again, where

    def _also_wrong(self, reading: ConfigReading, name: str) -> list[ConfigProblem]:
        """Return what the rules say of the keys that could be read: a typo must not hide the other mistakes.

        Only of keys that the text has and that were read whole: whether one is missing can not be told while others are unread.
        """
        config = normalize(reading.config, self._around.gpus.ids)
        config.name = config.name or name
        unread = [problem.path for problem in reading.problems]
        found = [
            problem
            for problem in self._problems(config, name)
            if problem.path in reading.positions and not any(path.startswith(problem.path) for path in unread)
        ]
        return placed(found, reading.positions)

    def complete(self, prepared: Prepared) -> None:
        """Make the configuration final: normalised, completed by the backend, validated.

        Raises InvalidConfig with every problem, or what the backend raised.
        """
        around = self._around
        self._check_paths(prepared)
        prepared.config = given = self.normalized(prepared.config)
        source = prepared.source
        if around.auto_complete and given.backend:
            prepared.config = self.normalized(self._auto_complete(prepared))
            if prepared.config != given:
                source = f"{source}, completed by backend '{given.backend}'"
        self.check(prepared.config, prepared, source)

    def _check_paths(self, prepared: Prepared) -> None:
        """Raise InvalidConfig for paths that lead out of the model's folder: before the backend opens any of them."""
        config, own = prepared.config, prepared.own_config
        problems = list(file_name_problems(config))
        if own is not None and config.backend:
            paths = self._backend(config).path_parameters
            problems += foreign_path_problems(config, own, paths, prepared.directory)
        refuse_problems(placed(problems, prepared.positions), prepared.source)

    def check(self, config: ModelConfig, prepared: Prepared, source: str = "") -> None:
        """Raise InvalidConfig with every problem of `config`, which came from `source`: that of `prepared` where nothing is given."""
        problems = placed(self._problems(config, prepared.name), prepared.positions)
        problems += batch_library_problems(config, prepared.listing.files)
        refuse_problems(problems, source or prepared.source)

    def _problems(self, config: ModelConfig, name: str, *, tensors: bool = True) -> list[ConfigProblem]:
        gpus = self._around.gpus
        return validate(config, name, gpus.ids, tensors=tensors, min_compute_capability=gpus.min_compute_capability)

    def load(self, prepared: Prepared, version: int) -> LoadedModel:
        """Load one version; returns when its instances are ready. Raises what the backend raised."""
        around, config = self._around, prepared.config
        context = self._context(prepared, version)
        try:
            labels = {**prepared.labels, **read_labels(config, prepared.directory)}
            model = LoadedModel(
                context,
                RequestCheck(config, config.name),
                labels,
                around.timer,
                around.observers,
                around.rings,
                around.latencies,
            )
            if around.cache is not None and config.response_cache.enable:
                model.use_cache(around.cache, model_identity(context, around.cache.shared))
            scheduler = self._scheduler(context, model)
            model.attach(scheduler)
            if scheduler.uses_instances:
                self._run(context, model, scheduler)
        except BaseException:
            if context.shared is not None:
                free(self._backend(config), context.shared)
            context.metrics.close()
            raise
        return model

    def _run(self, context: ModelContext, model: LoadedModel, scheduler: Scheduler) -> None:
        backend = self._backend(context.config)
        context.layout = BatchLayout.of(context.config)
        if not loads_elsewhere(context, backend):
            context.shared = backend.load(context)
        elif context.shared is not None:  # opened to complete the configuration, and of no use here
            free(backend, context.shared)
            context.shared = None
        model.request_parameters = backend.request_parameters
        model.runner = self._runner(context, backend, model, scheduler)
        try:
            model.instances = Instances(model.runner, scheduler, model.dispatcher, self._around.gpus.limits)
            model.instances.make(model.instances.prepare(context.config))
        except BaseException:
            model.runner.stop()
            raise

    def _runner(
        self, context: ModelContext, backend: type[Backend], model: LoadedModel, scheduler: Scheduler
    ) -> Runner:
        around, config = self._around, context.config
        samples = partial(warmup_samples, config, context.directory) if config.model_warmup else None
        if not isolated(context, backend):
            cancel_calls = around.neighbours.graph.cancel_calls_for
            return LocalRunner(
                context,
                backend,
                model.dispatcher,
                around.limiter,
                model.guards,
                cancel_calls,
                around.threads,
                around.background,
                around.rings,
                samples,
                around.host_policies,
            )
        launcher = backend.worker_launcher(context)
        if launcher is None:
            from tritonpy.runners.workers.backend_process import SpawnLauncher

            launcher = SpawnLauncher(context, backend)
        return WorkerRunner(
            context,
            backend,
            launcher,
            model.dispatcher,
            around.rings,
            around.background,
            around.limiter,
            model.guards,
            around.neighbours,
            scheduler.prefetch,
            samples,
            around.host_policies,
        )

    def _auto_complete(self, prepared: Prepared) -> ModelConfig:
        versions = prepared.versions or prepared.chosen()[0]
        if not versions:
            return prepared.config
        context, backend = self._context(prepared, versions[-1]), self._backend(prepared.config)
        try:
            completed = backend.auto_complete(context)
        finally:
            prepared.opened.keep(context.version, backend, context.shared)
            context.metrics.close()
        return merge_auto_complete(prepared.config, completed)

    def _context(self, prepared: Prepared, version: int) -> ModelContext:
        config, backends = prepared.config, self._around.backends
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
            options=backends.options(config.backend, config.runtime) if config.backend else NoOptions(),
            engine=self._around.engine,
            log=logging.LoggerAdapter(
                logging.getLogger("tritonpy.backend"), {"model": config.name, "version": version}
            ),
            shared=prepared.opened.take(version),
            metrics=ModelMetrics(self._around.metrics),
            default_max_batch_size=(
                backends.default_max_batch_size(config.backend, config.runtime) if config.backend else 0
            ),
            backend_directory=backends.folder(config.backend, config.runtime),
            namespace=prepared.namespace,
            memory=self._around.gpus.pools.of_model(config.optimization),
            cancellation=prepared.attempt.cancellation if prepared.attempt is not None else LoadCancellation(),
        )

    def normalized(self, config: ModelConfig) -> ModelConfig:
        """Return `config` with every default written out, those of its backend too."""
        if not config.backend:
            return normalize(config, self._around.gpus.ids)
        backend = self._backend(config)
        return normalize(config, self._around.gpus.ids, backend.default_instance_count, backend.uses_gpu)

    def _agents(self, model: str, config: ModelConfig) -> list[RepoAgent]:
        named = [entry.name for entry in config.model_repository_agents.agents]
        missing = [name for name in self._around.required_agents if name not in named]
        if missing:
            raise InvalidArgument(
                f"model '{model}': this server loads only models that name the repository agent '{missing[0]}' under model_repository_agents"
            )
        try:
            return [self._around.agents(name) for name in named]
        except StartupError as error:
            raise InvalidArgument(f"model '{model}': {error}") from error

    def _backend(self, config: ModelConfig) -> type[Backend]:
        try:
            return self._around.backends.get(config.backend, config.runtime)
        except StartupError as error:
            raise InvalidArgument(f"model '{config.name}': {error}") from error

    def _scheduler(self, context: ModelContext, model: LoadedModel) -> Scheduler:
        choice = context.config.WhichOneof("scheduling_choice")
        kind: type[Scheduler] = DirectScheduler
        if choice is not None:
            kind = self._registered("tritonpy_schedulers", SCHEDULERS[choice], "scheduler", context.name)
        around = self._around

        cutting: list[BatchPolicy] = []

        def policy(name: str) -> BatchPolicy:
            found: BatchPolicy = self._registered("tritonpy_batch_policies", name, "batch policy", context.name)(
                context.config
            )
            model.accounting.teach(found)
            cutting.append(found)
            return found

        scheduler = kind(
            SchedulerContext(
                context.name,
                context.version,
                context.config,
                around.engine,
                policy,
                model.dispatcher.wake,
                context.directory,
                around.line,
            )
        )
        if "batch_policy" in context.config.parameters and not cutting:
            context.log.warning(_NO_EFFECT, context.config.parameters["batch_policy"].string_value)
        return scheduler

    def _registered(self, hook: str, name: str, what: str, model: str) -> Any:
        try:
            return self._around.plugins.get(hook, name, what).load()
        except StartupError as error:
            raise InvalidArgument(f"model '{model}': {error}") from error


def _parameters(config: ModelConfig, backends: Backends) -> Mapping[str, str]:
    """Return the model's own parameters, and those that the server's configuration gives to all models of its backend."""
    own = string_parameters(config)
    isolation = backends.isolation(config.backend, config.runtime) if config.backend else None
    return own if isolation is None or PARAMETER in own else {**own, PARAMETER: isolation}
