"""Results of inferences."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tritonpy.types import InferResponse, RegionSlice, Tensor


class InferResult:
    """One answer of a model."""

    def __init__(self, response: InferResponse, stream: bool = False) -> None:
        self._response = response
        self._stream = stream

    def as_numpy(self, name: str) -> npt.NDArray[Any] | None:
        """Return the output `name` as an array (BYTES: objects of type `bytes`), None where the answer has no such output or its data is in shared memory."""
        tensor = self._tensor(name)
        return None if tensor is None or isinstance(tensor.data, RegionSlice) else tensor.numpy()

    def get_output(self, name: str) -> dict[str, Any] | None:
        """Return name, datatype and shape of the output `name`, None where the answer has no such output."""
        tensor = self._tensor(name)
        return None if tensor is None else _describe(tensor)

    def get_response(self) -> dict[str, Any]:
        """Return the answer as the protocol's JSON object, without the data.

        An answer of a stream has the parameter `triton_final_response`.
        """
        response = self._response
        result: dict[str, Any] = {"model_name": response.model_name, "model_version": str(response.model_version)}
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
