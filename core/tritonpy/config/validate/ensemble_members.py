"""What an ensemble's steps say of the models that they run, compared with what those models say of themselves. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tritonpy.config.dims import WILDCARD, dims_text
from tritonpy.config.positions import entry
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.qualified import qualified
from tritonpy_protos.model_config_pb2 import DataType, ModelConfig, ModelEnsembling, ModelInput, ModelOutput


@dataclass(frozen=True, slots=True)
class _Tensor:
    """What one model says of an ensemble's tensor."""

    model: str
    datatype: DataType
    dims: tuple[int, ...]
    batched: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return (WILDCARD, *self.dims) if self.batched else self.dims


@dataclass(frozen=True, slots=True)
class _Step:
    """One step, the final configuration of its model, and where the step stands."""

    said: ModelEnsembling.Step
    member: ModelConfig
    path: str

    @property
    def model(self) -> str:
        return qualified(self.said.model_namespace, self.said.model_name)

    def tensor(self, tensor: ModelInput | ModelOutput) -> _Tensor:
        return _Tensor(self.model, tensor.data_type, tuple(tensor.dims), self.member.max_batch_size > 0)


def member_problems(name: str, config: ModelConfig, members: Sequence[ModelConfig]) -> list[ConfigProblem]:
    """Return everything in which the ensemble called `name` does not fit its members.

    `config` is sound by itself; `members` has the final configuration of each step's model, in the order of the steps.
    """
    steps = [
        _Step(said, member, f"ensemble_scheduling.step[{index}]")
        for index, (said, member) in enumerate(zip(config.ensemble_scheduling.step, members, strict=True))
    ]
    known = _own_tensors(name, config)
    problems = [problem for step in steps for problem in _step_problems(name, config, step, known)]
    return problems or list(_flow_problems(name, config, steps, known))


def any_decoupled(members: Iterable[ModelConfig]) -> bool:
    """Say whether an ensemble of `members` answers any number of times: it does where one of them may."""
    return any(member.model_transaction_policy.decoupled for member in members)


def _own_tensors(name: str, config: ModelConfig) -> dict[str, _Tensor]:
    known: dict[str, _Tensor] = {}
    tensors: list[ModelInput | ModelOutput] = [*config.input, *config.output]
    for tensor in tensors:
        dims = tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims
        known.setdefault(tensor.name, _Tensor(name, tensor.data_type, tuple(dims), config.max_batch_size > 0))
    return known


def _step_problems(name: str, config: ModelConfig, step: _Step, known: dict[str, _Tensor]) -> Iterator[ConfigProblem]:
    size = step.member.max_batch_size
    if size and size < config.max_batch_size:  # a model without batches fits where the whole shapes do
        text = (
            f"ensemble {name} allows maximum batch size {config.max_batch_size}, but it contains model "
            f"{step.said.model_name} which only allows maximum batch size to be {size}"
        )
        yield ConfigProblem(step.path, text)
    yield from _input_problems(name, step, known)
    yield from _output_problems(name, step, known)


def _input_problems(name: str, step: _Step, known: dict[str, _Tensor]) -> Iterator[ConfigProblem]:
    inputs, mapped = {tensor.name: tensor for tensor in step.member.input}, step.said.input_map
    path = f"{step.path}.input_map"
    for key in sorted(set(mapped) - set(inputs)):
        text = f"ensemble tensor {mapped[key]} is mapping to non-existing input {key} in model {step.model}"
        yield ConfigProblem(entry(path, key), f"in ensemble {name}, {text}")
    for key, tensor in inputs.items():
        if key in mapped:
            yield from _mismatch(name, mapped[key], known, step.tensor(tensor), entry(path, key))
        elif not tensor.optional:
            text = f"input {key} in model {step.model} is not mapped to any ensemble tensors"
            yield ConfigProblem(path, f"in ensemble {name}, {text}")


def _output_problems(name: str, step: _Step, known: dict[str, _Tensor]) -> Iterator[ConfigProblem]:
    outputs, mapped = {tensor.name: tensor for tensor in step.member.output}, step.said.output_map
    path = f"{step.path}.output_map"
    for key in sorted(mapped):
        if key in outputs:
            yield from _mismatch(name, mapped[key], known, step.tensor(outputs[key]), entry(path, key))
        else:
            model = step.said.model_name
            text = f"ensemble tensor {mapped[key]} is mapped from non-existing output {key} in model {model}"
            yield ConfigProblem(entry(path, key), f"in ensemble {name}, {text}")


def _mismatch(name: str, tensor: str, known: dict[str, _Tensor], said: _Tensor, path: str) -> Iterator[ConfigProblem]:
    """Compare what a model says of a tensor with who spoke of it first."""
    first = known.setdefault(tensor, said)
    if first.datatype != said.datatype:
        what = "data type", DataType.Name(first.datatype), DataType.Name(said.datatype)
    elif not (_fit(first.dims, said.dims) or _fit(first.shape, said.shape)):
        what = "shape", dims_text(first.shape), dims_text(said.shape)
    else:
        return
    kind, before, now = what
    text = f"inconsistent {kind}: {before} is inferred from model {first.model} while {now} is inferred from model {said.model}"
    yield ConfigProblem(path, f"in ensemble {name}, ensemble tensor {tensor}: {text}")


def _fit(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) == len(other) and all(
        WILDCARD in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True)
    )


def _flow_problems(
    name: str, config: ModelConfig, steps: Sequence[_Step], known: Mapping[str, _Tensor]
) -> Iterator[ConfigProblem]:
    """Follow the tensors: each answer of a decoupled model begins a stream of its own, and no step can join two of them."""
    streams = {tensor.name: 0 for tensor in config.input}
    waiting, count = list(steps), 0
    while ready := [step for step in waiting if streams.keys() >= set(step.said.input_map.values())]:
        for step in ready:
            waiting.remove(step)
            joined = {streams[tensor] for tensor in step.said.input_map.values()}
            outputs = [step.said.output_map[key] for key in sorted(step.said.output_map)]
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
