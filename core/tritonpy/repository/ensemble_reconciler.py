"""Keeps ensembles in step with their members.

An ensemble serves while its members allow it, and is rebuilt when one of them is reloaded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.draining import Drainer, DrainJob
from tritonpy.repository.ensemble_spec import EnsembleSpec, EnsembleState, MemberVersions
from tritonpy.repository.model_table import ModelTable
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy.repository.version_loader import VersionLoader
from tritonpy_config.config_file import with_positions
from tritonpy_config.dependencies import (
    LATEST,
    MemberState,
    cycle_error,
    find_cycle,
    member_error,
    member_names,
    resolve_members,
)
from tritonpy_config.model_fit import called_model, namespace_of
from tritonpy_config.problem import InvalidConfig, refuse_problems
from tritonpy_config.validate.ensemble_members import any_decoupled, member_problems
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import TritonError

Known = Mapping[str, Collection[str]]
Ready = Mapping[str, Sequence[LoadedModel]]
log = logging.getLogger("tritonpy.repository")


def resolve_ensemble(
    key: str, prepared: PreparedModel, found: Mapping[str, str], versions_of_steps: MemberVersions
) -> PreparedModel:
    """Return the ensemble `key` with its final configuration and labels.

    `found` maps the name in a step to the qualified name of the model. `versions_of_steps` has the
    ready versions of each step's model, ascending. Raises `InvalidConfig` with every mismatch
    between the ensemble and its members.
    """
    config = ModelConfig()
    config.CopyFrom(prepared.config)
    for step in config.ensemble_scheduling.step:
        step.model_namespace = namespace_of(found[step.model_name], step.model_name)
    members = [versions[-1].config for versions in versions_of_steps]
    problems = member_problems(key, config, members)
    refuse_problems(with_positions(problems, prepared.positions), prepared.source)
    config.model_transaction_policy.decoupled = any_decoupled(members)
    return replace(prepared, config=config, labels=_labels(config, versions_of_steps))


def member_models(
    config: ModelConfig, versions_of_steps: MemberVersions
) -> dict[tuple[str, int], LoadedModel]:
    """Return the models of the steps, by the name and version that a step calls.

    The newest version is also registered as version -1.
    """
    models: dict[tuple[str, int], LoadedModel] = {}
    for step, versions in zip(config.ensemble_scheduling.step, versions_of_steps, strict=True):
        name = called_model(step)
        models |= {(name, model.version): model for model in versions} | {
            (name, LATEST): versions[-1]
        }
    return models


def _labels(config: ModelConfig, versions_of_steps: MemberVersions) -> Mapping[str, Sequence[str]]:
    """Return the labels of the ensemble's tensors, taken from the outputs of the steps' models."""
    found: dict[str, Sequence[str]] = {}
    for step, versions in zip(config.ensemble_scheduling.step, versions_of_steps, strict=True):
        model = {model.version: model for model in versions}.get(step.model_version, versions[-1])
        for output, tensor in step.output_map.items():
            if output in model.labels:
                found[tensor] = model.labels[output]
    return found


class EnsembleReconciler:
    """The requested ensembles, by qualified name.

    `reconcile` brings the ensembles in the model table up to date. It is called after every other
    change of the table, with no model's lock held. It takes one lock, does not wait and starts no
    instance. After concurrent loads and unloads, the last call leaves every ensemble in its correct
    state.
    """

    def __init__(
        self,
        table: ModelTable,
        version_loader: VersionLoader,
        drainer: Drainer,
        loaded: Callable[[LoadedModel], None],
    ) -> None:
        self._table = table
        self._version_loader = version_loader
        self._drainer = drainer
        self._notify_loaded = loaded
        self._states: dict[str, EnsembleState] = {}
        self._failures: dict[str, tuple[str, str]] = {}
        self._started: list[LoadedModel] = []
        self._pending_jobs: list[DrainJob] = []
        self._closed = False
        self._lock = threading.RLock()

    def set_spec(self, key: str, spec: EnsembleSpec) -> None:
        """Set the newest spec of an ensemble; `reconcile` applies it as soon as possible."""
        with self._lock:
            if self._closed:
                spec.discard()
                return
            state = self._states.setdefault(key, EnsembleState([]))
            for old in state.specs:
                if not old.has_served:
                    old.discard()
            state.specs = [spec, *(old for old in state.specs if old.has_served)]

    def spec(self, key: str) -> EnsembleSpec | None:
        """Return the newest spec of an ensemble, or None if it is not requested."""
        with self._lock:
            return self._states[key].specs[0] if key in self._states else None

    def revert_if_failed(self, key: str) -> str:
        """Return why the newest spec does not serve, and revert to the one that served before.

        Return an empty string if it serves. An ensemble that never served keeps waiting for its
        members.
        """
        with self._lock:
            state = self._states.get(key)
            if state is None or state.serving is state.specs[0]:
                return ""
            newest, *before = state.specs
            if before:
                newest.discard()
                state.specs = before
            else:
                self._table.set_model_reason(key, newest.error)
            return newest.error

    def remove_versions(self, key: str, versions: Collection[int]) -> None:
        """Remove some versions of the ensemble at the next `reconcile`."""
        with self._lock:
            state = self._states.get(key)
            for spec in state.specs if state is not None else ():
                remaining = [
                    version
                    for version in spec.prepared.selected_versions()[0]
                    if version not in versions
                ]
                spec.prepared = replace(spec.prepared, requested_versions=remaining)
                spec.overridden, spec.built_with = True, None

    def remove(self, key: str) -> list[DrainJob]:
        """Remove the ensemble; return what to drain."""
        with self._lock:
            state = self._states.pop(key, None)
            if state is None:
                return []
            self._table.clear_placeholder(key)
            old = [] if state.serving is None else self._table.swap(key, {})
            return _drain_jobs(key, state.specs, state.serving, old)

    def keys(self) -> list[str]:
        """Return all requested ensembles."""
        with self._lock:
            return list(self._states)

    def member_names(self, key: str) -> list[str]:
        """Return the member names in the newest spec; none for a model that is not an ensemble."""
        spec = self.spec(key)
        return [] if spec is None else member_names(spec.prepared.config)

    def members(self, key: str) -> list[str]:
        """Return the members of an ensemble; none for a model that is not an ensemble."""
        with self._lock:
            return self._member_keys(key, self._known_models())

    def is_member(self, key: str) -> bool:
        """Return whether any ensemble depends on a model."""
        with self._lock:
            known = self._known_models()
            return any(key in self._member_keys(ensemble, known) for ensemble in self._states)

    def record_load_failure(self, key: str, name: str, reason: str) -> None:
        """Record why a model failed to load."""
        with self._lock:
            self._failures[key] = name, reason

    def clear_load_failure(self, key: str) -> None:
        """Forget the failure of a model that serves now, or that was unloaded."""
        with self._lock:
            self._failures.pop(key, None)

    def reconcile(self) -> None:
        """Rebuild ensembles whose members changed, and stop those that cannot serve."""
        with self._lock:
            if not self._states:
                return  # cheap, as this is called for every one of thousands of models
            known = self._known_models()
            while not self._closed and any(
                [self._reconcile_one(key, known) for key in self._states]
            ):
                pass  # an ensemble may be a member of other ensembles
            started, self._started = self._started, []
            jobs, self._pending_jobs = self._pending_jobs, []
            self._drainer.drain(*jobs)
        for model in started:
            self._notify_loaded(model)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Prevent any change of the ensembles in this block."""
        with self._lock:
            yield

    def close(self) -> list[DrainJob]:
        """Remove all ensembles and accept no more; return what to drain."""
        with self._lock:
            self._closed = True
            return [job for key in list(self._states) for job in self.remove(key)]

    def _known_models(self) -> Known:
        """Return the qualified names of the members that specs name, by plain name."""
        known: dict[str, set[str]] = {
            name: set(self._table.serving_keys(name))
            for state in self._states.values()
            for spec in state.specs
            for name in member_names(spec.prepared.config)
        }
        others = {key: state.specs[0].prepared.name for key, state in self._states.items()}
        others |= {key: name for key, (name, _) in self._failures.items()} if known else {}
        for key, name in others.items():
            if name in known:
                known[name].add(key)
        return known

    def _member_keys(self, key: str, known: Known) -> list[str]:
        state = self._states.get(key)
        if state is None:
            return []
        prepared = state.effective_spec.prepared
        return list(resolve_members(prepared.config, prepared.namespace, known).values())

    def _reconcile_one(self, key: str, known: Known) -> bool:
        """Serve the first spec that can serve; return whether that changed anything."""
        state = self._states[key]
        for spec in state.specs:
            found = resolve_members(spec.prepared.config, spec.prepared.namespace, known)
            ready = {member: tuple(self._table.ready(member)) for member in found.values()}
            spec.member_error = self._error_of_members(key, spec, found, ready, known)
            if spec.member_error:
                continue
            versions = tuple(
                ready[found[step.model_name]]
                for step in spec.prepared.config.ensemble_scheduling.step
            )
            if versions != spec.built_with:
                models = self._build(key, spec, versions, found)
                if models:
                    self._serve(key, state, spec, models)
                    return True
            elif not spec.error:
                return False
        return self._stop_serving(key, state)

    def _error_of_members(
        self, key: str, spec: EnsembleSpec, found: Mapping[str, str], ready: Ready, known: Known
    ) -> str:
        cycle = find_cycle(
            key, lambda node: found.values() if node == key else self._member_keys(node, known)
        )
        if cycle:
            return cycle_error(key, cycle)
        members = {member: self._member(member, versions) for member, versions in ready.items()}
        return member_error(key, spec.prepared.config, found, members)

    def _member(self, key: str, ready: Sequence[LoadedModel]) -> MemberState:
        versions = [model.version for model in ready]
        state = self._states.get(key)
        if state is None:
            return MemberState(versions, failure=self._failures.get(key, ("", ""))[1])
        return (
            MemberState(versions)
            if state.serving
            else MemberState((), state.specs[0].invalid_reason, state.specs[0].load_error)
        )

    def _build(
        self, key: str, spec: EnsembleSpec, versions: MemberVersions, found: Mapping[str, str]
    ) -> Mapping[int, LoadedModel]:  # fmt: skip
        """Return the loaded versions, or nothing and set the error in `spec`."""
        spec.built_with, spec.mismatch, spec.load_error = versions, "", ""
        try:
            prepared = resolve_ensemble(key, spec.prepared, found, versions)
        except InvalidConfig as error:
            spec.mismatch = error.message
            return {}
        try:
            models = self._version_loader.load(prepared, self._version_loader.choose(prepared))
        except TritonError as error:
            spec.load_error = error.message
            return {}
        for model in models.values():
            model.members = member_models(prepared.config, versions)
        return models

    def _serve(
        self, key: str, state: EnsembleState, spec: EnsembleSpec, models: Mapping[int, LoadedModel]
    ) -> None:
        position = state.specs.index(spec)
        outdated, state.specs = state.specs[position + 1 :], state.specs[: position + 1]
        old = self._table.swap(key, models)
        replaced = state.serving if state.serving in outdated else None
        self._pending_jobs += _drain_jobs(key, outdated, replaced, old)
        log.info("successfully loaded '%s'", key)
        self._started += models.values()
        state.serving = spec
        spec.mark_served()

    def _stop_serving(self, key: str, state: EnsembleState) -> bool:
        if state.serving is None:
            return False
        log.error("%s", state.serving.error)
        self._pending_jobs.append(DrainJob(key, self._table.swap(key, {})))
        state.serving.built_with = None
        state.serving = None
        return True


def _drain_jobs(
    key: str, specs: Sequence[EnsembleSpec], serving: EnsembleSpec | None,
    models: Sequence[LoadedModel]
) -> list[DrainJob]:  # fmt: skip
    """Return the jobs for `specs` and the `models` that serve one of them."""
    jobs = [DrainJob(key, models, serving.prepared if serving is not None else None)]
    for spec in specs:
        if not spec.has_served:
            spec.discard()
        elif spec is not serving:
            jobs.append(DrainJob(key, (), spec.prepared))
    return jobs
