"""The check of requests against a model's configuration.

A `RequestCheck` is built once per loaded version and called once per request.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tritonpy.model.reshape import Reshape
from tritonpy.model.string_check import find_string_error, has_matching_strings
from tritonpy_config.model_fit import MAX_SIZE, WILDCARD, dims_text
from tritonpy_ipc.blocks import BlockView
from tritonpy_ipc.string_check import InputError
from tritonpy_protos.model_config_pb2 import ModelSequenceBatching
from tritonpy_types import CPU, DATATYPE_OF_NUMBER, InferRequest, Tensor
from tritonpy_types.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tritonpy_ipc.signatures import TensorSignature
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput

# An ensemble passes any priority on to its steps.
_ANY_PRIORITY = (1 << 64) - 1
_NOT_PLAIN = -1
_MOST_SIGNATURES = 64


# Checking a BYTES buffer of this size takes a few hundred us at most. The thread of the
# instance checks larger ones.
MAX_INLINE_STRING_BYTES = 64 * 1024

_BATCH_NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to "
    "be prepended to each "
    "input shape. If you want to specify the full shape including the batch dim in your input "
    "dims config, try setting "
    "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
)


class InputRule:
    """One configured input.

    `batched` says that a batch dimension precedes `dims`. Shape tensors never have one.
    """

    def __init__(self, config: ModelInput, batched: bool, model_name: str) -> None:
        kind = DATATYPE_OF_NUMBER[config.data_type]
        self.name = config.name
        self.model_name = model_name
        self.datatype = kind.name
        self.dims = tuple(config.dims)
        self.optional = config.optional
        self.batched = batched and not config.is_shape_tensor
        # Triton's error text shows a batch dimension for shape tensors, too.
        self._expected, self._note = (
            ((WILDCARD, *self.dims), _BATCH_NOTE) if batched else (self.dims, "")
        )
        self.skip = 1 if self.batched else 0
        # Only the backend knows the size of other formats.
        self.sized = not config.is_non_linear_format_io
        self.itemsize = kind.itemsize
        # Size of one row if every dimension is fixed. -1 never matches and leads to the slower
        # `fits`.
        self.row_bytes = (
            -1 if WILDCARD in self.dims or not kind.itemsize else prod(self.dims) * kind.itemsize
        )
        self._dtype = kind.dtype
        self._rank = len(self.dims) + self.skip
        self._fixed = [
            (index, dim) for index, dim in enumerate(self.dims, start=self.skip) if dim != WILDCARD
        ]

    def fits(self, tensor: Tensor) -> bool:
        """Return whether `tensor` has the datatype, shape and size of this input.

        The elements of large BYTES tensors are not checked.
        """
        shape, data = tensor.shape, tensor.data
        if tensor.datatype != self.datatype or len(shape) != self._rank:
            return False
        for index, dim in self._fixed:
            if shape[index] != dim:
                return False
        # An array of the right dtype and shape has the right size. Skipping the computation saves 2
        # us.
        if type(data) is np.ndarray and data.dtype == self._dtype and data.shape == shape:
            return True
        return self._size_error(tensor) is None

    def needs_deferred_check(self, tensor: Tensor) -> bool:
        """Return whether `tensor` is a BYTES tensor too large to be checked on the event loop."""
        return (
            self.datatype == "BYTES"
            and tensor.device == CPU
            and tensor.data.nbytes > MAX_INLINE_STRING_BYTES
        )

    def find_error(self, tensor: Tensor) -> InputError | None:
        """Return what is wrong with `tensor` in Triton's words, or None."""
        name, model = self.name, self.model_name
        if tensor.datatype != self.datatype:
            return InputError(
                f"inference input '{name}' data-type is '{tensor.datatype}', "
                f"but model '{model}' expects "
                f"'{self.datatype}'"
            )
        return self._shape_error(tensor) or self._size_error(tensor)

    def _shape_error(self, tensor: Tensor) -> InputError | None:
        sizes = tensor.shape[self.skip :]
        fits = len(sizes) == len(self.dims)
        for size, dim in zip(sizes, self.dims, strict=False) if fits else ():
            if size == WILDCARD:
                return InputError(
                    f"All input dimensions should be specified for input '{self.name}' for model "
                    f"'{self.model_name}', "
                    f"got {dims_text(tensor.shape)}"
                )
            if dim not in (size, WILDCARD):
                fits = False
                break
        if fits:
            return None
        return InputError(
            f"unexpected shape for input '{self.name}' for model '{self.model_name}'. "
            f"Expected {dims_text(self._expected)}, got "
            f"{dims_text(tensor.shape)}. {self._note}"
        )

    def _size_error(self, tensor: Tensor) -> InputError | None:
        shape, name = tensor.shape, self.name
        if not self.sized:
            return None
        if min(shape) < 0:
            where = dims_text(shape) if self.itemsize else f"in shape {dims_text(shape)}"
            return InputError(
                f"tensor '{name}' contains an invalid dimension {where}", with_id=False
            )
        expected = prod(shape) * (self.itemsize or 1)
        if expected > MAX_SIZE:
            quantity = "byte size" if self.itemsize else "element count"
            return InputError(
                f"{quantity} for tensor '{name}' exceeds maximum size of {MAX_SIZE}", with_id=False
            )
        if not self.itemsize:
            is_valid = self.needs_deferred_check(tensor) or has_matching_strings(tensor)
            return None if is_valid else find_string_error(tensor, self.model_name)
        return None if tensor.nbytes == expected else self.size_mismatch(expected, tensor.nbytes)

    def size_mismatch(self, expected: int, found: int) -> InputError:
        """Return the error for `found` bytes where `expected` bytes are needed."""
        return InputError(
            f"input byte size mismatch for input '{self.name}' for model '{self.model_name}'. "
            f"Expected {expected}, got "
            f"{found}"
        )


class SequenceIdRule:
    """The control input for the sequence id; false for a model that has none."""

    def __init__(self, config: ModelConfig, model_name: str) -> None:
        self._model_name = model_name
        self._control, self._datatype = _id_control(config)

    def __bool__(self) -> bool:
        """Return whether the model has such a control input."""
        return bool(self._control)

    def check(self, request: InferRequest) -> None:
        """Raise `InvalidArgument` if the id and the control input have different types.

        One is a string and the other one a number.
        """
        if not self._control:
            return
        sequence = request.sequence
        # A request without a sequence counts as one with the id 0.
        found = "BYTES" if sequence is not None and isinstance(sequence.id, str) else "UINT64"
        if (found == "BYTES") != (self._datatype == "BYTES"):
            raise InvalidArgument(
                f"sequence batching control '{self._control}' data-type is '{found}', "
                f"but model '{self._model_name}' "
                f"expects '{self._datatype}'"
            ).with_request_id(request.id)


def _id_control(config: ModelConfig) -> tuple[str, str]:
    """Return name and datatype of the control input for the id, or two empty strings."""
    for tensor in config.sequence_batching.control_input:
        for control in tensor.control:
            if control.kind == ModelSequenceBatching.Control.CONTROL_SEQUENCE_CORRID:
                return tensor.name, DATATYPE_OF_NUMBER[control.data_type].name
    return "", ""


class RequestCheck:
    """Checks and normalizes requests for one version of the model `name`. Thread-safe.

    `outputs` maps the shapes of the model's outputs to those that clients get. It is false if no
    output is reshaped.
    """

    def __init__(self, config: ModelConfig, name: str) -> None:
        batched = config.max_batch_size > 0
        self.name = name
        self.outputs = Reshape.of_outputs(config)
        self._inputs = Reshape.of_inputs(config)
        self._rules = {tensor.name: InputRule(tensor, batched, name) for tensor in config.input}
        self._required = [rule.name for rule in self._rules.values() if not rule.optional]
        self._output_names = frozenset(output.name for output in config.output)
        self._skip = 1 if batched else 0
        self._max_batch = config.max_batch_size if batched else 1
        # Shape tensors and non-linear formats need the thorough check for every request.
        plain = all(rule.batched == batched and rule.sized for rule in self._rules.values())
        self._plain_count = len(self._rules) if plain else _NOT_PLAIN
        self._priorities, self._default_priority = _priorities(config)
        self._sequence_id = SequenceIdRule(config, name)
        self._sequences = config.HasField("sequence_batching")
        self._reshapes_or_sequences = bool(self._inputs) or self._sequences
        # Batch sizes by signature of coalesced inputs.
        self._known_batch_sizes: dict[TensorSignature | None, int] = {}

    def check(self, request: InferRequest) -> None:
        """Check `request` and prepare it for the scheduler.

        Sets the batch size, the priority and `unchecked_strings` (if true, call `check_strings` off
        the event loop). Inputs that the configuration reshapes get the model's shapes. Raises
        `InvalidArgument` with Triton's text.
        """
        # The hot path handles tensors of fixed size in one pass. Anything else gets the thorough
        # check, which also produces the error texts.
        inputs, rules, skip = request.inputs, self._rules, self._skip
        if len(inputs) != self._plain_count:
            self._check_thoroughly(request)
            return
        batch_size = _NOT_PLAIN
        for name, tensor in inputs.items():
            rule, shape, data = rules.get(name), tensor.shape, tensor.data
            if rule is None:
                break
            rows = shape[0] if skip and shape else 1
            if (
                shape[skip:] != rule.dims
                or tensor.datatype != rule.datatype
                or type(data) is not np.ndarray
                or data.nbytes != rows * rule.row_bytes
            ) and not self._fits(rule, tensor, request):
                break
            if rows != batch_size:
                if batch_size != _NOT_PLAIN:
                    break
                batch_size = rows
        else:
            if 0 < batch_size <= self._max_batch:
                request.batch_size = batch_size
                self._finish(request)
                return
        self._check_thoroughly(request)

    def check_coalesced(self, requests: Sequence[InferRequest]) -> bool:
        """Check and prepare requests that differ only in values and have no BYTES input.

        False if they must be checked one by one because some may have to be rejected.
        """
        first = requests[0]
        if self._reshapes_or_sequences:
            return False
        try:
            self._check_first(first)
        except InvalidArgument:  # the text may contain the id of the request
            return False
        for request in requests:
            request.batch_size, request.priority, request.outputs = (
                first.batch_size,
                first.priority,
                first.outputs,
            )
        return True

    def _check_first(self, request: InferRequest) -> None:
        inputs: Any = request.inputs
        signature = inputs.block.signature if isinstance(inputs, BlockView) else None
        batch_size = self._known_batch_sizes.get(signature)
        if batch_size is not None:  # inputs with this signature were checked before
            request.batch_size = batch_size
            self._finish(request)
            return
        self.check(request)
        if signature is not None:
            if len(self._known_batch_sizes) >= _MOST_SIGNATURES:
                self._known_batch_sizes.clear()
            self._known_batch_sizes[signature] = request.batch_size

    def _fits(self, rule: InputRule, tensor: Tensor, request: InferRequest) -> bool:
        if not rule.fits(tensor):
            return False
        if rule.needs_deferred_check(tensor):
            request.unchecked_strings = True
        return True

    def _finish(self, request: InferRequest) -> None:
        if request.outputs is not None:
            self._check_outputs(request)
        if not 0 < request.priority <= self._priorities:
            request.priority = self._default_priority
        if self._reshapes_or_sequences:
            self._sequence_id.check(request)
            if self._sequences and request.unchecked_strings:
                # An invalid request must not start a sequence or leave a gap in one.
                self.check_strings(request)
            if self._inputs:
                request.inputs = {
                    tensor.name: tensor
                    for tensor in self._inputs.apply(list(request.inputs.values()))
                }

    def _check_outputs(self, request: InferRequest) -> None:
        known = self._output_names
        if not request.outputs:
            request.outputs = None  # an empty list requests all outputs
            return
        for name in request.outputs:
            if name not in known:
                raise InvalidArgument(
                    f"unexpected inference output '{name}' for model '{self.name}'"
                )

    def check_strings(self, request: InferRequest) -> None:
        """Check the BYTES inputs that `check` left unchecked.

        Takes time in proportion to their size. Raises `InvalidArgument` with Triton's text.
        """
        for tensor in request.inputs.values():
            if tensor.datatype == "BYTES" and not has_matching_strings(tensor):
                error = find_string_error(tensor, self.name)
                assert error is not None, "two checks of one buffer disagree: this is a bug"  # noqa: S101
                raise _client_error(error, request)
        request.unchecked_strings = False

    def _check_thoroughly(self, request: InferRequest) -> None:
        """Check everything in Triton's order."""
        if request.outputs is not None:
            self._check_outputs(request)
        self._check_names(request)
        batch_size = self._batch_size(request)
        for name, tensor in request.inputs.items():
            rule = self._rules[name]
            error = rule.find_error(tensor)
            if error is not None:
                raise _client_error(error, request)
            if rule.needs_deferred_check(tensor):
                request.unchecked_strings = True
        request.batch_size = batch_size
        self._finish(request)

    def _check_names(self, request: InferRequest) -> None:
        inputs, rules = request.inputs, self._rules
        missing = [name for name in self._required if name not in inputs]
        unexpected = [name for name in inputs if name not in rules]
        if (
            len(inputs) > len(rules)
            or len(inputs) < len(self._required)
            or (missing and not unexpected)
        ):
            raise _client_error(InputError(self._wrong_count(inputs, missing)), request)
        if unexpected:
            raise InvalidArgument(
                f"unexpected inference input '{unexpected[0]}' for model '{self.name}'"
            )

    def _wrong_count(self, inputs: Mapping[str, Tensor], missing: list[str]) -> str:
        total, required = len(self._rules), len(self._required)
        expected = (
            f"{total} inputs"
            if total == required
            else f"number of inputs between {required} and {total}"
        )
        found = f"[{_quoted(inputs)}]"
        # Triton's text lacks the opening bracket of an empty list.
        lacking = f"[{_quoted(missing)}]" if missing else "]"
        return (
            f"expected {expected} but got {len(inputs)} inputs for model '{self.name}'. "
            f"Got input(s) {found}, but missing "
            f"required input(s) {lacking}. Please provide all required input(s)."
        )

    def _batch_size(self, request: InferRequest) -> int:
        """Return the common size of the batch dimension, or 1 if no input has one."""
        batch_size: int | None = None
        for name, tensor in request.inputs.items():
            if not self._rules[name].batched:
                continue
            if not tensor.shape:
                text = (
                    f"input '{name}' has no shape but model requires batch dimension for "
                    f"'{self.name}'"
                )
                raise _client_error(InputError(text), request)
            if batch_size is None:
                batch_size = tensor.shape[0]
            elif tensor.shape[0] != batch_size:
                text = f"input '{name}' batch size does not match other inputs for '{self.name}'"
                raise _client_error(InputError(text), request)
        if batch_size is None:
            return 1
        # Triton keeps the size unsigned: a negative size is a very large one.
        if not 0 <= batch_size <= self._max_batch:
            text = f"inference request batch-size must be <= {self._max_batch} for '{self.name}'"
            raise _client_error(InputError(text), request)
        if batch_size == 0:
            raise _client_error(self._empty_batch(request), request)
        return batch_size

    def _empty_batch(self, request: InferRequest) -> InputError:
        """Return the error for a batch of size 0.

        Triton reads a batch size of 0 as a missing batch dimension, and then misses the bytes of
        one row.
        """
        for name, tensor in request.inputs.items():
            rule = self._rules[name]
            error = rule.find_error(tensor)
            if error is not None:
                return error
            row = prod(tensor.shape[rule.skip :]) * rule.itemsize
            if row:
                return rule.size_mismatch(row, tensor.nbytes)
        return InputError(f"inference request batch-size must be >= 1 for '{self.name}'")


def _client_error(problem: InputError, request: InferRequest) -> Exception:
    error = InvalidArgument(problem.text)
    return error.with_request_id(request.id) if problem.with_id else error


def _quoted(names: Mapping[str, Tensor] | list[str]) -> str:
    return ",".join([f"'{name}'" for name in names])


def _priorities(config: ModelConfig) -> tuple[int, int]:
    """Return the number of priority levels and the default level."""
    if config.HasField("dynamic_batching"):
        return (
            config.dynamic_batching.priority_levels,
            config.dynamic_batching.default_priority_level,
        )
    if config.HasField("ensemble_scheduling"):
        return _ANY_PRIORITY, 0
    return 0, 0
