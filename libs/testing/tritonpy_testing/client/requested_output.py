"""Requested outputs of the client."""

from __future__ import annotations

from typing import Any

from tritonpy import OutputSpec
from tritonpy_testing.client.exception import InferenceServerException
from tritonpy_testing.client.region_parameters import region_of


class InferRequestedOutput:
    """One requested output. With `class_count` > 0 the server returns its top classes instead."""

    def __init__(self, name: str, binary_data: bool = True, class_count: int = 0) -> None:
        self._binary = binary_data
        self._spec = OutputSpec(name, class_count, binary=binary_data)

    def name(self) -> str:
        """Return the name."""
        return self._spec.name

    def set_shared_memory(self, region_name: str, byte_size: int, offset: int = 0) -> None:
        """Let the server write the data into a registered region.

        Raises InferenceServerException for a classification output.
        """
        if self._spec.classification:
            raise InferenceServerException("shared memory can't be set on classification output")
        self._spec = OutputSpec(self.name(), region=region_name, offset=offset, byte_size=byte_size)

    def unset_shared_memory(self) -> None:
        """Return the data in the response again."""
        self._spec = OutputSpec(self.name(), binary=self._binary)

    def spec(self) -> OutputSpec:
        """Return the specification for the server."""
        return self._spec


def spec_of(item: Any) -> OutputSpec:
    """Return the specification of an InferRequestedOutput.

    It may be of this package, tritonclient.http or tritonclient.grpc.
    """
    if isinstance(item, InferRequestedOutput):
        return item.spec()
    tensor = item._get_tensor()
    parameters: Any = (
        tensor.get("parameters", {}) if isinstance(tensor, dict) else tensor.parameters
    )
    region = region_of(parameters)
    if region is not None:
        return OutputSpec(
            item.name(), region=region.name, offset=region.offset, byte_size=region.byte_size
        )
    count = parameters.get("classification", 0)
    return OutputSpec(item.name(), count if isinstance(count, int) else int(count.int64_param))
