"""Outputs that the client asks for."""

from __future__ import annotations

from typing import Any

from tritonpy.testing.client.exception import InferenceServerException
from tritonpy.types import OutputSpec


class InferRequestedOutput:
    """One wanted output; with `class_count` > 0 its best classes instead of its data."""

    def __init__(self, name: str, binary_data: bool = True, class_count: int = 0) -> None:
        self._spec = OutputSpec(name, class_count, binary=binary_data)

    def name(self) -> str:
        """Return the name."""
        return self._spec.name

    def spec(self) -> OutputSpec:
        """Return what the server gets."""
        return self._spec


def spec_of(item: Any) -> OutputSpec:
    """Return the specification of an InferRequestedOutput of this package, of tritonclient.http or of tritonclient.grpc."""
    if isinstance(item, InferRequestedOutput):
        return item.spec()
    tensor = item._get_tensor()
    parameters: Any = tensor.get("parameters", {}) if isinstance(tensor, dict) else tensor.parameters
    if "shared_memory_region" in parameters:
        raise InferenceServerException(
            f"output '{item.name()}' asks for shared memory, which is not available in process"
        )
    count = parameters.get("classification", 0)
    return OutputSpec(item.name(), count if isinstance(count, int) else int(count.int64_param))
