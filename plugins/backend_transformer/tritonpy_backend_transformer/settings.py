"""Settings of a model, read from the parameters of its configuration. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tritonpy import InvalidArgument, Unsupported
from tritonpy.config import MOST_THREADS
from tritonpy_backend_transformer.sampling import Sampling, update_from_json
from tritonpy_backend_transformer.values import ValueParser, boolean, choice, whole_number

# Values of `precision`, which all backends share -> CTranslate2's compute types.
PRECISIONS = {
    "default": "default",
    "auto": "auto",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
    "int8_fp32": "int8_float32",
    "int8_fp16": "int8_float16",
    "int8_bf16": "int8_bfloat16",
    "int16": "int16",
}
# With one lane, a text waits until running texts that do not fit have ended. More lanes mean
# smaller batches.
DEFAULT_LANES = 2
DEFAULT_MAX_TOKENS = 256  # for encoder-decoder models, whose texts end by themselves


class Pooling(enum.Enum):
    """How the states of a text's tokens become one vector."""

    MEAN = "mean"
    CLS = "cls"
    LAST = "last"
    POOLER = "pooler"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a model.

    A generating model runs `lane_count` batches at the same time, each with at most `max_sequences`
    texts and `threads` threads (0: the default). `max_length` limits the prompt and generated
    tokens of a text (None: by the model's positions). `add_special_tokens` lets the tokenizer add
    special tokens to prompts. `sampling` holds the defaults of requests.
    """

    compute_type: str
    threads: int
    lane_count: int
    max_sequences: int
    max_length: int | None
    add_special_tokens: bool
    flash_attention: bool
    pooling: Pooling
    normalize: bool
    sampling: Sampling


_PARSERS: Mapping[str, ValueParser] = {
    "precision": choice(PRECISIONS),
    "intra_op_thread_count": whole_number(0, MOST_THREADS),
    "inter_op_thread_count": whole_number(1, 64),
    "max_num_seqs": whole_number(1),
    "max_model_len": whole_number(2),
    "add_special_tokens": boolean,
    "flash_attention": boolean,
    "pooling": choice({pooling.value: pooling for pooling in Pooling}),
    "normalize": boolean,
}


def read_settings(parameters: Mapping[str, str], is_encoder_decoder: bool) -> Settings:
    """Return the settings in a model's `parameters`.

    Raises `InvalidArgument` for an invalid value, and `Unsupported` for an unsupported feature.
    """
    if boolean("tensor_parallel", parameters.get("tensor_parallel", "false")):
        raise Unsupported(
            "'tensor_parallel' is not supported: each GPU would need an MPI process that makes "
            "all calls together with the others;"
            " instances on several GPUs have their own copies of the model"
        )
    if "memory_limit_bytes" in parameters:
        raise Unsupported(
            "parameter 'memory_limit_bytes' is not supported: CTranslate2 cannot limit a "
            "device's memory"
        )
    values = {
        name: read(name, parameters[name]) for name, read in _PARSERS.items() if name in parameters
    }
    sampling = Sampling(max_tokens=DEFAULT_MAX_TOKENS) if is_encoder_decoder else Sampling()
    if "sampling_parameters" in parameters:
        sampling = update_from_json(
            sampling, parameters["sampling_parameters"], "sampling_parameters"
        )
    return Settings(
        compute_type=values.get("precision", "default"),
        threads=values.get("intra_op_thread_count", 0),
        lane_count=values.get("inter_op_thread_count", DEFAULT_LANES),
        max_sequences=values.get("max_num_seqs", 32),
        max_length=values.get("max_model_len"),
        add_special_tokens=values.get("add_special_tokens", True),
        flash_attention=values.get("flash_attention", False),
        pooling=values.get("pooling", Pooling.MEAN),
        normalize=values.get("normalize", True),
        sampling=sampling,
    )


def check_precision(compute_type: str, possible: Collection[str], device: str) -> None:
    """Raise `Unsupported` if a device does not support a precision."""
    if compute_type in possible or compute_type in {"default", "auto"}:
        return
    names = {library: name for name, library in PRECISIONS.items()}
    there = ", ".join(sorted(names[each] for each in possible if each in names))
    raise Unsupported(
        f"'precision' {names[compute_type]} is not possible on {device}, which supports: {there}"
    )


def check_pooling(settings: Settings, has_pooler: bool) -> None:
    """Raise `InvalidArgument` if the settings ask for a pooler that the model does not have."""
    if settings.pooling is Pooling.POOLER and not has_pooler:
        raise InvalidArgument(
            "'pooling' cannot be pooler: the model has no such layer; mean, "
            "cls and last are possible"
        )
