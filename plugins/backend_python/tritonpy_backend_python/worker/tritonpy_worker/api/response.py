"""Responses of a model, and responses of other models to its requests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .arguments import argument_type_error, is_sequence_of
from .errors import TritonError, TritonModelException
from .parameters import Parameters, as_received_text, as_text, check_parameters
from .tensor import Tensor

_SIGNATURE = (
    "c_python_backend_utils.InferenceResponse(output_tensors: "
    "list[c_python_backend_utils.Tensor] = [], "
    "error: c_python_backend_utils.TritonError = None, parameters: object = None)"
)
_NO_PARAMETERS: Parameters = {}


class InferenceResponse:
    """Outputs or an error, and parameters."""

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_error", "_outputs", "_parameters", "_received")

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        """Raises `TypeError` for wrong types, `TritonModelException` for bad values."""
        if error is None and parameters is None and _are_tensors(output_tensors):
            self._parameters: Parameters | None = _NO_PARAMETERS
        else:
            self._parameters = _checked(output_tensors, error, parameters)
        self._outputs = tuple(output_tensors)
        self._error = error
        self._received = False

    @classmethod
    def received(
        cls, outputs: tuple[Tensor, ...], error: TritonError | None, parameters: Parameters | None
    ) -> InferenceResponse:
        """Return another model's response. If `parameters` is None, it only ends the request."""
        response = cls.__new__(cls)
        response._outputs = outputs
        response._error = error
        response._parameters = parameters
        response._received = True
        return response

    def output_tensors(self) -> list[Tensor]:
        """Return the outputs, in order."""
        return list(self._outputs)

    def has_error(self) -> bool:
        """Return true if the response is an error."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """Return the error, or None."""
        return self._error

    def parameters(self) -> str:
        """Return the parameters as JSON text, empty for a response that only ends a request."""
        if self._parameters is None:
            return ""
        return as_received_text(self._parameters) if self._received else as_text(self._parameters)

    def restricted(self, names: Collection[str]) -> InferenceResponse:
        """Return this response with only the outputs in `names`, the requested ones."""
        outputs = tuple([tensor for tensor in self._outputs if tensor._name in names])
        if len(outputs) == len(self._outputs):
            return self
        response = InferenceResponse.received(outputs, self._error, self._parameters)
        response._received = self._received
        return response


def _are_tensors(given: Any) -> bool:
    """Return true if `given` is a list of tensors, as most models pass. A fast check."""
    if type(given) is not list:
        return False
    for each in given:  # noqa: SIM110  a generator is slower than the loop
        if type(each) is not Tensor:
            return False
    return True


def _checked(output_tensors: Any, error: Any, parameters: Any) -> Parameters:
    """Return the parameters of a response. Raises the constructor's exceptions."""
    if not is_sequence_of(output_tensors, Tensor, type(None)) or not (
        error is None or isinstance(error, TritonError)
    ):
        raise argument_type_error("__init__", _SIGNATURE, output_tensors, error, parameters)
    checked_parameters = check_parameters(parameters)
    if None in output_tensors:
        raise TritonModelException("Output tensor for inference response should not be empty.")
    return checked_parameters
