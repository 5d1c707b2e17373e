"""What a model's configuration says of how it runs. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tritonpy import MOST_THREADS, InvalidArgument, Unsupported
from tritonpy_backend_transformer.sampling import Sampling, with_json
from tritonpy_backend_transformer.values import Read, choice, truth, whole

# `precision` in the words of all backends -> the library's.
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
# With one, a text waits until another one that does not fit to it has ended; each further one costs throughput, because batches are smaller.
DEFAULT_PARALLEL = 2
DEFAULT_TOKENS = 256  # of a model that turns one text into another, which ends by itself


class Pooling(enum.Enum):
    """How the states of a text's tokens become one vector."""

    MEAN = "mean"
    CLS = "cls"
    LAST = "last"
    POOLER = "pooler"


@dataclass(frozen=True, slots=True)
class Settings:
    """`parallel` batches of a model that generates run at the same time, each of at most `most_sequences` texts on `threads` threads (0: nobody says).

    `longest` bounds the tokens of a text with what is generated (None: what the model has positions for); `special` lets the tokenizer add its
    tokens to a prompt; `sampling` is what a request does not say.
    """

    compute_type: str
    threads: int
    parallel: int
    most_sequences: int
    longest: int | None
    special: bool
    flash_attention: bool
    pooling: Pooling
    normalised: bool
    sampling: Sampling


_READ: Mapping[str, Read] = {
    "precision": choice(PRECISIONS),
    "intra_op_thread_count": whole(0, MOST_THREADS),
    "inter_op_thread_count": whole(1, 64),
    "max_num_seqs": whole(1),
    "max_model_len": whole(2),
    "add_special_tokens": truth,
    "flash_attention": truth,
    "pooling": choice({pooling.value: pooling for pooling in Pooling}),
    "normalize": truth,
}


def settings(parameters: Mapping[str, str], translates: bool) -> Settings:
    """Read the parameters of a model; raises InvalidArgument for a value that is none, Unsupported for what the backend cannot do."""
    if truth("tensor_parallel", parameters.get("tensor_parallel", "false")):
        raise Unsupported(
            "'tensor_parallel' is not served: each GPU would need an MPI process that makes every call together with the others;"
            " instances on several GPUs have a copy of the model each"
        )
    if "memory_limit_bytes" in parameters:
        raise Unsupported("parameter 'memory_limit_bytes' cannot be kept: CTranslate2 bounds no device's memory")
    values = {name: read(name, parameters[name]) for name, read in _READ.items() if name in parameters}
    sampling = Sampling(max_tokens=DEFAULT_TOKENS) if translates else Sampling()
    if "sampling_parameters" in parameters:
        sampling = with_json(sampling, parameters["sampling_parameters"], "sampling_parameters")
    return Settings(
        compute_type=values.get("precision", "default"),
        threads=values.get("intra_op_thread_count", 0),
        parallel=values.get("inter_op_thread_count", DEFAULT_PARALLEL),
        most_sequences=values.get("max_num_seqs", 32),
        longest=values.get("max_model_len"),
        special=values.get("add_special_tokens", True),
        flash_attention=values.get("flash_attention", False),
        pooling=values.get("pooling", Pooling.MEAN),
        normalised=values.get("normalize", True),
        sampling=sampling,
    )


def check_precision(compute_type: str, possible: Collection[str], device: str) -> None:
    """Raise Unsupported where a device cannot compute in the precision that was asked for."""
    if compute_type in possible or compute_type in {"default", "auto"}:
        return
    names = {library: name for name, library in PRECISIONS.items()}
    there = ", ".join(sorted(names[each] for each in possible if each in names))
    raise Unsupported(f"'precision' {names[compute_type]} is not possible on {device}, which can do: {there}")


def check_pooling(wanted: Settings, has_pooler: bool) -> None:
    """Raise InvalidArgument where the model lacks the layer that its configuration asks for."""
    if wanted.pooling is Pooling.POOLER and not has_pooler:
        raise InvalidArgument(
            "'pooling' cannot be pooler: the model has no such layer; mean, cls and last are possible"
        )
