"""Resolution of an ensemble against its ready members: final configuration, labels and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tritonpy.config.problem import refuse_problems
from tritonpy.config.qualified_names import called_model, namespace_of
from tritonpy.config.validate.ensemble_members import any_decoupled, member_problems
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.config_file import with_positions
from tritonpy.repository.dependencies import LATEST
from tritonpy.repository.ensemble_spec import MemberVersions
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy_protos.model_config_pb2 import ModelConfig


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


def member_models(config: ModelConfig, versions_of_steps: MemberVersions) -> dict[tuple[str, int], LoadedModel]:
    """Return the models of the steps, by the name and version that a step calls.

    The newest version is also registered as version -1.
    """
    models: dict[tuple[str, int], LoadedModel] = {}
    for step, versions in zip(config.ensemble_scheduling.step, versions_of_steps, strict=True):
        name = called_model(step)
        models |= {(name, model.version): model for model in versions} | {(name, LATEST): versions[-1]}
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
