"""Rules for inputs and outputs: their shapes, types and names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from tritonpy_checks import (
    Edit,
    Finding,
    Fix,
    Level,
    LintModel,
    LintRule,
    Problem,
    remove_field,
    replace_value,
)
from tritonpy_config.model_fit import dims_text, element_count, model_dims
from tritonpy_lint.rules.server_rule import GOOD, ServerRule, edit_fix, python_model
from tritonpy_protos.model_config_pb2 import DataType, ModelConfig, ModelInput, ModelOutput

Tensor = ModelInput | ModelOutput
ONNX = 'backend: "onnxruntime"\n'
# These examples are compared with the model file of the contract test: X and Y, FP32 [-1, 4].
MODEL_FILE = "an ONNX model with the tensors X and Y, FP32 [-1, 4]"
FITTING = (
    f"{ONNX}max_batch_size: 8\ndynamic_batching {{ }}\n"
    'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)


def onnx_model(config: str) -> dict[str, str]:
    """Return the files of an ONNX model; the model file is a placeholder."""
    return {"config.pbtxt": config, "1/model.onnx": MODEL_FILE}


def pairs(model: LintModel) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield key, configured tensor and the model file's tensor of each name that both have."""
    if model.signature is None:
        return
    for kind, own in (("input", model.signature.input), ("output", model.signature.output)):
        known = {tensor.name: tensor for tensor in own}
        for index, tensor in enumerate(getattr(model.given, kind)):
            if tensor.name in known:
                yield f"{kind}[{index}]", tensor, known[tensor.name]


def full_dims(tensor: Tensor, max_batch_size: int) -> tuple[int, ...]:
    """Return the shape that the model sees, with the batch dimension."""
    dims = model_dims(tensor)
    return (-1, *dims) if max_batch_size > 0 else dims


def fits(model: Sequence[int], configured: Sequence[int]) -> bool:
    """Return whether a configured shape may be the model's."""
    return len(model) == len(configured) and all(
        -1 in pair or pair[0] == pair[1] for pair in zip(model, configured, strict=True)
    )


class BatchDimension(LintRule):
    """S001: the batch dimension is part of `dims`."""

    level = Level.ERROR
    title = "dims contains the batch dimension"
    reason = (
        "With max_batch_size above 0 the server adds the batch dimension itself; "
        "dims describes one row."
    )
    bad = onnx_model(FITTING.replace("dims: [ 4 ]", "dims: [ -1, 4 ]"))
    good = onnx_model(FITTING)

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per tensor that fits the model's file without its first dimension."""
        batched = model.signature.max_batch_size if model.signature is not None else 0
        for key, tensor, own in pairs(model):
            actual = full_dims(own, batched)
            if not is_batched_twice(tensor, actual, model.given.max_batch_size):
                continue
            right = list(tensor.dims[1:])
            shape = f"[ {', '.join(map(str, right))} ]" if right else "[ 1 ] with reshape { }"
            edits: tuple[Edit, ...] = ()
            if right and (path := model.config_path):
                place = model.positions.get(f"{key}.dims[0]")
                edits = (remove_field(path, model.text, place),) if place else ()
            yield self.finding(
                model,
                f"{key}.dims",
                f"the first dimension of '{tensor.name}' is the batch dimension: the model's file "
                f"has the shape {dims_text(actual)}, and max_batch_size is "
                f"{model.given.max_batch_size}",
                f"Write dims: {shape}.",
                fix=Fix(f"remove the first dimension of '{tensor.name}'", edits) if edits else None,
            )


def is_batched_twice(tensor: Tensor, actual: Sequence[int], max_batch_size: int) -> bool:
    """Return whether `dims` has the batch dimension that the server adds as well."""
    dims = tuple(tensor.dims)
    return bool(
        max_batch_size > 0
        and dims
        and not tensor.HasField("reshape")
        and not fits(actual, (-1, *dims))
        and fits(actual, dims)
        and actual[0] == -1
    )


class FixedBatch(LintRule):
    """S002: the model's file has a fixed batch size."""

    level = Level.ERROR
    title = "The model was exported with a fixed batch size"
    reason = "A model whose first dimension is fixed cannot run batches of other sizes."
    bad = onnx_model(f"{FITTING}# its model file has the tensors X and Y, FP32 [1, 4]\n")
    good = onnx_model(FITTING)

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding if the model's file has no batch dimension but the configuration does."""
        signature, size = model.signature, model.given.max_batch_size
        if signature is None or signature.max_batch_size > 0 or size <= 0:
            return
        for _, tensor, own in pairs(model):
            actual = model_dims(own)
            if actual and actual[0] != -1:
                yield self.finding(
                    model,
                    "max_batch_size",
                    f"max_batch_size is {size}, but the first dimension of '{tensor.name}' is "
                    f"fixed in the model's file: {dims_text(actual)}",
                    "Export the model with a dynamic first dimension (dynamic_axes or "
                    "dynamic_shapes in torch.onnx.export), or write max_batch_size: 0 and the "
                    f"complete shape dims: [ {', '.join(map(str, actual))} ].",
                )
                return


class EmptyReshape(ServerRule):
    """S003: an empty reshape without batching."""

    title = "A scalar without a batch dimension"
    reason = "Requests have no scalars: a shape has at least one dimension."
    remedy = (
        "Legal are max_batch_size above 0 with dims: [ 1 ] reshape { shape: [ ] }, where a client "
        "sends [batch, 1], or max_batch_size: 0 with dims: [ 1 ], where it sends [1]."
    )
    bad = python_model(
        'backend: "python"\n'
        'input { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }\n'
        'output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }\n'
    )
    good = GOOD


class ReshapeSize(ServerRule):
    """S005: reshape changes the number of elements."""

    title = "reshape changes the number of elements"
    reason = "A reshape rearranges the elements of a tensor; it cannot add or remove any."
    bad = python_model(
        'backend: "python"\n'
        'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 5 ] } }\n'
        'output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }\n'
    )
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return both numbers of elements."""
        kind, _, rest = problem.key.partition("[")
        index = int(rest.partition("]")[0]) if rest else 0
        tensor: Tensor = getattr(model.given, kind)[index]
        before, after = (
            f"{dims_text(dims)} ({_elements(dims)})" for dims in (tensor.dims, tensor.reshape.shape)
        )
        return f"dims is {before}, reshape is {after}: make them equal.", None


def _elements(dims: Sequence[int]) -> str:
    count = element_count(dims)
    return "variable" if count < 0 else f"{count} elements"


class InvalidTensor(ServerRule):
    """S006: a tensor is described incompletely."""

    title = "A tensor is described incompletely"
    reason = (
        "Each tensor has a name, a data type, and dimensions of at least 1, or -1 for any size."
    )
    remedy = "Complete the description: name, data_type and dims."
    bad = python_model(
        'backend: "python"\n'
        'input { name: "IN" data_type: TYPE_FP32 dims: [ 0 ] }\n'
        'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    )
    good = GOOD


class OtherShape(LintRule):
    """S007: the shape is another one than the model's."""

    level = Level.ERROR
    title = "dims differs from the model's file"
    reason = "The server compares the configuration with the model's file and rejects the model."
    bad = onnx_model(FITTING.replace("dims: [ 4 ]", "dims: [ 5 ]"))
    good = onnx_model(FITTING)

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per tensor, unless the batch dimension is the reason."""
        signature, size = model.signature, model.given.max_batch_size
        if signature is None or (size > 0 and signature.max_batch_size == 0):
            return
        ragged = {name for batch in model.given.batch_output for name in batch.target_name}
        for key, tensor, own in pairs(model):
            actual, given = full_dims(own, signature.max_batch_size), full_dims(tensor, size)
            special = tensor.name in ragged or getattr(tensor, "allow_ragged_batch", False)
            if (
                special
                or not tensor.dims
                or fits(actual, given)
                or is_batched_twice(tensor, actual, size)
            ):
                continue
            right = actual[1:] if size > 0 else actual
            yield self.finding(
                model,
                f"{key}.dims",
                f"'{tensor.name}' has the shape {dims_text(actual)} in the model's file, but "
                f"{dims_text(given)} in the configuration",
                f"Write dims: [ {', '.join(map(str, right))} ].",
                fix=_dims_fix(model, key, right),
            )


def _dims_fix(model: LintModel, key: str, dims: Sequence[int]) -> Fix | None:
    path, place = model.config_path, model.positions.get(f"{key}.dims")
    listed = f"{key}.dims[0]" in model.positions and f"{key}.reshape" not in model.positions
    if path is None or place is None or not dims or not listed:
        return None
    value = f"[ {', '.join(map(str, dims))} ]"
    return edit_fix(f"write dims: {value}", replace_value(path, model.text, place, value))


class DataTypeDiffers(LintRule):
    """T001: another data type than the model's file has."""

    level = Level.ERROR
    title = "data_type differs from the model's file"
    reason = "The server does not convert tensors: the type must be the model's."
    bad = onnx_model(FITTING.replace("FP32", "FP64"))
    good = onnx_model(FITTING)

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per tensor."""
        for key, tensor, own in pairs(model):
            if tensor.data_type in (DataType.TYPE_INVALID, own.data_type):
                continue
            right, wrong = DataType.Name(own.data_type), DataType.Name(tensor.data_type)
            path, place = model.config_path, model.positions.get(f"{key}.data_type")
            edits: tuple[Edit, ...] = ()
            if path is not None and place is not None:
                edits = (replace_value(path, model.text, place, right),)
            yield self.finding(
                model,
                f"{key}.data_type",
                f"'{tensor.name}' has the type {right} in the model's file, but {wrong} in the "
                "configuration",
                f"Write data_type: {right}.",
                fix=Fix(f"write data_type: {right}", edits) if edits else None,
            )


class NameUnknown(LintRule):
    """T002: a tensor that the model's file does not have."""

    level = Level.ERROR
    title = "The model's file has no tensor of this name"
    reason = "The names of tensors are those of the exported graph, which exporters may change."
    bad = onnx_model(FITTING.replace('"X"', '"x_input"'))
    good = onnx_model(FITTING)

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per name, with the closest name or all names."""
        signature = model.signature
        if signature is None:
            return
        controls = set(_states(model.given))
        for kind in ("input", "output"):
            names = [tensor.name for tensor in getattr(signature, kind)]
            for index, tensor in enumerate(getattr(model.given, kind)):
                if tensor.name and tensor.name not in names and tensor.name not in controls:
                    yield self._finding(model, f"{kind}[{index}].name", tensor.name, names)

    def _finding(self, model: LintModel, key: str, name: str, names: Sequence[str]) -> Finding:
        kind = key.partition("[")[0]
        near = difflib.get_close_matches(name, names, 1) or (names if len(names) == 1 else [])
        edits: tuple[Edit, ...] = ()
        path, place = model.config_path, model.positions.get(key)
        if near and path is not None and place is not None:
            edits = (replace_value(path, model.text, place, f'"{near[0]}"'),)
        fix = Fix(f"rename it to '{near[0]}'", edits, safe=False) if edits else None
        return self.finding(
            model,
            key,
            f"the model's file has no {kind} '{name}'",
            f"Its {kind}s are: {', '.join(names) or 'none'}.",
            fix=fix,
        )


def _states(config: ModelConfig) -> Iterator[str]:
    """Yield the names of sequence controls and states."""
    for control in config.sequence_batching.control_input:
        yield control.name
    for state in config.sequence_batching.state:
        yield from (state.input_name, state.output_name)


class MissingInput(LintRule):
    """T003: the configuration leaves out an input of the model's file."""

    level = Level.ERROR
    title = "An input of the model's file is missing in the configuration"
    reason = "The model cannot run without all of its inputs."
    bad = onnx_model(
        f"{ONNX}max_batch_size: 8\n"
        'input { name: "OTHER" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    )
    good = onnx_model(FITTING)

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per input if the configuration lists inputs."""
        if model.signature is None or not model.given.input or not model.is_complete:
            return
        named = {tensor.name for tensor in model.given.input} | set(_states(model.given))
        named |= {name for batch in model.given.batch_input for name in batch.target_name}
        for tensor in model.signature.input:
            if tensor.name not in named and not tensor.optional:
                yield self.finding(
                    model,
                    "input",
                    f"the model's file has an input '{tensor.name}', which is not configured",
                    f"Add it, with data_type: {DataType.Name(tensor.data_type)} "
                    f"dims: {dims_text(tensor.dims)}.",
                )
