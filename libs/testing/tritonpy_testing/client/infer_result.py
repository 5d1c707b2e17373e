"""Results of inferences."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tritonpy import InferResponse, Tensor
from tritonpy.frontend import RegionSlice


class InferResult:
    """One response of a model."""

    def __init__(self, response: InferResponse, stream: bool = False) -> None:
        self._response = response
        self._stream = stream

    def as_numpy(self, name: str) -> npt.NDArray[Any] | None:
        """Return the output `name` as an array (BYTES: objects of type `bytes`).

        Returns None if the response has no such output, or if its data is in shared memory.
        """
        tensor = self._tensor(name)
        return None if tensor is None or isinstance(tensor.data, RegionSlice) else tensor.numpy()

    def get_output(self, name: str) -> dict[str, Any] | None:
        """Return name, datatype and shape of the output `name`, or None if it does not exist."""
        tensor = self._tensor(name)
        return None if tensor is None else _describe(tensor)

    def get_response(self) -> dict[str, Any]:
        """Return the response as the protocol's JSON object, without the data.

        Responses of a stream have the parameter `triton_final_response`.
        """
        response = self._response
        result: dict[str, Any] = {
            "model_name": response.model_name,
            "model_version": str(response.model_version),
        }
        if response.id:
            result["id"] = response.id
        parameters = dict(response.parameters)
        if self._stream:
            parameters["triton_final_response"] = response.final
        if parameters:
            result["parameters"] = parameters
        result["outputs"] = [_describe(tensor) for tensor in response.outputs]
        return result

    def _tensor(self, name: str) -> Tensor | None:
        return next((tensor for tensor in self._response.outputs if tensor.name == name), None)


def _describe(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
