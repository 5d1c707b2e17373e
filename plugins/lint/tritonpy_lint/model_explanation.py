"""What a model's configuration means: for clients, for batches and for instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from tritonpy_checks import LintModel
from tritonpy_checks.machine import size_text
from tritonpy_config.fields import is_map
from tritonpy_config.normalization import instance_specs
from tritonpy_config.problem import child, entry
from tritonpy_lint.rules.data_files import loaded_bytes
from tritonpy_protos.model_config_pb2 import DataType, ModelConfig, ModelInput, ModelOutput

_MAX_SAMPLE = 16
_WORDS = {"TYPE_STRING": "BYTES"}


@dataclass(frozen=True, slots=True)
class TensorShape:
    """A tensor as clients see it. `shape` has one text per dimension."""

    name: str
    datatype: str
    shape: tuple[str, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of the effective configuration and where it comes from."""

    path: str
    value: str
    origin: str


@dataclass(slots=True)
class ModelExplanation:
    """The parts of an explanation, in the order of the output."""

    name: str
    backend: str
    versions: list[int]
    inputs: list[TensorShape]
    outputs: list[TensorShape]
    sample: dict[str, Any]
    batching: list[str] = field(default_factory=list)
    instances: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)


def explain_model(model: LintModel) -> ModelExplanation:
    """Return the explanation of a model with a complete configuration.

    Raises ValueError without a configuration.
    """
    config = model.config
    if config is None:
        raise ValueError(f"the configuration of '{model.name}' has errors: run tritonpy lint")
    batched = config.max_batch_size
    inputs = [_shape(tensor, batched) for tensor in config.input]
    return ModelExplanation(
        name=model.name,
        backend=config.backend or config.platform,
        versions=sorted(model.versions),
        inputs=inputs,
        outputs=[_shape(tensor, batched) for tensor in config.output],
        sample=sample_request(config),
        batching=list(_batching(config)),
        instances=list(_instances(model, config)),
        refused=list(_refused(config)),
        settings=list(_settings(model, config)),
    )


def _shape(tensor: ModelInput | ModelOutput, max_batch_size: int) -> TensorShape:
    dims = ["any" if size < 0 else str(size) for size in tensor.dims]
    if max_batch_size > 0:
        dims = [f"1..{max_batch_size}", *dims]
    return TensorShape(
        tensor.name,
        datatype_name(tensor.data_type),
        tuple(dims),
        getattr(tensor, "optional", False),
    )


def datatype_name(number: int) -> str:
    """Return the protocol's name of a data type, such as FP32."""
    name = DataType.Name(number)
    return _WORDS.get(name, name.removeprefix("TYPE_"))


def sample_request(config: ModelConfig) -> dict[str, Any]:
    """Return a valid request in JSON with zeros, and one for each variable size."""
    tensors = []
    for tensor in config.input:
        if tensor.optional:
            continue
        shape = [max(size, 1) for size in tensor.dims]
        if config.max_batch_size > 0:
            shape = [1, *shape]
        count = 1
        for size in shape:
            count *= size
        datatype = datatype_name(tensor.data_type)
        zero: Any = "" if datatype == "BYTES" else False if datatype == "BOOL" else 0
        tensors.append(
            {"name": tensor.name, "datatype": datatype, "shape": shape, "data": [zero] * count}
        )
    return {"inputs": tensors}


def shortened_sample(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a request for reading: long data ends with an ellipsis."""
    tensors = []
    for tensor in sample["inputs"]:
        data = tensor["data"]
        short = data if len(data) <= _MAX_SAMPLE else [*data[:3], f"… {len(data)} values"]
        tensors.append({**tensor, "data": short})
    return {"inputs": tensors}


def _batching(config: ModelConfig) -> Iterator[str]:
    size = config.max_batch_size
    choice = config.WhichOneof("scheduling_choice")
    if choice == "ensemble_scheduling":
        for index, step in enumerate(config.ensemble_scheduling.step):
            taken = ", ".join(sorted(step.input_map.values()))
            made = ", ".join(sorted(step.output_map.values()))
            yield f"Step {index} runs {step.model_name}: {taken} -> {made}."
        yield "A step starts as soon as its tensors exist; each member forms its own batches."
        return
    if choice == "dynamic_batching":
        yield from _dynamic(config)
    elif choice == "sequence_batching":
        idle = config.sequence_batching.max_sequence_idle_microseconds
        yield "Requests of one sequence_id go to one instance, in order."
        yield f"A sequence without a request for {idle} us ends and its slot is freed."
    elif size > 0:
        yield f"A client may send up to {size} rows in one request; requests are never merged."
    else:
        yield "Each request runs alone: the model has no batch dimension."
    if config.backend == "python":
        yield (
            "execute() receives a list of requests, not one array: a batch of 4 requests is a list "
            "of 4."
        )


def _dynamic(config: ModelConfig) -> Iterator[str]:
    size, batching = config.max_batch_size, config.dynamic_batching
    if size <= 0:
        yield "dynamic_batching has no effect: max_batch_size is 0."
        return
    delay = batching.max_queue_delay_microseconds
    yield f"Requests that wait are merged into batches of up to {size} rows."
    count = max(2, min(size, 4))
    if delay:
        yield (
            f"Example: {count} requests of one row arrive within {delay} us at an idle instance: "
            f"one batch of {count} rows, which starts when {size} rows wait or {delay} us after "
            "the first arrival."
        )
    else:
        yield (
            f"Example: an instance is idle and {count} requests of one row arrive: the first runs "
            f"at once, and the other {count - 1} form the next batch."
        )
    sizes = list(batching.preferred_batch_size)
    if sizes and sizes != [size]:
        yield f"A batch starts without waiting at {', '.join(map(str, sizes))} rows."


def _instances(model: LintModel, config: ModelConfig) -> Iterator[str]:
    if config.HasField("ensemble_scheduling"):
        yield "none: the members run"
        return
    for spec in instance_specs(config):
        device = spec.kind if spec.kind != "GPU" else f"GPU {spec.device_id}"
        idle = ", loaded but without requests" if spec.passive else ""
        yield f"{spec.name} on {device}{idle}"
    process = config.backend == "python"
    where = "a process of its own" if process else "a thread of the server"
    isolation = (
        config.parameters["isolation"].string_value if ("isolation" in config.parameters) else ""
    )
    if isolation:
        where = "a process of its own" if isolation == "process" else "a thread of the server"
    yield f"each in {where}; this machine has {model.machine.cores} cores"
    yield f"the files of the served versions have {size_text(loaded_bytes(model))}"


def _refused(config: ModelConfig) -> Iterator[str]:
    if config.max_batch_size > 0:
        yield f"more than {config.max_batch_size} rows in one request"
        yield "tensors without the batch dimension in front"
    for tensor in config.input:
        if not tensor.optional:
            yield f"no input {tensor.name}"
        fixed = [str(size) if size >= 0 else "any" for size in tensor.dims]
        name = datatype_name(tensor.data_type)
        row = f"[{', '.join(fixed)}]"
        yield f"input {tensor.name} with another type than {name}, or a row that is not {row}"
    limit = config.dynamic_batching.default_queue_policy.max_queue_size
    if limit:
        yield f"a request while {limit} requests wait"
    if config.model_transaction_policy.decoupled:
        yield "plain inference requests: the model is decoupled and needs a stream"


def _settings(model: LintModel, config: ModelConfig) -> Iterator[Setting]:
    for path, value in leaves(config, ""):
        place = model.positions.get(path)
        if place is not None:
            origin = f"{model.file.rpartition('/')[2]}:{place.line}"
        elif model.signature is not None and path.startswith(("input", "output", "max_batch_size")):
            origin = "the model's file"
        elif path in {"backend", "platform", "default_model_filename"}:
            origin = "the files of the model"
        elif path == "name":
            origin = "the folder"
        else:
            origin = "default"
        yield Setting(path, value, origin)


def leaves(message: Message, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield path and value of each field that is set, down to single values."""
    for found, value in message.ListFields():
        path = child(prefix, found.name)
        if is_map(found):
            for key in sorted(value):
                inner = value[key]
                if isinstance(inner, Message):
                    yield from leaves(inner, entry(path, key))
                else:
                    yield entry(path, key), _text(inner)
        elif found.is_repeated and found.message_type is not None:
            for index, inner in enumerate(value):
                yield from leaves(inner, f"{path}[{index}]")
        elif found.is_repeated:
            yield path, f"[ {', '.join(_scalar(found, each) for each in value)} ]"
        elif found.message_type is not None:
            inner_leaves = list(leaves(value, path))
            yield from inner_leaves or [(path, "{ }")]
        else:
            yield path, _scalar(found, value)


def _scalar(found: Any, value: Any) -> str:
    if found.enum_type is not None:
        return str(found.enum_type.values_by_number[value].name)
    return _text(value)


def _text(value: Any) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def table(rows: Sequence[Sequence[str]], indent: str = "  ") -> Iterator[str]:
    """Yield lines with the columns of `rows` aligned."""
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        yield f"{indent}{'  '.join([*cells, row[-1]])}".rstrip()
