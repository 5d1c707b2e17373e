"""The regions of one request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from tritonpy.errors import FailureReason, Internal, TritonError
from tritonpy.incidents import incident
from tritonpy.shared_memory.table import Region, Regions
from tritonpy.types import ITEMSIZES, InferRequest, InferResponse, OutputSpec, RegionSlice, Tensor

log = logging.getLogger("tritonpy.shared_memory")


class Held:
    """Holds the regions of one request until its final answer, and writes its outputs into them."""

    def __init__(self, regions: Regions, given: Mapping[str, Tensor]) -> None:
        self._regions = regions
        self._given = dict(given)
        self._held: list[Region] = []
        self._outputs: dict[str, tuple[OutputSpec, Region]] = {}

    def input(self, tensor: Tensor) -> Tensor:
        """Return `tensor` with a view on its region as its data. Raises TritonError."""
        return _read(tensor, self._hold(tensor.data))

    def output(self, spec: OutputSpec) -> None:
        """Take note where an output belongs. Raises TritonError."""
        self._outputs[spec.name] = spec, self._hold(RegionSlice(spec.region, spec.offset, spec.byte_size))

    def _hold(self, part: RegionSlice) -> Region:
        region = self._regions.hold(part)
        self._held.append(region)
        return region

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        """Write the outputs that belong into regions; with the final answer, let the regions go."""
        if request.answered:  # too late: the memory is its owner's again
            return response
        if self._outputs and response.error is None:
            try:
                response.outputs = [self._written(tensor) for tensor in response.outputs]
            except TritonError as error:
                response = _failed(request, response, error)
            except Exception as error:
                response = _failed(request, response, incident(log, "the copy of an output to shared memory", error))
        if response.final:
            self.release()
        return response

    def _written(self, tensor: Tensor) -> Tensor:
        if tensor.name not in self._outputs:
            return tensor
        spec, region = self._outputs[tensor.name]
        array = tensor.data if isinstance(tensor.data, np.ndarray) else tensor.numpy()
        if array.nbytes > spec.byte_size:
            raise Internal(
                f"shared memory size specified with the request for output '{spec.name}' ({spec.byte_size} bytes) should be at "
                f"least {array.nbytes} bytes to hold the results",
                FailureReason.BACKEND,
            )
        region.memory.write(spec.offset, array)
        return Tensor(
            tensor.name, tensor.datatype, tensor.shape, RegionSlice(spec.region, spec.offset, array.nbytes)
        )  # fmt: skip

    def outputs(self, response: InferResponse) -> list[Tensor]:
        """Return the outputs with their data; one whose memory is gone is left out."""
        found = []
        for tensor in response.outputs:
            with suppress(TritonError):
                found.append(
                    _read(tensor, self._outputs[tensor.name][1]) if isinstance(tensor.data, RegionSlice) else tensor
                )
        return found

    def release(self) -> None:
        """Let the regions go; twice does no harm."""
        self._regions.release(self._held)

    def undo(self, request: InferRequest) -> None:
        """Make `request` what it was before `hold_regions`: the engine did not take it."""
        request.inputs, request.regions = self._given, None
        self.release()


def hold_regions(regions: Regions, request: InferRequest) -> Held:
    """Give `request` its regions, and the inputs that lie there as views; they are held until its final answer.

    Raises NotFound and InvalidArgument in Triton's words, and leaves it as it was.
    """
    held = Held(regions, request.inputs)
    try:
        inputs = {
            name: held.input(tensor) if isinstance(tensor.data, RegionSlice) else tensor
            for name, tensor in request.inputs.items()
        }
        for spec in (request.outputs or {}).values():
            if spec.region:
                held.output(spec)
    except BaseException:
        held.release()
        raise
    request.inputs, request.regions = inputs, held
    return held


def _read(tensor: Tensor, region: Region) -> Tensor:
    part: RegionSlice = tensor.data
    view = region.memory.read(part.offset, part.byte_size)
    if tensor.datatype in ITEMSIZES:
        return Tensor.from_buffer(tensor.name, tensor.datatype, tensor.shape, view)
    return Tensor(tensor.name, tensor.datatype, tensor.shape, np.frombuffer(view, np.uint8))


def _failed(request: InferRequest, response: InferResponse, error: TritonError) -> InferResponse:
    failed = InferResponse.failed(request, error)
    failed.final = response.final  # of several answers the others may still fit
    return failed
