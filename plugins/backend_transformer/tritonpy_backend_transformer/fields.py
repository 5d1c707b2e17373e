"""The inputs and outputs that a model of this backend can have, and their completion and check in a configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import DATATYPE_OF_NUMBER, DATATYPES, InvalidArgument
from tritonpy_backend_transformer.folder import Kind, ModelFolder

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

    _Items = RepeatedCompositeFieldContainer[ModelInput] | RepeatedCompositeFieldContainer[ModelOutput]


@dataclass(frozen=True, slots=True)
class Field:
    """One input or output: the data types that it may have, the first one where nobody says, and its dimensions without rows."""

    datatypes: Sequence[str]
    dims: Sequence[int]
    given: bool = True  # of its own accord, where the configuration does not name it


_TEXT, _FLAG, _COUNT, _REAL = (
    Field(("BYTES",), [1]),
    Field(("BOOL",), [1]),
    Field(("INT32", "INT64"), [1]),
    Field(("FP32", "FP64"), [1]),
)
_TEXTS, _TOKENS = Field(("BYTES",), [-1]), Field(("INT32", "INT64", "UINT32"), [-1])
# What may come as a tensor of its own; whatever else `sampling_parameters` and the parameters of a request may say.
SAMPLING_INPUTS: Mapping[str, Field] = {
    "max_tokens": _COUNT,
    "min_tokens": _COUNT,
    "temperature": _REAL,
    "top_k": _COUNT,
    "top_p": _REAL,
    "repetition_penalty": _REAL,
    "length_penalty": _REAL,
    "seed": Field(("UINT64", "INT64"), [1]),
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
    """The inputs and outputs of a model by name. A model that `batches` has rows; one that does not is `decoupled` unless its configuration says otherwise."""

    inputs: Mapping[str, Field]
    outputs: Mapping[str, Field]
    batches: bool


def fields_of(folder: ModelFolder) -> Fields:
    """Return what a model can have: no text where there is no tokenizer."""
    return _encoder_fields(folder) if folder.kind is Kind.ENCODER else _writer_fields(folder)


def _writer_fields(folder: ModelFolder) -> Fields:
    inputs: dict[str, Field] = {}
    outputs = {
        "output_ids": Field(("INT32",), [-1], given=folder.tokenizer is None),
        "finish_reason": _TEXTS,
        "cumulative_logprob": Field(("FP32",), [-1]),
        "logprobs": _TEXTS,
        "num_input_tokens": Field(("UINT32",), [1]),
        "num_output_tokens": Field(("UINT32",), [-1]),
    }
    if folder.tokenizer is not None:
        inputs["text_input"] = _TEXT
        outputs = {"text_output": _TEXTS, **outputs}
    inputs["input_ids"] = _TOKENS
    if folder.kind is Kind.ENCODER_DECODER:
        inputs["prefix_ids"] = _TOKENS
        if folder.tokenizer is not None:
            inputs["prefix"] = _TEXT
    inputs |= {"stream": _FLAG, "sampling_parameters": _TEXT, "exclude_input_in_output": _FLAG}
    inputs |= dict.fromkeys(RETURN_INPUTS, _FLAG) | dict(SAMPLING_INPUTS)
    return Fields(inputs, outputs, batches=False)


def _encoder_fields(folder: ModelFolder) -> Fields:
    numbers = Field(("INT64", "INT32"), [-1])
    inputs = {} if folder.tokenizer is None else {"text_input": _TEXT}
    inputs |= {"input_ids": numbers, "attention_mask": numbers}
    if folder.segments:
        inputs["token_type_ids"] = numbers
    width = folder.width
    outputs = {
        "embedding": Field(("FP32",), [width]),
        "last_hidden_state": Field(("FP32",), [-1, width], given=False),
    }
    return Fields(inputs, outputs, batches=True)


def completed(config: ModelConfig, fields: Fields, default_max_batch_size: int) -> ModelConfig:
    """Return a copy of `config` with the inputs and outputs that it lacks, the batch size, and whether it is decoupled."""
    result = type(config)()
    result.CopyFrom(config)
    _add(result.input, fields.inputs)
    for added in list(result.input)[len(config.input) :]:
        added.optional = True
        added.allow_ragged_batch = fields.batches and -1 in added.dims
    _add(result.output, {name: field for name, field in fields.outputs.items() if field.given})
    if fields.batches:
        result.max_batch_size = result.max_batch_size or max(default_max_batch_size, 0)
        if result.max_batch_size > 1 and result.WhichOneof("scheduling_choice") is None:
            result.dynamic_batching.SetInParent()
    elif not config.HasField("model_transaction_policy"):
        result.model_transaction_policy.decoupled = True
    return result


def check(config: ModelConfig, fields: Fields) -> None:
    """Raise InvalidArgument at the first input or output that is unknown or of another type, and for a batch size that cannot be."""
    if config.max_batch_size > 0 and not fields.batches:
        raise InvalidArgument(
            f"unable to load model '{config.name}', max_batch_size must be 0: requests of one text each are batched by the backend itself"
        )
    if config.model_transaction_policy.decoupled and fields.batches:
        raise InvalidArgument(
            f"unable to load model '{config.name}', a model that makes vectors of texts cannot be decoupled"
        )
    _check_all("input", config.name, config.input, fields.inputs)
    _check_all("output", config.name, config.output, fields.outputs)


def _add(items: _Items, fields: Mapping[str, Field]) -> None:
    present = {item.name for item in items}
    for name, field in fields.items():
        if name not in present:
            items.add(name=name, data_type=DATATYPES[field.datatypes[0]].number).dims.extend(field.dims)


def _check_all(what: str, model: str, items: _Items, fields: Mapping[str, Field]) -> None:
    for item in items:
        field = fields.get(item.name)
        if field is None:
            raise InvalidArgument(
                f"unexpected inference {what} '{item.name}', allowed {what}s are: {', '.join(sorted(fields))}"
            )
        configured = DATATYPE_OF_NUMBER[item.data_type]
        if configured.name not in field.datatypes:
            raise InvalidArgument(
                f"unable to load model '{model}', configuration expects datatype {configured.config_name} for {what}"
                f" '{item.name}', model provides TYPE_{field.datatypes[0]}"
            )
        _check_dims(what, model, item, field)


def _check_dims(what: str, model: str, item: ModelInput | ModelOutput, field: Field) -> None:
    dims = list(item.reshape.shape if item.HasField("reshape") else item.dims)
    fits = len(dims) == len(field.dims) and all(
        have == want or -1 in {have, want} for have, want in zip(dims, field.dims, strict=True)
    )
    if not fits:
        raise InvalidArgument(
            f"unable to load model '{model}', {what} '{item.name}' has dims {dims}, the model expects {list(field.dims)}"
        )
