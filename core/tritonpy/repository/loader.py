"""Makes a served model of a folder: configuration, backend, scheduler, instances."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.engine import Engine
from tritonpy.api.observer import Observer
from tritonpy.api.options import NoOptions
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.repository import ModelListing
from tritonpy.api.scheduler import Scheduler, SchedulerContext
from tritonpy.config.complete import fill_backend, merge_auto_complete
from tritonpy.config.normalize import instance_specs, normalize
from tritonpy.config.problem import refuse_problems
from tritonpy.config.validate import validate
from tritonpy.direct import DirectScheduler
from tritonpy.errors import InvalidArgument, StartupError
from tritonpy.model.labels import read_labels
from tritonpy.model.loaded import LoadedModel
from tritonpy.model.request_check import RequestCheck
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.manager import PluginManager
from tritonpy.repository.agents import AgentChain
from tritonpy.repository.reading import placed, read_config, string_parameters
from tritonpy.repository.versions import version_folders
from tritonpy.runners.local import LocalRunner
from tritonpy.runners.timer import Timer
from tritonpy.types import DATATYPE_OF_NUMBER
from tritonpy_protos.model_config_pb2 import ModelConfig

SCHEDULERS = {"dynamic_batching": "dynamic", "sequence_batching": "sequence", "ensemble_scheduling": "ensemble"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every model of a server shares."""

    plugins: PluginManager
    backends: Backends
    engine: Engine
    timer: Timer
    limiter: RateLimiter
    observers: Sequence[Observer]
    agents: Callable[[str], RepoAgent]
    gpus: Sequence[int]
    auto_complete: bool = True
    config_name: str = ""


@dataclass(slots=True)
class Prepared:
    """A model that is ready to have its versions loaded: configuration final, agents asked."""

    listing: ModelListing
    directory: Path
    config: ModelConfig
    agents: AgentChain
    release: Callable[[], None]
    # What auto-completion opened, by version: the load of that version goes on from it.
    opened: dict[int, Any]


class ModelLoader:
    """Loads models; keeps nothing of them."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings

    def prepare(self, listing: ModelListing, path: Path, override: str | None, release: Callable[[], None]) -> Prepared:
        """Read, complete, normalise and validate the configuration, and ask the agents to LOAD.

        `release` is called here when this raises, later by the caller. Raises InvalidConfig with every problem, or what a backend or an agent raised.
        """
        try:
            return self._prepare(listing, path, override, release)
        except BaseException:
            release()
            raise

    def _prepare(
        self, listing: ModelListing, path: Path, override: str | None, release: Callable[[], None]
    ) -> Prepared:
        around = self._around
        reading, source = read_config(path, around.config_name, override)
        config = fill_backend(reading.checked(source), listing.name, listing.files, around.backends.files())
        agents = AgentChain(config, [around.agents(entry.name) for entry in config.model_repository_agents.agents])
        directory = agents.load(path)
        prepared = Prepared(listing, directory, self._normalize(config), agents, release, {})
        if around.auto_complete and config.backend:
            prepared.config = self._normalize(self._auto_complete(prepared))
        problems = placed(validate(prepared.config, listing.name, around.gpus), reading.positions)
        refuse_problems(problems, source)
        return prepared

    def load(self, prepared: Prepared, version: int) -> LoadedModel:
        """Load one version; returns when its instances are ready. Raises what the backend raised."""
        around, config = self._around, prepared.config
        context = self._context(prepared, version)
        labels = read_labels(config, prepared.directory)
        model = LoadedModel(context, RequestCheck(config, config.name), labels, around.timer, around.observers)
        scheduler = self._scheduler(context, model)
        model.attach(scheduler)
        if not scheduler.uses_instances:
            return model
        backend = self._backend(config)
        context.shared = backend.load(context)
        model.runner = LocalRunner(context, backend, model.dispatcher, around.limiter, model.guards)
        try:
            self._start_instances(model.config, model.runner, scheduler)
        except BaseException:
            model.runner.stop()
            raise
        return model

    def _start_instances(self, config: ModelConfig, runner: LocalRunner, scheduler: Scheduler) -> None:
        specs = [spec for spec in instance_specs(config) if not spec.passive]
        for spec in specs:
            self._around.limiter.register(spec.name, spec.device_id, config.instance_group[spec.group])
        scheduler.instances_changed(range(len(specs)))
        runner.start(
            [
                InstanceContext(spec.name, spec.kind, spec.device_id, index, spec.profiles)
                for index, spec in enumerate(specs)
            ]
        )

    def _auto_complete(self, prepared: Prepared) -> ModelConfig:
        versions, _ = version_folders(prepared.listing.files)
        if not versions:
            return prepared.config
        context = self._context(prepared, versions[-1])
        completed = self._backend(prepared.config).auto_complete(context)
        prepared.opened[context.version] = context.shared
        return merge_auto_complete(prepared.config, completed)

    def _context(self, prepared: Prepared, version: int) -> ModelContext:
        config, backends = prepared.config, self._around.backends
        return ModelContext(
            name=config.name,
            version=version,
            config=config,
            directory=prepared.directory,
            path=prepared.directory / str(version),
            parameters=string_parameters(config),
            output_types={
                output.name: DATATYPE_OF_NUMBER[output.data_type].name
                for output in config.output
                if output.data_type in DATATYPE_OF_NUMBER
            },
            options=backends.options(config.backend) if config.backend else NoOptions(),
            engine=self._around.engine,
            log=logging.LoggerAdapter(
                logging.getLogger("tritonpy.backend"), {"model": config.name, "version": version}
            ),
            shared=prepared.opened.pop(version, None),
            default_max_batch_size=backends.default_max_batch_size(config.backend) if config.backend else 0,
        )

    def _normalize(self, config: ModelConfig) -> ModelConfig:
        if not config.backend:
            return normalize(config, self._around.gpus)
        backend = self._backend(config)
        return normalize(config, self._around.gpus, backend.default_instance_count, backend.uses_gpu)

    def _backend(self, config: ModelConfig) -> type[Backend]:
        try:
            return self._around.backends.get(config.backend)
        except StartupError as error:
            raise InvalidArgument(f"model '{config.name}': {error}") from error

    def _scheduler(self, context: ModelContext, model: LoadedModel) -> Scheduler:
        choice = context.config.WhichOneof("scheduling_choice")
        kind: type[Scheduler] = DirectScheduler
        if choice is not None:
            kind = self._registered("tritonpy_schedulers", SCHEDULERS[choice], "scheduler", context.name)
        around = self._around

        def policy(name: str) -> BatchPolicy:
            found: BatchPolicy = self._registered("tritonpy_batch_policies", name, "batch policy", context.name)(
                context.config
            )
            return found

        return kind(
            SchedulerContext(
                context.name, context.version, context.config, around.engine, policy, model.dispatcher.wake
            )
        )

    def _registered(self, hook: str, name: str, what: str, model: str) -> Any:
        try:
            return self._around.plugins.get(hook, name, what).load()
        except StartupError as error:
            raise InvalidArgument(f"model '{model}': {error}") from error
