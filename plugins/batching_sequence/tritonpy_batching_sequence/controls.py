"""Control input tensors of sequence models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, InferRequest, Tensor, encode_strings
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_protos.model_config_pb2 import ModelSequenceBatching

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_Control = ModelSequenceBatching.Control
_KINDS = (
    ("int32_false_true", "INT32", np.int32),
    ("fp32_false_true", "FP32", np.float32),
    ("bool_false_true", "BOOL", np.bool_),
)
Slots = Sequence[InferRequest | None]
_Make = Callable[[Slots], Tensor]


class Controls:
    """Creates the control tensors of a batch. False if the model has no control inputs.

    A slot without data has the false value for START, END and READY. Its correlation id is 0 or the
    empty string.
    """

    def __init__(self, config: ModelConfig) -> None:
        batched = config.max_batch_size > 0
        self._makers: list[_Make] = [
            _maker(tensor.name, control, batched)
            for tensor in config.sequence_batching.control_input
            for control in tensor.control
        ]

    def __bool__(self) -> bool:
        """Return whether the model has control inputs."""
        return bool(self._makers)

    def tensors(self, slots: Slots) -> list[Tensor]:
        """Return each control tensor with one row per slot.

        The shape is [slots, 1], or [1] if the model does not batch.
        """
        return [make(slots) for make in self._makers]


def _maker(name: str, control: _Control, batched: bool) -> _Make:
    if control.kind == _Control.CONTROL_SEQUENCE_CORRID:
        datatype = DATATYPE_OF_NUMBER[control.data_type].name
        if datatype == "BYTES":
            return partial(_string_ids, name, batched)
        return partial(_numeric_ids, name, datatype, DTYPES[datatype], batched)
    predicate = {
        _Control.CONTROL_SEQUENCE_START: _has_start,
        _Control.CONTROL_SEQUENCE_END: _has_end,
        _Control.CONTROL_SEQUENCE_READY: _is_ready,
    }[control.kind]
    field, datatype, dtype = next(kind for kind in _KINDS if getattr(control, kind[0]))
    values = list(getattr(control, field))
    return partial(_flags, name, datatype, dtype, values, batched, predicate)


def _flags(
    name: str,
    datatype: str,
    dtype: Any,
    values: Sequence[Any],
    batched: bool,
    predicate: Callable[[InferRequest], bool],
    slots: Slots,
) -> Tensor:
    data = np.array([values[slot is not None and predicate(slot)] for slot in slots], dtype)
    return _control_tensor(name, datatype, data, batched)


def _numeric_ids(name: str, datatype: str, dtype: Any, batched: bool, slots: Slots) -> Tensor:
    ids = [_correlation_id(slot) for slot in slots]
    # Larger ids are truncated to their low bits, as in Triton.
    data = np.array([id if isinstance(id, int) else 0 for id in ids], np.uint64).astype(  # noqa: A001
        dtype, copy=False
    )
    return _control_tensor(name, datatype, data, batched)


def _string_ids(name: str, batched: bool, slots: Slots) -> Tensor:
    data = encode_strings([str(_correlation_id(slot) or "").encode() for slot in slots])
    return Tensor(name, "BYTES", (len(slots), 1) if batched else (1,), data)


def _control_tensor(name: str, datatype: str, data: npt.NDArray[Any], batched: bool) -> Tensor:
    shape = (data.size, 1) if batched else (1,)
    return Tensor(name, datatype, shape, data.reshape(shape))


def _correlation_id(request: InferRequest | None) -> int | str:
    return 0 if request is None or request.sequence is None else request.sequence.id


def _has_start(request: InferRequest) -> bool:
    return request.sequence is not None and request.sequence.start


def _has_end(request: InferRequest) -> bool:
    return request.sequence is not None and request.sequence.end


def _is_ready(request: InferRequest) -> bool:  # noqa: ARG001
    return True
