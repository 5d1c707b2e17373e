"""Rules that compare an ensemble's steps with the configurations of its members. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tritonpy_config.model_fit import WILDCARD, dims_text, qualified_name
from tritonpy_config.problem import ConfigProblem, entry
from tritonpy_protos.model_config_pb2 import (
    DataType,
    ModelConfig,
    ModelEnsembling,
    ModelInput,
    ModelOutput,
)


@dataclass(frozen=True, slots=True)
class _Tensor:
    """An ensemble's tensor, as one model describes it."""

    model: str
    datatype: DataType
    dims: tuple[int, ...]
    batched: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return (WILDCARD, *self.dims) if self.batched else self.dims


@dataclass(frozen=True, slots=True)
class _Step:
    """One step, the final configuration of its model, and the step's path in the configuration."""

    definition: ModelEnsembling.Step
    member: ModelConfig
    path: str

    @property
    def model(self) -> str:
        return qualified_name(self.definition.model_namespace, self.definition.model_name)

    def tensor(self, tensor: ModelInput | ModelOutput) -> _Tensor:
        return _Tensor(
            self.model, tensor.data_type, tuple(tensor.dims), self.member.max_batch_size > 0
        )


def member_problems(
    name: str, config: ModelConfig, members: Sequence[ModelConfig]
) -> list[ConfigProblem]:
    """Return all mismatches between the ensemble `name` and its members.

    `config` is valid by itself. `members` are the final configurations of the steps' models, in the
    order of the steps.
    """
    steps = [
        _Step(definition, member, f"ensemble_scheduling.step[{index}]")
        for index, (definition, member) in enumerate(
            zip(config.ensemble_scheduling.step, members, strict=True)
        )
    ]
    known = _own_tensors(name, config)
    problems = [problem for step in steps for problem in _step_problems(name, config, step, known)]
    return problems or list(_flow_problems(name, config, steps, known))


def any_decoupled(members: Iterable[ModelConfig]) -> bool:
    """Return whether an ensemble of `members` is decoupled: it is if any member is."""
    return any(member.model_transaction_policy.decoupled for member in members)


def _own_tensors(name: str, config: ModelConfig) -> dict[str, _Tensor]:
    known: dict[str, _Tensor] = {}
    tensors: list[ModelInput | ModelOutput] = [*config.input, *config.output]
    for tensor in tensors:
        dims = tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims
        known.setdefault(
            tensor.name, _Tensor(name, tensor.data_type, tuple(dims), config.max_batch_size > 0)
        )
    return known


def _step_problems(
    name: str, config: ModelConfig, step: _Step, known: dict[str, _Tensor]
) -> Iterator[ConfigProblem]:
    size = step.member.max_batch_size
    # a model without batching matches if the whole shapes do
    if size and size < config.max_batch_size:
        text = (
            f"ensemble {name} allows maximum batch size {config.max_batch_size}, "
            "but it contains model "
            f"{step.definition.model_name} which only allows maximum batch size to be {size}"
        )
        yield ConfigProblem(step.path, text)
    yield from _input_problems(name, step, known)
    yield from _output_problems(name, step, known)


def _input_problems(name: str, step: _Step, known: dict[str, _Tensor]) -> Iterator[ConfigProblem]:
    inputs, mapped = (
        {tensor.name: tensor for tensor in step.member.input},
        step.definition.input_map,
    )
    path = f"{step.path}.input_map"
    for key in sorted(set(mapped) - set(inputs)):
        text = (
            f"ensemble tensor {mapped[key]} is mapping to non-existing input {key} in model "
            f"{step.model}"
        )
        yield ConfigProblem(entry(path, key), f"in ensemble {name}, {text}")
    for key, tensor in inputs.items():
        if key in mapped:
            yield from _mismatch(name, mapped[key], known, step.tensor(tensor), entry(path, key))
        elif not tensor.optional:
            text = f"input {key} in model {step.model} is not mapped to any ensemble tensors"
            yield ConfigProblem(path, f"in ensemble {name}, {text}")


def _output_problems(name: str, step: _Step, known: dict[str, _Tensor]) -> Iterator[ConfigProblem]:
    outputs, mapped = (
        {tensor.name: tensor for tensor in step.member.output},
        step.definition.output_map,
    )
    path = f"{step.path}.output_map"
    for key in sorted(mapped):
        if key in outputs:
            yield from _mismatch(
                name, mapped[key], known, step.tensor(outputs[key]), entry(path, key)
            )
        else:
            model = step.definition.model_name
            text = (
                f"ensemble tensor {mapped[key]} is mapped from non-existing output {key} in "
                f"model {model}"
            )
            yield ConfigProblem(entry(path, key), f"in ensemble {name}, {text}")


def _mismatch(
    name: str, tensor: str, known: dict[str, _Tensor], described: _Tensor, path: str
) -> Iterator[ConfigProblem]:
    """Compare a model's description of a tensor with the first one."""
    first = known.setdefault(tensor, described)
    if first.datatype != described.datatype:
        mismatch = "data type", DataType.Name(first.datatype), DataType.Name(described.datatype)
    elif not (_fit(first.dims, described.dims) or _fit(first.shape, described.shape)):
        mismatch = "shape", dims_text(first.shape), dims_text(described.shape)
    else:
        return
    kind, before, now = mismatch
    text = (
        f"inconsistent {kind}: {before} is inferred from model {first.model} while {now} is "
        f"inferred from model {described.model}"
    )
    yield ConfigProblem(path, f"in ensemble {name}, ensemble tensor {tensor}: {text}")


def _fit(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) == len(other) and all(
        WILDCARD in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True)
    )


def _flow_problems(
    name: str, config: ModelConfig, steps: Sequence[_Step], known: Mapping[str, _Tensor]
) -> Iterator[ConfigProblem]:
    """Yield problems of steps and outputs that join responses of different decoupled steps."""
    streams = {tensor.name: 0 for tensor in config.input}
    waiting, count = list(steps), 0
    while ready := [
        step for step in waiting if streams.keys() >= set(step.definition.input_map.values())
    ]:
        for step in ready:
            waiting.remove(step)
            joined = {streams[tensor] for tensor in step.definition.input_map.values()}
            outputs = [
                step.definition.output_map[key] for key in sorted(step.definition.output_map)
            ]
            if len(joined) > 1:
                yield _joins(name, known[outputs[0]].model, f"{step.path}.input_map")
            stream = min(joined)
            if step.member.model_transaction_policy.decoupled:
                count += 1
                stream = count
            streams |= dict.fromkeys(outputs, stream)
    if len(_known(streams, [output.name for output in config.output])) > 1:
        yield _joins(name, name, "output")


def _known(streams: Mapping[str, int], tensors: Collection[str]) -> set[int]:
    return {streams[tensor] for tensor in tensors if tensor in streams}


def _joins(name: str, model: str, path: str) -> ConfigProblem:
    text = f"step of model '{model}' receives inputs originated from different decoupled models"
    return ConfigProblem(path, f"in ensemble {name}, {text}")
