"""What an ensemble becomes on the models that serve now: its final configuration, and the labels that it has from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tritonpy.config.problem import refuse_problems
from tritonpy.config.qualified import called_model, namespace_of
from tritonpy.config.validate.ensemble_members import any_decoupled, member_problems
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.dependencies import LATEST
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.reading import placed
from tritonpy.repository.wish import Standing
from tritonpy_protos.model_config_pb2 import ModelConfig


def linked(key: str, prepared: Prepared, found: Mapping[str, str], standing: Standing) -> Prepared:
    """Return what is to be loaded of the ensemble called `key`.

    `found` has the qualified name of the model behind each name, `standing` the serving versions of each step's model, ascending.
    Raises InvalidConfig with everything in which the ensemble does not fit its members.
    """
    config = ModelConfig()
    config.CopyFrom(prepared.config)
    for step in config.ensemble_scheduling.step:
        step.model_namespace = namespace_of(found[step.model_name], step.model_name)
    members = [versions[-1].config for versions in standing]
    problems = member_problems(key, config, members)
    refuse_problems(placed(problems, prepared.positions), prepared.source)
    config.model_transaction_policy.decoupled = any_decoupled(members)
    return replace(prepared, config=config, labels=_labels(config, standing))


def stood_on(config: ModelConfig, standing: Standing) -> dict[tuple[str, int], LoadedModel]:
    """Return the models behind the steps, by the name and version that a step calls; the newest version is also the one called -1."""
    models: dict[tuple[str, int], LoadedModel] = {}
    for step, versions in zip(config.ensemble_scheduling.step, standing, strict=True):
        name = called_model(step)
        models |= {(name, model.version): model for model in versions} | {(name, LATEST): versions[-1]}
    return models


def _labels(config: ModelConfig, standing: Standing) -> Mapping[str, Sequence[str]]:
    """Return the labels that the steps' models have for what they write."""
    found: dict[str, Sequence[str]] = {}
    for step, versions in zip(config.ensemble_scheduling.step, standing, strict=True):
        called = {model.version: model for model in versions}.get(step.model_version, versions[-1])
        for output, tensor in step.output_map.items():
            if output in called.labels:
                found[tensor] = called.labels[output]
    return found
