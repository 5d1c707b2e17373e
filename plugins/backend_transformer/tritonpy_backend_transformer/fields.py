"""The inputs and outputs of models: completion and validation of configurations. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import DATATYPES, InvalidArgument
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_transformer.model_folder import FolderKind, ModelFolder

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

    _Items = (
        RepeatedCompositeFieldContainer[ModelInput] | RepeatedCompositeFieldContainer[ModelOutput]
    )


@dataclass(frozen=True, slots=True)
class ConfigField:
    """An input or output: its data types, the default first, and its dimensions without rows."""

    datatypes: Sequence[str]
    dims: Sequence[int]
    by_default: bool = True  # part of a completed configuration


_TEXT, _FLAG, _COUNT, _REAL = (
    ConfigField(("BYTES",), [1]),
    ConfigField(("BOOL",), [1]),
    ConfigField(("INT32", "INT64"), [1]),
    ConfigField(("FP32", "FP64"), [1]),
)
_TEXTS, _TOKENS = ConfigField(("BYTES",), [-1]), ConfigField(("INT32", "INT64", "UINT32"), [-1])
# Sampling parameters that can be tensors. The others are in `sampling_parameters` or request
# parameters.
SAMPLING_INPUTS: Mapping[str, ConfigField] = {
    "max_tokens": _COUNT,
    "min_tokens": _COUNT,
    "temperature": _REAL,
    "top_k": _COUNT,
    "top_p": _REAL,
    "repetition_penalty": _REAL,
    "length_penalty": _REAL,
    "seed": ConfigField(("UINT64", "INT64"), [1]),
    "n": _COUNT,
    "beam_width": _COUNT,
    "stop_words": _TEXTS,
    "bad_words": _TEXTS,
}
RETURN_INPUTS = {
    "return_finish_reason": "finish_reason",
    "return_cumulative_logprob": "cumulative_logprob",
    "return_logprobs": "logprobs",
    "return_num_input_tokens": "num_input_tokens",
    "return_num_output_tokens": "num_output_tokens",
}


@dataclass(frozen=True, slots=True)
class Fields:
    """The inputs and outputs of a model by name.

    A model that `batches` has rows. One that does not is decoupled unless its configuration
    disables that.
    """

    inputs: Mapping[str, ConfigField]
    outputs: Mapping[str, ConfigField]
    batches: bool


def fields_of(folder: ModelFolder) -> Fields:
    """Return the inputs and outputs of a model. Without a tokenizer it has no text fields."""
    return (
        _encoder_fields(folder) if folder.kind is FolderKind.ENCODER else _generation_fields(folder)
    )


def _generation_fields(folder: ModelFolder) -> Fields:
    inputs: dict[str, ConfigField] = {}
    outputs = {
        "output_ids": ConfigField(("INT32",), [-1], by_default=folder.tokenizer is None),
        "finish_reason": _TEXTS,
        "cumulative_logprob": ConfigField(("FP32",), [-1]),
        "logprobs": _TEXTS,
        "num_input_tokens": ConfigField(("UINT32",), [1]),
        "num_output_tokens": ConfigField(("UINT32",), [-1]),
    }
    if folder.tokenizer is not None:
        inputs["text_input"] = _TEXT
        outputs = {"text_output": _TEXTS, **outputs}
    inputs["input_ids"] = _TOKENS
    if folder.kind is FolderKind.ENCODER_DECODER:
        inputs["prefix_ids"] = _TOKENS
        if folder.tokenizer is not None:
            inputs["prefix"] = _TEXT
    inputs |= {"stream": _FLAG, "sampling_parameters": _TEXT, "exclude_input_in_output": _FLAG}
    inputs |= dict.fromkeys(RETURN_INPUTS, _FLAG) | dict(SAMPLING_INPUTS)
    return Fields(inputs, outputs, batches=False)


def _encoder_fields(folder: ModelFolder) -> Fields:
    token_ids = ConfigField(("INT64", "INT32"), [-1])
    inputs = {} if folder.tokenizer is None else {"text_input": _TEXT}
    inputs |= {"input_ids": token_ids, "attention_mask": token_ids}
    if folder.segments:
        inputs["token_type_ids"] = token_ids
    width = folder.width
    outputs = {
        "embedding": ConfigField(("FP32",), [width]),
        "last_hidden_state": ConfigField(("FP32",), [-1, width], by_default=False),
    }
    return Fields(inputs, outputs, batches=True)


def complete_config(
    config: ModelConfig, fields: Fields, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with missing inputs, outputs, batch size and transaction policy."""
    result = type(config)()
    result.CopyFrom(config)
    _add(result.input, fields.inputs)
    for added in list(result.input)[len(config.input) :]:
        added.optional = True
        added.allow_ragged_batch = fields.batches and -1 in added.dims
    _add(result.output, {name: field for name, field in fields.outputs.items() if field.by_default})
    if fields.batches:
        result.max_batch_size = result.max_batch_size or max(default_max_batch_size, 0)
        if result.max_batch_size > 1 and result.WhichOneof("scheduling_choice") is None:
            result.dynamic_batching.SetInParent()
    elif not config.HasField("model_transaction_policy"):
        result.model_transaction_policy.decoupled = True
    return result


def check_config(config: ModelConfig, fields: Fields) -> None:
    """Raise `InvalidArgument` for unknown fields, wrong types, or an unsupported batch size."""
    if config.max_batch_size > 0 and not fields.batches:
        raise InvalidArgument(
            f"unable to load model '{config.name}', max_batch_size must be 0: "
            "the backend batches requests of one text each"
        )
    if config.model_transaction_policy.decoupled and fields.batches:
        raise InvalidArgument(
            f"unable to load model '{config.name}', a model that computes embeddings cannot be "
            "decoupled"
        )
    _check_all("input", config.name, config.input, fields.inputs)
    _check_all("output", config.name, config.output, fields.outputs)


def _add(items: _Items, fields: Mapping[str, ConfigField]) -> None:
    present = {item.name for item in items}
    for name, field in fields.items():
        if name not in present:
            items.add(name=name, data_type=DATATYPES[field.datatypes[0]].number).dims.extend(
                field.dims
            )


def _check_all(kind: str, model: str, items: _Items, fields: Mapping[str, ConfigField]) -> None:
    for item in items:
        field = fields.get(item.name)
        if field is None:
            raise InvalidArgument(
                f"unexpected inference {kind} '{item.name}', allowed {kind}s are: "
                f"{', '.join(sorted(fields))}"
            )
        configured = DATATYPE_OF_NUMBER[item.data_type]
        if configured.name not in field.datatypes:
            raise InvalidArgument(
                f"unable to load model '{model}', configuration expects datatype "
                f"{configured.config_name} for {kind}"
                f" '{item.name}', model provides TYPE_{field.datatypes[0]}"
            )
        _check_dims(kind, model, item, field)


def _check_dims(kind: str, model: str, item: ModelInput | ModelOutput, field: ConfigField) -> None:
    dims = list(item.reshape.shape if item.HasField("reshape") else item.dims)
    fits = len(dims) == len(field.dims) and all(
        actual == expected or -1 in {actual, expected}
        for actual, expected in zip(dims, field.dims, strict=True)
    )
    if not fits:
        raise InvalidArgument(
            f"unable to load model '{model}', {kind} '{item.name}' has dims {dims}, "
            f"the model expects {list(field.dims)}"
        )
