"""The check of a request's sequence id against the type of the model's control input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.errors import InvalidArgument
from tritonpy.types import DATATYPE_OF_NUMBER, InferRequest
from tritonpy_protos.model_config_pb2 import ModelSequenceBatching

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


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
                f"sequence batching control '{self._control}' data-type is '{found}', but model '{self._model_name}' "
                f"expects '{self._datatype}'"
            ).with_request_id(request.id)


def _id_control(config: ModelConfig) -> tuple[str, str]:
    """Return name and datatype of the control input for the id, or two empty strings."""
    for tensor in config.sequence_batching.control_input:
        for control in tensor.control:
            if control.kind == ModelSequenceBatching.Control.CONTROL_SEQUENCE_CORRID:
                return tensor.name, DATATYPE_OF_NUMBER[control.data_type].name
    return "", ""
