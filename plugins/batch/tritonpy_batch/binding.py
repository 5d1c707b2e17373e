"""Which columns feed which inputs of the model, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec
import pyarrow as pa

from tritonpy_batch.model_interface import ModelInterface, RowTensor
from tritonpy_batch.options import ALL_COLUMNS, BatchOptions, InvalidJob

_INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32")
_FLOATS = ("FP16", "BF16", "FP32", "FP64")
IMAGE_RANKS = (3, 4)
"""Ranks of tensors that an encoded image can become; rank 4 begins with a 1."""


class InputBinding(msgspec.Struct, frozen=True):
    """Columns of one input; several columns become its last dimension. `image`: decode an image."""

    spec: RowTensor
    columns: tuple[str, ...]
    image: bool = False


class Binding(msgspec.Struct, frozen=True):
    """The columns that a job reads: `schema` has those of the inputs, and the kept ones."""

    inputs: tuple[InputBinding, ...]
    kept: tuple[str, ...]
    schema: pa.Schema


def bind(model: ModelInterface, columns: pa.Schema, typed: bool, options: BatchOptions) -> Binding:
    """Map columns to the inputs of a model: as told, by name, or the only one that is left.

    `typed` tells whether the columns' types are declared, not guessed. Raises InvalidJob.
    """
    named = dict(options.columns)
    specs = {spec.name: spec for spec in model.inputs}
    unknown = set(named) - set(specs)
    if unknown:
        raise InvalidJob(
            f"--map {min(unknown)}=…: model '{model.name}' has no such input; it has "
            f"{', '.join(specs)}"
        )
    others = [name for name in columns.names if name not in specs]
    free = [name for name in others if name not in options.keep]
    open_inputs = [
        spec for spec in model.inputs
        if spec.name not in named and spec.name not in columns.names and not spec.optional
    ]  # fmt: skip
    inputs = []
    for spec in model.inputs:
        chosen: tuple[str, ...] = ()
        if spec.name in named:
            chosen = _chosen(named[spec.name], columns, spec)
        elif spec.name in columns.names:
            chosen = (spec.name,)
        elif len(open_inputs) == 1 and open_inputs[0] is spec:
            chosen = _only_fitting(spec, free, columns) or _only_fitting(spec, others, columns)
        if chosen:
            inputs.append(_binding(spec, chosen, columns))
        elif not spec.optional:
            raise InvalidJob(
                f"input '{spec.name}' has no column: the columns are {', '.join(columns.names)}; "
                f"give --map {spec.name}=COLUMN"
            )
    kept = _kept(options.keep, columns)
    used = dict.fromkeys([*(name for each in inputs for name in each.columns), *kept])
    fields = [columns.field(name) for name in used]
    if not typed:
        targets = {name: each.spec for each in inputs if not each.image for name in each.columns}
        fields = [
            pa.field(field.name, _wanted_type(field.type, targets.get(field.name)))
            for field in fields
        ]
    return Binding(tuple(inputs), kept, pa.schema(fields))


def _chosen(names: Sequence[str], columns: pa.Schema, spec: RowTensor) -> tuple[str, ...]:
    """Return the columns of --map, with patterns replaced by the columns that match."""
    chosen: list[str] = []
    for name in names:
        matching = [each for each in columns.names if each == name]
        matching = matching or [each for each in columns.names if fnmatchcase(each, name)]
        if not matching:
            raise InvalidJob(
                f"--map {spec.name}={','.join(names)}: no column '{name}'; the columns are "
                f"{', '.join(columns.names)}"
            )
        chosen += matching
    return tuple(chosen)


def _only_fitting(spec: RowTensor, free: Sequence[str], columns: pa.Schema) -> tuple[str, ...]:
    """Return the only column that can feed `spec`, if there is just one."""
    fitting = [name for name in free if not _problem(spec, columns.field(name).type)]
    return (fitting[0],) if len(fitting) == 1 else ()


def _binding(spec: RowTensor, chosen: tuple[str, ...], columns: pa.Schema) -> InputBinding:
    types = {columns.field(name).type for name in chosen}
    for name in chosen:
        problem = _problem(spec, columns.field(name).type)
        if problem:
            raise InvalidJob(
                f"column '{name}' is {columns.field(name).type}, input '{spec.name}' wants "
                f"{spec.datatype}{list(spec.dims)}: {problem}"
            )
    image = len(chosen) == 1 and _is_image(spec, types.pop())
    return InputBinding(spec, chosen, image)


def _is_image(spec: RowTensor, kind: pa.DataType) -> bool:
    return (
        spec.datatype != "BYTES"
        and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
        and len(spec.dims) in IMAGE_RANKS
    )


def _problem(spec: RowTensor, kind: pa.DataType) -> str:
    """Return why a column of this type cannot feed an input, or ""."""
    if _is_image(spec, kind):
        return ""
    leaf, sizes = leaf_type(kind)
    texts = pa.types.is_string(leaf) or pa.types.is_large_string(leaf) or is_binary(leaf)
    if spec.datatype == "BYTES":
        return "" if texts or pa.types.is_null(leaf) else "only text and binary columns fit"
    if texts:
        return "text is not converted to numbers"
    numbers = (
        pa.types.is_integer(leaf) or pa.types.is_floating(leaf) or pa.types.is_decimal(leaf)
        or pa.types.is_boolean(leaf) or pa.types.is_null(leaf)
    )  # fmt: skip
    if not numbers:
        return "this type has no tensor; convert the column first"
    if pa.types.is_boolean(leaf) != (spec.datatype == "BOOL") and not pa.types.is_null(leaf):
        return "booleans and numbers are not converted to each other"
    fixed = [size for size in sizes if size >= 0]
    if len(fixed) == len(sizes) == len(spec.dims) and any(
        dim not in (-1, size) for dim, size in zip(spec.dims, sizes, strict=True)
    ):
        return f"a row has the shape {list(sizes)}"
    return ""


def leaf_type(kind: pa.DataType) -> tuple[pa.DataType, tuple[int, ...]]:
    """Return the type of the values in nested lists, and the sizes of the lists (-1: any)."""
    sizes: list[int] = []
    while True:
        if isinstance(kind, pa.FixedShapeTensorType):
            sizes += kind.shape
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind):
            kind = kind.value_type
        elif pa.types.is_fixed_size_list(kind):
            sizes.append(kind.list_size)
            kind = kind.value_type
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            sizes.append(-1)
            kind = kind.value_type
        else:
            return kind, tuple(sizes)


def is_binary(kind: pa.DataType) -> bool:
    """Return whether a type has bytes of any length."""
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )  # fmt: skip


def _kept(names: Sequence[str], columns: pa.Schema) -> tuple[str, ...]:
    if ALL_COLUMNS in names:
        return tuple(columns.names)
    for name in names:
        if name not in columns.names:
            raise InvalidJob(
                f"--keep {name}: no such column; the columns are {', '.join(columns.names)}"
            )
    return tuple(dict.fromkeys(names))


def _wanted_type(guessed: pa.DataType, spec: RowTensor | None) -> pa.DataType:
    """Return the type to parse a column of text as, so that all files agree."""
    if pa.types.is_list(guessed):
        return pa.list_(_wanted_type(guessed.value_type, spec))
    if spec is None or spec.datatype == "BYTES":
        return pa.string() if pa.types.is_null(guessed) else guessed
    if spec.datatype in _FLOATS:
        return pa.float64()
    if spec.datatype in _INTEGERS:
        return pa.int64()
    return pa.uint64() if spec.datatype == "UINT64" else pa.bool_()
