"""Pure mapping of configured tensor names to a model's inputs and outputs, as in Triton."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_torch.signature import Signature

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Log = logging.LoggerAdapter[logging.Logger]
_SEPARATOR = "__"


@dataclass(frozen=True, slots=True)
class NameMapping:
    """Maps batch tensors to input indexes, and configured outputs to output indexes.

    For a model that takes a dictionary, input indexes give only the order.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


def map_names(config: ModelConfig, signature: Signature, log: Log) -> NameMapping:
    """Return the mapping for the names in `config`; raise a `TritonError` for an unknown name."""
    if signature.has_free_names:
        return NameMapping(_free_inputs(config, signature, log), _free_outputs(config, log))
    return NameMapping(
        _find_indexes(config, "Input", _all_inputs(config), signature.input_numbers()),
        _find_indexes(config, "Output", _all_outputs(config), signature.output_numbers()),
    )


def _all_inputs(config: ModelConfig) -> list[str]:
    return [
        *[field.name for field in config.input],
        *_batch_inputs(config),
        *_controls(config),
        *_state_inputs(config),
    ]


def _all_outputs(config: ModelConfig) -> list[str]:
    return [*[field.name for field in config.output], *_state_outputs(config)]


def _batch_inputs(config: ModelConfig) -> list[str]:
    return [name for each in config.batch_input for name in each.target_name]


def _controls(config: ModelConfig) -> list[str]:
    return [each.name for each in config.sequence_batching.control_input]


def _state_inputs(config: ModelConfig) -> list[str]:
    return [state.input_name for state in config.sequence_batching.state]


def _state_outputs(config: ModelConfig) -> list[str]:
    return [state.output_name for state in config.sequence_batching.state]


def _find_indexes(
    config: ModelConfig, what: str, names: Sequence[str], numbers: Mapping[str, int]
) -> dict[str, int]:
    for name in names:
        if name not in numbers:
            raise Internal(
                f'{what} "{name}" for model instance "{config.name}" is not found in model '
                f"{what.lower()} map."
                f" The model has: {', '.join(numbers)}"
            )
    return {name: numbers[name] for name in names}


def _free_inputs(config: ModelConfig, signature: Signature, log: Log) -> dict[str, int]:
    if signature.takes_dict:
        return {name: number for number, name in enumerate(_all_inputs(config))}
    names, arguments = [field.name for field in config.input], signature.input_numbers()
    by_argument = all(name in arguments for name in names)
    by_number = not by_argument and _all_numbered(names)
    if not by_argument and not by_number:
        _warn_of_order(names, config.name, "input", log)
    _check_states(config, by_number, "input")
    found = {
        name: arguments[name] if by_argument else _index(name) if by_number else number
        for number, name in enumerate(names)
    }
    for number, name in enumerate(_batch_inputs(config), len(names)):
        found[name] = _explicit_index(name, arguments, number)
    for name in _controls(config):
        found[name] = _explicit_index(name, arguments, -1)
        if found[name] < 0:
            raise Internal(f"input '{name}' does not follow <name>__<index> naming convention.")
    found.update({name: _index(name) for name in _state_inputs(config)})
    _check_numbers(config, signature, found)
    return found


def _explicit_index(name: str, arguments: Mapping[str, int], default: int) -> int:
    return arguments[name] if name in arguments else _index(name) if _is_numbered(name) else default


def _free_outputs(config: ModelConfig, log: Log) -> dict[str, int]:
    names = [field.name for field in config.output]
    numbered = _all_numbered(names)
    if not numbered:
        _warn_of_order(names, config.name, "output", log)
    _check_states(config, numbered, "output")
    found = {name: _index(name) if numbered else number for number, name in enumerate(names)}
    return {**found, **{name: _index(name) for name in _state_outputs(config)}}


def _is_numbered(name: str) -> bool:
    _, mark, index = name.partition(_SEPARATOR)
    return bool(mark) and (index.isdecimal() or not index)


def _all_numbered(names: Sequence[str]) -> bool:
    return all(_is_numbered(name) for name in names)


def _index(name: str) -> int:
    return int(name.partition(_SEPARATOR)[2] or 0)


def _warn_of_order(names: Sequence[str], model: str, what: str, log: Log) -> None:
    unnumbered = next(name for name in names if not _is_numbered(name))
    if (
        _SEPARATOR not in unnumbered
    ):  # plain names are a choice; an incomplete index is probably a mistake
        return
    if what == "input":
        text = (
            f"input '{unnumbered}' or previous input(s) are neither an input argument to the "
            f"model '{model}' nor do they follow"
        )
    else:
        text = f"output '{unnumbered}' or previous output(s) of the model '{model}' do not follow"
    log.warning(
        (
            "%s the <name>__<index> naming convention. Falling back to enforcing strict ordering "
            "from model configuration."
        ),
        text,
    )


def _check_states(config: ModelConfig, numbered: bool, what: str) -> None:
    states = _state_inputs(config) if what == "input" else _state_outputs(config)
    text = f"PyTorch model '{config.name}' is using sequence batching with state but "
    if states and not numbered:
        raise InvalidArgument(
            f"{text}not all inputs and outputs follow the <name>__<index> naming convention. "
        )
    for name in states:
        if not _is_numbered(name):
            raise InvalidArgument(
                f"{text}state '{name}' does not follow the <name>__<index> naming convention. "
            )


def _check_numbers(config: ModelConfig, signature: Signature, found: Mapping[str, int]) -> None:
    """Raise `InvalidArgument` for a missing input, or if two names refer to the same input."""
    seen: dict[int, str] = {}
    for name, number in found.items():
        if signature.inputs and number >= len(signature.inputs):
            raise InvalidArgument(
                f"unable to load model '{config.name}', input '{name}' refers to an input index "
                "which doesn't exist. "
                f"This model has {len(signature.inputs)} inputs"
            )
        if number in seen:
            raise InvalidArgument(
                f"unable to load model '{config.name}', inputs '{seen[number]}' and '{name}' are "
                "the same input of the model"
            )
        seen[number] = name
