"""The regions of one request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from tritonpy.shared_memory.regions import Region, Regions
from tritonpy_types import ITEMSIZES, InferRequest, InferResponse, OutputSpec, RegionSlice, Tensor
from tritonpy_types.error_ids import internal_error
from tritonpy_types.errors import FailureReason, Internal, TritonError

log = logging.getLogger("tritonpy.shared_memory")


class RequestRegions:
    """Holds the regions of one request until its final response, and writes its outputs to them."""

    def __init__(self, regions: Regions, given: Mapping[str, Tensor]) -> None:
        self._regions = regions
        self._given = dict(given)
        self._held: list[Region] = []
        self._outputs: dict[str, tuple[OutputSpec, Region]] = {}

    def input(self, tensor: Tensor) -> Tensor:
        """Return `tensor` with a view of its region as its data. Raises TritonError."""
        return _read(tensor, self._hold(tensor.data))

    def output(self, spec: OutputSpec) -> None:
        """Hold the region of an output. Raises TritonError."""
        self._outputs[spec.name] = (
            spec,
            self._hold(RegionSlice(spec.region, spec.offset, spec.byte_size)),
        )

    def _hold(self, part: RegionSlice) -> Region:
        region = self._regions.hold(part)
        self._held.append(region)
        return region

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        """Write outputs to their regions; after the final response release the regions."""
        if request.finished:  # too late: the client may use the memory for something else
            return response
        if self._outputs and response.error is None:
            try:
                response.outputs = [self._written(tensor) for tensor in response.outputs]
            except TritonError as error:
                response = _failed(request, response, error)
            except Exception as error:
                response = _failed(
                    request,
                    response,
                    internal_error(log, "the copy of an output to shared memory", error),
                )
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
                f"shared memory size specified with the request for output '{spec.name}' "
                f"({spec.byte_size} bytes) should be at "
                f"least {array.nbytes} bytes to hold the results",
                FailureReason.BACKEND,
            )
        region.memory.write(spec.offset, array)
        return Tensor(
            tensor.name, tensor.datatype, tensor.shape,
            RegionSlice(spec.region, spec.offset, array.nbytes)
        )  # fmt: skip

    def outputs(self, response: InferResponse) -> list[Tensor]:
        """Return the outputs with their data, except those whose memory no longer exists."""
        found = []
        for tensor in response.outputs:
            with suppress(TritonError):
                found.append(
                    _read(tensor, self._outputs[tensor.name][1])
                    if isinstance(tensor.data, RegionSlice)
                    else tensor
                )
        return found

    def release(self) -> None:
        """Release the regions; a second call does nothing."""
        self._regions.release(self._held)

    def undo(self, request: InferRequest) -> None:
        """Restore `request` to its state before `hold_regions`: the engine did not take it."""
        request.inputs, request.regions = self._given, None
        self.release()


def hold_regions(regions: Regions, request: InferRequest) -> RequestRegions:
    """Hold the regions of `request` until its final response, and replace inputs by views of them.

    Raises NotFound and InvalidArgument with Triton's texts. The request is unchanged then.
    """
    held = RequestRegions(regions, request.inputs)
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
    failed.final = response.final  # the other responses of several may still succeed
    return failed
