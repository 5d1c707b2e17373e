"""The check of requests against a model's configuration.

A `RequestCheck` is built once per loaded version and called once per request.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tritonpy.errors import InvalidArgument
from tritonpy.model.input_rule import InputRule
from tritonpy.model.reshape import Reshape
from tritonpy.model.sequence_id import SequenceIdRule
from tritonpy.model.string_check import find_string_error, has_matching_strings
from tritonpy.types import InferRequest, Tensor
from tritonpy_ipc.blocks import BlockView
from tritonpy_ipc.string_check import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tritonpy_ipc.signatures import TensorSignature
    from tritonpy_protos.model_config_pb2 import ModelConfig

# An ensemble passes any priority on to its steps.
_ANY_PRIORITY = (1 << 64) - 1
_NOT_PLAIN = -1
_MOST_SIGNATURES = 64


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
            request.batch_size, request.priority, request.outputs = first.batch_size, first.priority, first.outputs
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
                request.inputs = {tensor.name: tensor for tensor in self._inputs.apply(list(request.inputs.values()))}

    def _check_outputs(self, request: InferRequest) -> None:
        known = self._output_names
        if not request.outputs:
            request.outputs = None  # an empty list requests all outputs
            return
        for name in request.outputs:
            if name not in known:
                raise InvalidArgument(f"unexpected inference output '{name}' for model '{self.name}'")

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
        if len(inputs) > len(rules) or len(inputs) < len(self._required) or (missing and not unexpected):
            raise _client_error(InputError(self._wrong_count(inputs, missing)), request)
        if unexpected:
            raise InvalidArgument(f"unexpected inference input '{unexpected[0]}' for model '{self.name}'")

    def _wrong_count(self, inputs: Mapping[str, Tensor], missing: list[str]) -> str:
        total, required = len(self._rules), len(self._required)
        expected = f"{total} inputs" if total == required else f"number of inputs between {required} and {total}"
        found = f"[{_quoted(inputs)}]"
        # Triton's text lacks the opening bracket of an empty list.
        lacking = f"[{_quoted(missing)}]" if missing else "]"
        return (
            f"expected {expected} but got {len(inputs)} inputs for model '{self.name}'. Got input(s) {found}, but missing "
            f"required input(s) {lacking}. Please provide all required input(s)."
        )

    def _batch_size(self, request: InferRequest) -> int:
        """Return the common size of the batch dimension, or 1 if no input has one."""
        batch_size: int | None = None
        for name, tensor in request.inputs.items():
            if not self._rules[name].batched:
                continue
            if not tensor.shape:
                text = f"input '{name}' has no shape but model requires batch dimension for '{self.name}'"
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
        return config.dynamic_batching.priority_levels, config.dynamic_batching.default_priority_level
    if config.HasField("ensemble_scheduling"):
        return _ANY_PRIORITY, 0
    return 0, 0
