"""Arrow columns as tensors, without loss: a value that does not fit its input is an error."""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import prod
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tritonpy import DTYPES, Tensor
from tritonpy_batch.binding import InputBinding, is_binary, leaf_type
from tritonpy_batch.options import InvalidJob
from tritonpy_types import shape_text

Array = npt.NDArray[Any]
_MEANS = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet, as torchvision has them
_DEVIATIONS = np.array([0.229, 0.224, 0.225], np.float32)


class NullValue(Exception):
    """A null where none is allowed: `row` is its index, `column` a name."""

    def __init__(self, row: int, column: str) -> None:
        super().__init__(row, column)
        self.row = row
        self.column = column


def null_text(column: str) -> str:
    """Return the error of a row that is skipped because a column is null."""
    return f"column '{column}' is null"


class ConversionRules(msgspec.Struct, frozen=True):
    """How values are converted; see BatchOptions."""

    nulls: str
    allow_rounding: bool
    image_scale: str


class InputColumn(msgspec.Struct):
    """The values of one input for consecutive rows.

    `shapes` has one shape for all rows, or one per row. `values` is flat; row i begins at
    `starts[i]`, in elements. Values of BYTES are in wire form, and `starts` is in bytes.
    """

    name: str
    datatype: str
    shapes: list[tuple[int, ...]]
    values: Array
    starts: Array

    def shape(self, row: int) -> tuple[int, ...]:
        """Return the shape of a row."""
        return self.shapes[0] if len(self.shapes) == 1 else self.shapes[row]

    def tensor(self, start: int, stop: int, batched: bool) -> Tensor:
        """Return consecutive rows of one shape as a tensor; it shares their memory."""
        values = self.values[int(self.starts[start]) : int(self.starts[stop])]
        shape = (stop - start, *self.shape(start)) if batched else self.shape(start)
        if self.datatype == "BYTES":
            return Tensor(self.name, self.datatype, shape, values)
        return Tensor(self.name, self.datatype, shape, values.reshape(shape))

    def take(self, rows: Sequence[int]) -> InputColumn:
        """Return the column with only these rows."""
        parts = [self.values[int(self.starts[row]) : int(self.starts[row + 1])] for row in rows]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        shapes = self.shapes if len(self.shapes) == 1 else [self.shapes[row] for row in rows]
        values = np.concatenate(parts) if parts else self.values[:0]
        return InputColumn(self.name, self.datatype, shapes, values, starts)


def convert(
    binding: InputBinding, table: pa.RecordBatch, errors: dict[int, str], rules: ConversionRules
) -> InputColumn:
    """Return the values of an input; rows that do not fit get a text in `errors`, and zeros."""
    columns = [table.column(name) for name in binding.columns]
    if binding.image:
        return _images(binding, columns[0], errors, rules)
    parts = [
        _convert_column(binding, name, column, len(binding.columns) > 1, errors, rules)
        for name, column in zip(binding.columns, columns, strict=True)
    ]
    return parts[0] if len(parts) == 1 else _stacked(binding, parts, table.num_rows)


def _convert_column(
    binding: InputBinding,
    name: str,
    column: pa.Array,
    stacked: bool,
    errors: dict[int, str],
    rules: ConversionRules,
) -> InputColumn:
    spec, count = binding.spec, len(column)
    if column.null_count and rules.nulls == "default":
        column = _filled(column, spec.dims)
    values, lengths, sizes = _flatten(column)
    _handle_nulls(name, column, values, lengths, errors, rules)
    shapes = _row_shapes(lengths, sizes, count, () if stacked else spec.dims, name, errors)
    if spec.datatype == "BYTES":
        return _strings(binding, values, lengths, shapes)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    array = _numbers(name, values, spec.datatype, starts, errors, rules)
    return _regular(InputColumn(spec.name, spec.datatype, shapes, array, starts))


def _filled(column: pa.Array, dims: tuple[int, ...]) -> pa.Array:
    """Replace null lists by zeros of the input's shape; other nulls stay."""
    leaf, sizes = leaf_type(column.type)
    if not sizes:
        return column
    shape = [max(dim, 0) for dim in dims] if len(sizes) == len(dims) else [abs(prod(dims))]
    zero: Any = False if pa.types.is_boolean(leaf) else 0
    if pa.types.is_string(leaf) or pa.types.is_large_string(leaf) or is_binary(leaf):
        zero = ""
    filler = np.full(shape, zero, np.object_).tolist()
    return pa.array(
        [filler if value is None else value for value in column.to_pylist()], column.type
    )


def _flatten(column: pa.Array) -> tuple[pa.Array, Array, list[Array | int]]:
    """Return the innermost values, how many each row has, and the list sizes level by level.

    A level is a number if all its lists have that size, else an array with the size of each.
    Null rows have no values, or nulls.
    """
    lengths = np.ones(len(column), np.int64)
    sizes: list[Array | int] = []
    while True:
        if isinstance(column.type, pa.FixedShapeTensorType) and not column.null_count:
            sizes += column.type.shape
            lengths = lengths * prod(column.type.shape)
            return column.storage.flatten(), lengths, sizes
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        elif pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        elif pa.types.is_fixed_size_list(column.type):
            size = column.type.list_size
            nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
            sizes.append(size)
            per_list = np.full(len(column), size, np.int64)
            if nulls is not None:
                per_list[nulls] = 0
                sizes[-1] = per_list
            lengths = _summed(lengths, per_list)
            column = column.flatten()
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            per_list = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
            uniform = len(per_list) > 0 and bool((per_list == per_list[0]).all())
            sizes.append(int(per_list[0]) if uniform else per_list)
            lengths = _summed(lengths, per_list)
            column = column.flatten()
        else:
            return column, lengths, sizes


def _summed(lengths: Array, per_list: Array) -> Array:
    """Return how many values each row has, from its number of lists and the length of each."""
    if len(lengths) == len(per_list) and bool((lengths == 1).all()):
        return per_list
    ends = np.concatenate([[0], np.cumsum(per_list)])
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return np.diff(ends[bounds])


def _handle_nulls(
    name: str,
    column: pa.Array,
    values: pa.Array,
    lengths: Array,
    errors: dict[int, str],
    rules: ConversionRules,
) -> None:
    if not (column.null_count or values.null_count) or rules.nulls == "default":
        return
    bad = set(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist())
    if values.null_count:
        inner = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        bad |= set(np.searchsorted(np.cumsum(lengths), inner, side="right").tolist())
    for row in sorted(bad - set(errors)):
        if rules.nulls == "fail":
            raise NullValue(row, name)
        errors.setdefault(row, null_text(name))


def _row_shapes(
    lengths: Array,
    sizes: list[Array | int],
    count: int,
    dims: tuple[int, ...],
    name: str,
    errors: dict[int, str],
) -> list[tuple[int, ...]]:
    """Return the shapes of the rows as the input sees them: one for all, or one for each."""
    if all(isinstance(size, int) for size in sizes):
        natural = tuple(size for size in sizes if isinstance(size, int))
        shape = fitted_shape(natural, dims)
        if shape is not None:
            return [shape]
        if count:
            text = f"column '{name}' has the shape {shape_text(natural)}, not {shape_text(dims)}"
            for row in range(count):
                errors.setdefault(row, text)
        return [natural]
    shapes = []
    for row in range(count):
        own = _natural_shape(sizes, row, int(lengths[row]))
        fitted = None if own is None else fitted_shape(own, dims)
        if fitted is None:
            found = "lists of unequal lengths" if own is None else shape_text(own)
            errors.setdefault(row, f"column '{name}' has the shape {found}, not {shape_text(dims)}")
        shapes.append(fitted or (int(lengths[row]),))
    return shapes


def _natural_shape(sizes: list[Array | int], row: int, length: int) -> tuple[int, ...] | None:
    """Return the shape of one row's nested lists, None if lists of a level differ."""
    shape: list[int] = []
    first, count = row, 1
    for size in sizes:
        if isinstance(size, int):
            shape.append(size)
            first, count = first * size, count * size
            continue
        own = size[first : first + count]
        if len(own) and not bool((own == own[0]).all()):
            return None
        shape.append(int(own[0]) if len(own) else 0)
        first, count = int(size[:first].sum()), int(own.sum())
    return tuple(shape) if prod(shape) == length else None


def fitted_shape(found: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of a row for an input of `dims`, None if its values do not fit.

    A flat list fits a tensor of as many values; at most one dimension is then free.
    """
    if len(found) == len(dims) and all(
        dim in (-1, size) for dim, size in zip(dims, found, strict=True)
    ):
        return found
    fixed = prod(dim for dim in dims if dim >= 0)
    if len(found) > 1 or sum(dim < 0 for dim in dims) > 1:
        return None
    total = prod(found)
    if -1 not in dims:
        return dims if total == fixed else None
    if not fixed or total % fixed:
        return None
    return tuple(total // fixed if dim < 0 else dim for dim in dims)


def _numbers(
    name: str,
    values: pa.Array,
    datatype: str,
    starts: Array,
    errors: dict[int, str],
    rules: ConversionRules,
) -> Array:
    """Return values as an array; rows with a value that changes get an error."""
    kind = values.type
    dtype = DTYPES[datatype]
    if values.null_count:
        filler = False if pa.types.is_boolean(kind) else 0
        values = pc.fill_null(values, pa.scalar(filler, kind))
    if pa.types.is_null(kind):
        return np.zeros(len(values), dtype)
    if pa.types.is_decimal(kind):
        array = np.array(values.to_pylist(), np.object_)
    else:
        array = values.to_numpy(zero_copy_only=False)
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
        if rules.allow_rounding and dtype.kind not in "biu":
            # only an overflow is no rounding
            finite = np.isfinite(array.astype(np.float64))
            changed = finite & ~np.isfinite(converted.astype(np.float64))
        elif array.dtype == np.object_:
            changed = np.array(
                [
                    one != type(one)(other.item())
                    for one, other in zip(array, converted, strict=True)
                ],
                np.bool_,
            )
        else:
            back = converted.astype(array.dtype)
            changed = (back != array) & ~((back != back) & (array != array))  # noqa: PLR0124 - NaN
    if changed.any():
        for at in np.flatnonzero(changed).tolist():
            row = int(np.searchsorted(starts, at, side="right")) - 1
            errors.setdefault(row, _lossy(name, values[at].as_py(), kind, datatype))
    return converted


def _lossy(name: str, value: Any, kind: pa.DataType, datatype: str) -> str:
    text = f"column '{name}': {value} ({kind}) is no {datatype}"
    if datatype in {"FP16", "FP32", "FP64", "BF16"}:
        return f"{text} without rounding: use --allow-rounding"
    return text


def _regular(column: InputColumn) -> InputColumn:
    """Return the column with one shape if all rows have the same."""
    if len(column.shapes) > 1 and all(shape == column.shapes[0] for shape in column.shapes):
        column.shapes = column.shapes[:1]
    return column


def _strings(
    binding: InputBinding, values: pa.Array, lengths: Array, shapes: list[tuple[int, ...]]
) -> InputColumn:
    """Return text or binary values in wire form: each after its length in four bytes."""
    if pa.types.is_null(values.type):
        values = values.cast(pa.binary())
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    if values.null_count:
        values = pc.fill_null(values, b"" if is_binary(values.type) else "")
    wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    if wide:
        offsets = np.frombuffer(values.buffers()[1], np.int64)
    else:
        offsets = (
            np.frombuffer(values.buffers()[1], np.int32) if len(values) else np.zeros(1, np.int32)
        )
    offsets = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    content = values.buffers()[2]
    data = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]] if content else None
    sizes = np.diff(offsets)
    ends = offsets - offsets[0] + 4 * np.arange(len(offsets))
    wire = np.empty(int(ends[-1]), np.uint8)
    heads = (ends[:-1, None] + np.arange(4)).reshape(-1)
    wire[heads] = sizes.astype("<u4").view(np.uint8)
    if data is not None:
        body = np.ones(len(wire), np.bool_)
        body[heads] = False
        wire[body] = data
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    spec = binding.spec
    return _regular(InputColumn(spec.name, "BYTES", shapes, wire, ends[bounds]))


def _stacked(binding: InputBinding, parts: list[InputColumn], count: int) -> InputColumn:
    """Join columns of equal shape along a new last dimension."""
    spec = binding.spec
    if any(len(part.shapes) > 1 or part.datatype == "BYTES" for part in parts):
        raise InvalidJob(
            f"input '{spec.name}' takes several columns: they must be numbers or lists of one size"
        )
    values = np.stack([part.values.reshape(count, -1) for part in parts], axis=-1)
    shape = (*parts[0].shapes[0], len(parts))
    fitted = fitted_shape(shape, spec.dims) or fitted_shape((prod(shape),), spec.dims)
    if fitted is None:
        raise InvalidJob(
            f"input '{spec.name}': {len(parts)} columns have the shape {shape_text(shape)}, not "
            f"{shape_text(spec.dims)}"
        )
    starts = np.arange(count + 1, dtype=np.int64) * prod(shape)
    return InputColumn(spec.name, spec.datatype, [fitted], values.reshape(-1), starts)


def _images(
    binding: InputBinding, column: pa.Array, errors: dict[int, str], rules: ConversionRules
) -> InputColumn:
    """Decode images and scale them to the size of the input, with Pillow."""
    spec = binding.spec
    shape, layout = image_shape(spec.dims)
    array = np.zeros((len(column), *shape), DTYPES[spec.datatype])
    for row, content in enumerate(column):
        if row in errors:
            continue
        if not content.is_valid:
            if rules.nulls == "fail":
                raise NullValue(row, binding.columns[0])
            if rules.nulls == "skip":
                errors.setdefault(row, null_text(binding.columns[0]))
            continue
        try:
            array[row] = decode_image(content.as_py(), shape, layout, rules.image_scale)
        except (OSError, ValueError, SyntaxError) as error:
            errors.setdefault(row, f"the image cannot be decoded: {error}")
    row_values = prod(shape)
    starts = np.arange(len(column) + 1, dtype=np.int64) * row_values
    return InputColumn(spec.name, spec.datatype, [shape], array.reshape(-1), starts)


def image_shape(dims: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """Return the shape of an image for an input, and `chw` or `hwc`. Raises InvalidJob.

    Free sizes become 224.
    """
    inner = dims[-3:]
    if inner[0] in (1, 3):
        layout, height, width, channels = "chw", inner[1], inner[2], inner[0]
    elif inner[2] in (1, 3):
        layout, height, width, channels = "hwc", inner[0], inner[1], inner[2]
    else:
        raise InvalidJob(
            f"an image has 1 or 3 channels, the input has the shape {shape_text(dims)}"
        )
    height, width = (224 if size < 0 else size for size in (height, width))
    shape = (channels, height, width) if layout == "chw" else (height, width, channels)
    return ((1, *shape) if len(dims) > len(inner) else shape), layout


def decode_image(content: bytes, shape: tuple[int, ...], layout: str, scale: str) -> Array:
    """Return an encoded image as an array of `shape`, values scaled by the name of `scale`.

    Raises OSError or ValueError for content that is no image.
    """
    from PIL import Image

    inner = shape[-3:]
    channels, height, width = inner if layout == "chw" else (inner[2], inner[0], inner[1])
    with Image.open(io.BytesIO(content)) as image:
        resized = image.convert("RGB" if channels == 3 else "L").resize(
            (width, height), Image.Resampling.BILINEAR
        )
    pixels: Array = np.asarray(resized, np.float32).reshape(height, width, channels)
    if scale == "unit":
        pixels = pixels / 255
    elif scale == "inception":
        pixels = pixels / 127.5 - 1
    elif scale == "imagenet":
        pixels = (pixels / 255 - _MEANS[:channels]) / _DEVIATIONS[:channels]
    return (pixels.transpose(2, 0, 1) if layout == "chw" else pixels).reshape(shape)
