"""Execution plan of an ensemble: the tensors that each step waits for, by number. Immutable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import OutputSpec
from tritonpy.config import called_model, needed_steps

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelEnsembling, ModelOutput

LATEST = -1


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleStep:
    """One call of a model. Tensors are numbers in the plan.

    `inputs` has pairs of a model input and its tensor, `outputs` maps model outputs to tensors.
    `requested_outputs` is what the call requests. `index` is the position among the steps of the
    plan, `place` that among the steps of the configuration. `rank` is greater than the ranks of all
    steps that this one depends on. `description` identifies the step in messages.
    """

    index: int
    place: int
    model: str
    version: int
    inputs: Sequence[tuple[str, int]]
    outputs: Mapping[str, int]
    requested_outputs: dict[str, OutputSpec]
    rank: int
    description: str


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleOutput:
    """An output of the ensemble with its dimensions, without the batch dimension."""

    name: str
    tensor: int
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The steps and tensors of an ensemble that are needed for some of its outputs.

    Indexed by tensor: `tensors` (names), `waiting` (steps that read it), `uses` (number of reads)
    and `is_output`. Indexed by step: `missing`, the number of tensors that it waits for.
    """

    ensemble: str
    batched: bool
    decoupled: bool
    steps: Sequence[EnsembleStep]
    inputs: Sequence[tuple[str, int]]
    outputs: Sequence[EnsembleOutput]
    tensors: Sequence[str]
    waiting: Sequence[Sequence[EnsembleStep]]
    uses: Sequence[int]
    missing: Sequence[int]
    is_output: Sequence[bool]


def make_plan(config: ModelConfig, names: Collection[str] | None = None) -> Plan:
    """Return the plan for the outputs `names` (None: all), without steps they do not need.

    `config` is a validated ensemble: every tensor has one producer, and there are no cycles.
    """
    outputs = [output for output in config.output if names is None or output.name in names]
    parts = _needed(config.ensemble_scheduling.step, {output.name for output in outputs})
    numbers = _Numbers()
    inputs = [
        (tensor.name, numbers[tensor.name])
        for tensor in config.input
        if _is_read(tensor.name, parts)
    ]
    steps = _steps(parts, numbers)
    ends = [EnsembleOutput(output.name, numbers[output.name], _dims(output)) for output in outputs]
    waiting: list[list[EnsembleStep]] = [[] for _ in numbers.names]
    uses = [0] * len(numbers.names)
    for step in steps:
        for tensor in dict.fromkeys(tensor for _, tensor in step.inputs):
            waiting[tensor].append(step)
        for _, tensor in step.inputs:
            uses[tensor] += 1
    is_output = [False] * len(numbers.names)
    for end in ends:
        is_output[end.tensor] = True
    return Plan(
        ensemble=config.name,
        batched=config.max_batch_size > 0,
        decoupled=config.model_transaction_policy.decoupled,
        steps=steps,
        inputs=inputs,
        outputs=ends,
        tensors=numbers.names,
        waiting=waiting,
        uses=uses,
        missing=[len({tensor for _, tensor in step.inputs}) for step in steps],
        is_output=is_output,
    )


class _Numbers(dict[str, int]):
    """Assigns consecutive numbers to names."""

    @property
    def names(self) -> list[str]:
        return list(self)

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


@dataclass(frozen=True, slots=True)
class _Part:
    """A needed step, its position in the configuration, and its needed outputs."""

    step: ModelEnsembling.Step
    place: int
    outputs: Sequence[tuple[str, str]]


def _needed(steps: Sequence[ModelEnsembling.Step], names: set[str]) -> list[_Part]:
    """Return the steps that produce the tensors `names`, in configuration order."""
    places = needed_steps(steps, names)
    read = {tensor for place in places for tensor in steps[place].input_map.values()} | names
    return [
        _Part(
            steps[place],
            place,
            sorted(
                (name, tensor) for name, tensor in steps[place].output_map.items() if tensor in read
            ),
        )
        for place in places
    ]


def _is_read(tensor: str, parts: Iterable[_Part]) -> bool:
    return any(tensor in part.step.input_map.values() for part in parts)


def _steps(parts: Sequence[_Part], numbers: _Numbers) -> list[EnsembleStep]:
    ranks = _ranks(parts)
    return [
        EnsembleStep(
            index=index,
            place=part.place,
            model=called_model(part.step),
            version=part.step.model_version,
            inputs=[
                (name, numbers[tensor]) for name, tensor in sorted(part.step.input_map.items())
            ],
            outputs={name: numbers[tensor] for name, tensor in part.outputs},
            requested_outputs={name: OutputSpec(name) for name, _ in part.outputs},
            rank=ranks[index],
            description=_describe(part),
        )
        for index, part in enumerate(parts)
    ]


def _describe(part: _Part) -> str:
    step = part.step
    version = "" if step.model_version == LATEST else f" version {step.model_version}"
    made, read = (
        ", ".join(f"'{tensor}'" for tensor in dict.fromkeys(tensors))
        for tensors in (sorted(step.output_map.values()), sorted(step.input_map.values()))
    )
    return f"step {part.place}, model '{step.model_name}'{version}: {made} from {read}"


def _ranks(parts: Sequence[_Part]) -> list[int]:
    """Return a number for each step, greater than those of all steps that it depends on."""
    maker = {tensor: index for index, part in enumerate(parts) for _, tensor in part.outputs}
    before = [
        {maker[tensor] for tensor in part.step.input_map.values() if tensor in maker}
        for part in parts
    ]
    after: list[list[int]] = [[] for _ in parts]
    for index, makers in enumerate(before):
        for each in makers:
            after[each].append(index)
    ranks, left = [0] * len(parts), [len(makers) for makers in before]
    todo = [index for index, count in enumerate(left) if not count]
    while todo:
        index = todo.pop()
        for then in after[index]:
            ranks[then] = max(ranks[then], ranks[index] + 1)
            left[then] -= 1
            if not left[then]:
                todo.append(then)
    return ranks


def _dims(output: ModelOutput) -> tuple[int, ...]:
    """Return the dimensions that the steps produce. Clients may see a reshaped output."""
    return tuple(output.reshape.shape if output.HasField("reshape") else output.dims)
