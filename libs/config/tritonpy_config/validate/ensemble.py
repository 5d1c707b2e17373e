"""Rules for an ensemble's steps and data flow that need only its own configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tritonpy_config.known_backends import ENSEMBLE_PLATFORM
from tritonpy_config.problem import ConfigProblem, entry
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelEnsembling


@dataclass(slots=True)
class _Node:
    """A tensor of the ensemble, with its sources and the tensors computed from it."""

    name: str
    is_output: bool = False
    ready: bool = False
    sources: list[_Node] = field(default_factory=list)
    targets: list[_Node] = field(default_factory=list)


def ensemble_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of an ensemble; the data flow is checked only if all steps are valid."""
    name = config.name
    if not config.HasField("ensemble_scheduling"):
        if config.platform == ENSEMBLE_PLATFORM:
            yield ConfigProblem(
                "ensemble_scheduling",
                (
                    f"ensemble scheduling must be set for ensemble {name} whose platform is "
                    f"{ENSEMBLE_PLATFORM}"
                ),
            )
        return
    yield from _setting_problems(config)
    steps = config.ensemble_scheduling.step
    if not steps:
        yield ConfigProblem(
            "ensemble_scheduling.step", f"must specify 'step' for ensemble '{name}'"
        )
        return
    nodes: dict[str, _Node] = {}
    found = [
        problem for index, step in enumerate(steps) for problem in _linked(step, index, name, nodes)
    ]  # fmt: skip
    yield from found if found else _flow_problems(config, nodes)


def _setting_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    name = config.name
    if config.platform != ENSEMBLE_PLATFORM:
        yield ConfigProblem(
            "platform",
            (
                f"ensemble scheduling cannot be set for model '{name}' whose platform is not "
                f"{ENSEMBLE_PLATFORM}"
            ),
        )
    if config.instance_group:
        yield ConfigProblem(
            "instance_group", f"instance group should not be specified for ensemble '{name}'"
        )
    if config.HasField("optimization"):
        yield ConfigProblem(
            "optimization", f"optimization should not be specified for ensemble '{name}'"
        )
    if config.model_warmup:
        yield ConfigProblem(
            "model_warmup", f"model_warmup can not be specified for ensemble '{name}'"
        )


def _linked(
    step: ModelEnsembling.Step, index: int, name: str, nodes: dict[str, _Node]
) -> Iterator[ConfigProblem]:
    path = f"ensemble_scheduling.step[{index}]"
    for key in ("model_name", "input_map", "output_map"):
        if not getattr(step, key):
            yield ConfigProblem(path, f"must specify '{key}' in step {index} of ensemble '{name}'")
    outputs = []
    for key in sorted(step.output_map):
        node = nodes.setdefault(step.output_map[key], _Node(step.output_map[key]))
        if node.is_output:
            yield ConfigProblem(
                entry(f"{path}.output_map", key),
                (
                    f"ensemble tensor '{node.name}' can appear in an output map only once for "
                    f"ensemble '{name}' step {index}"
                ),
            )
        node.is_output = True
        outputs.append(node)
    for key in sorted(step.input_map):
        source = nodes.setdefault(step.input_map[key], _Node(step.input_map[key]))
        for output in outputs:
            output.sources.append(source)
            source.targets.append(output)


def _flow_problems(config: ModelConfig, nodes: dict[str, _Node]) -> Iterator[ConfigProblem]:
    name = config.name
    found: list[ConfigProblem] = []
    for index, tensor in enumerate(config.input):
        if tensor.name not in nodes:
            text = f"ensemble input '{tensor.name}' for ensemble {name}' is not used"
            found.append(ConfigProblem(f"input[{index}].name", text))
    _mark_ready([nodes[tensor.name] for tensor in config.input if tensor.name in nodes])
    for index, output in enumerate(config.output):
        node = nodes.get(output.name)
        if node is None:
            text = f"ensemble output '{output.name}' for ensemble {name}' is not used"
            found.append(ConfigProblem(f"output[{index}].name", text))
        elif not node.ready:
            found.append(ConfigProblem(f"output[{index}].name", _not_written(node, name)))
    yield from found if found else _unused_problems(config, nodes)


def _mark_ready(waiting: list[_Node]) -> None:
    for node in waiting:
        node.ready = True
    while waiting:
        for target in waiting.pop().targets:
            if not target.ready and all(source.ready for source in target.sources):
                target.ready = True
                waiting.append(target)


def _not_written(output: _Node, name: str) -> str:
    """Return the error text for the output, with the missing tensor that is farthest upstream."""
    last, seen, sources = output, {output.name}, output.sources
    while (
        missing := next(
            (node for node in sources if not node.ready and node.name not in seen), None
        )
    ) is not None:
        seen.add(missing.name)
        last, sources = missing, missing.sources
    text = f"output '{output.name}' for ensemble '{name}' is not written"
    if last is output:
        return text
    return f"{text}: at least one of its depending tensors, '{last.name}', is not connected"


def _unused_problems(config: ModelConfig, nodes: dict[str, _Node]) -> Iterator[ConfigProblem]:
    outputs = {output.name for output in config.output}
    for node in nodes.values():
        if node.name not in outputs and not (node.ready and node.targets):
            yield ConfigProblem(
                "ensemble_scheduling.step",
                f"ensemble tensor '{node.name}' is unused in ensemble '{config.name}'",
            )
