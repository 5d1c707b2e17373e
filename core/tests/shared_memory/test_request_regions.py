from __future__ import annotations

import logging

import numpy as np
import pytest

from tritonpy.shared_memory import Regions, hold_regions
from tritonpy_testing import RecordingSink, shared_object
from tritonpy_types import (
    InferRequest,
    InferResponse,
    OutputSpec,
    RegionSlice,
    SystemRegion,
    Tensor,
)
from tritonpy_types.errors import FailureReason, Internal, InvalidArgument, NotFound

VALUES = np.array([1, 2, 3, 4], np.int16)


@pytest.fixture
def client():
    with shared_object(4096, VALUES.tobytes()) as memory:
        yield memory


@pytest.fixture
def regions(client):
    regions = Regions(allowed=True)
    regions.register_system(SystemRegion("r", client.key, 0, 4096))
    return regions


def request_of(*inputs, outputs=None):
    return InferRequest(
        "m",
        {each.name: each for each in inputs},
        RecordingSink().sink,
        outputs=outputs,
        uses_regions=True,
    )


def input_in_region(byte_size=8, offset=0, region="r", datatype="INT16", shape=(4,), name="X"):
    return Tensor(name, datatype, shape, RegionSlice(region, offset, byte_size))


def output_in_region(byte_size=8, offset=16, region="r", name="Y"):
    return {name: OutputSpec(name, region=region, offset=offset, byte_size=byte_size)}


def is_held(regions):
    """Return whether a request holds the region `r`, which is unregistered afterwards."""
    regions.unregister("system", "r")
    return bool(regions.status("system"))


def response_of(array, name="Y", **fields):
    return InferResponse([Tensor.from_numpy(name, array)], **fields)


def test_an_input_is_a_view_of_the_clients_memory(regions, client):
    data = Tensor.from_numpy("D", VALUES)
    request = request_of(input_in_region(), data)
    hold_regions(regions, request)
    assert list(request.inputs) == ["X", "D"]
    array = request.inputs["X"].data
    assert array.tolist() == VALUES.tolist()
    assert request.inputs["D"] is data
    client.write(b"\x09\x00")
    assert array[0] == 9
    assert not array.flags.writeable


def test_a_wrong_size_is_left_to_the_models_validation(regions):
    request = request_of(input_in_region(byte_size=6))
    hold_regions(regions, request)
    assert request.inputs["X"].data.dtype == np.uint8
    assert request.inputs["X"].nbytes == 6


def test_an_unknown_datatype_is_left_to_the_models_validation(regions):
    request = request_of(input_in_region(datatype="<invalid>"))
    hold_regions(regions, request)
    assert (request.inputs["X"].datatype, request.inputs["X"].nbytes) == ("<invalid>", 8)


def test_bytes_tensors_are_read_in_wire_form(regions, client):
    client.write(b"\x02\x00\x00\x00ab\x00\x00\x00\x00")
    request = request_of(input_in_region(10, datatype="BYTES", shape=(2,)))
    hold_regions(regions, request)
    assert request.inputs["X"].strings() == [b"ab", b""]


@pytest.mark.parametrize(
    "bad", [input_in_region(region="gone", name="Z"), input_in_region(byte_size=5000, name="Z")]
)
def test_a_refused_request_is_unchanged_and_holds_nothing(regions, bad):
    request = request_of(input_in_region(), bad)
    inputs = request.inputs
    with pytest.raises((NotFound, InvalidArgument)):
        hold_regions(regions, request)
    assert request.inputs is inputs
    assert request.regions is None
    assert not is_held(regions)


def test_an_output_outside_its_region_is_refused_immediately(regions):
    request = request_of(input_in_region(), outputs=output_in_region(offset=4095))
    with pytest.raises(
        InvalidArgument, match="Invalid offset \\+ byte size for shared memory region: 'r'"
    ):
        hold_regions(regions, request)
    assert not is_held(regions)


def test_undo_restores_the_slices(regions):
    request = request_of(input_in_region())
    hold_regions(regions, request).undo(request)
    assert request.inputs["X"].data == RegionSlice("r", 0, 8)
    assert request.regions is None
    assert not is_held(regions)


def test_an_output_is_written_to_its_region_and_removed_from_the_response(regions, client):
    request = request_of(input_in_region(), outputs={**output_in_region(), "D": OutputSpec("D")})
    held = hold_regions(regions, request)
    other = Tensor.from_numpy("D", VALUES)
    response = held.finish(request, InferResponse([Tensor.from_numpy("Y", VALUES * 2), other]))
    written, kept = response.outputs
    assert client.read(8, 16) == (VALUES * 2).tobytes()
    assert (written.name, written.datatype, written.shape, written.data) == (
        "Y",
        "INT16",
        (4,),
        RegionSlice("r", 16, 8),
    )
    assert kept is other
    assert not is_held(regions)


def test_an_output_may_be_smaller_than_its_region(regions, client):
    request = request_of(outputs=output_in_region(byte_size=100))
    response = hold_regions(regions, request).finish(request, response_of(VALUES))
    assert response.outputs[0].data == RegionSlice("r", 16, 8)


def test_bytes_tensors_are_written_in_wire_form(regions, client):
    request = request_of(outputs=output_in_region(byte_size=11))
    hold_regions(regions, request).finish(request, response_of(np.array([b"abc", b""], np.object_)))
    assert client.read(11, 16) == b"\x03\x00\x00\x00abc\x00\x00\x00\x00"


def test_an_output_larger_than_its_region_is_an_error_and_writes_nothing(regions, client):
    request = request_of(outputs=output_in_region(byte_size=7))
    response = hold_regions(regions, request).finish(request, response_of(VALUES))
    assert isinstance(response.error, Internal)
    assert response.error.reason is FailureReason.BACKEND
    assert response.error.message == (
        "shared memory size specified with the request for output 'Y' (7 bytes) should be at least 8 bytes to hold the results"
    )
    assert not response.outputs
    assert client.read(8, 16) == bytes(8)
    assert not is_held(regions)


def test_one_failing_response_of_several_leaves_the_others(regions, client):
    request = request_of(outputs=output_in_region(byte_size=8))
    held = hold_regions(regions, request)
    too_large = held.finish(request, response_of(np.zeros(5, np.int16), final=False))
    assert too_large.error is not None
    assert not too_large.final
    assert held.finish(request, response_of(VALUES, final=False)).error is None
    assert client.read(8, 16) == VALUES.tobytes()
    held.finish(request, InferResponse((), empty=True))
    assert not is_held(regions)


def test_regions_are_held_until_the_final_response(regions):
    request = request_of(input_in_region(), outputs=output_in_region())
    held = hold_regions(regions, request)
    held.finish(request, response_of(VALUES, final=False))
    assert is_held(regions)
    held.finish(request, InferResponse.failed(request, Internal("it failed")))
    assert regions.status("system") == []


def test_written_outputs_can_still_be_read(regions, client):
    request = request_of(outputs={**output_in_region(), "D": OutputSpec("D")})
    held = hold_regions(regions, request)
    response = held.finish(
        request, InferResponse([Tensor.from_numpy(name, VALUES) for name in ("Y", "D")])
    )
    written, kept = held.outputs(response)
    assert (written.name, written.data.tolist(), kept.data.tolist()) == (
        "Y",
        VALUES.tolist(),
        VALUES.tolist(),
    )
    client.resize(0)
    assert [tensor.name for tensor in held.outputs(response)] == ["D"]


def test_a_late_response_is_not_written(regions, client):
    request = request_of(outputs=output_in_region())
    held = hold_regions(regions, request)
    held.finish(request, InferResponse.failed(request, Internal("cancelled")))
    request.finished = True
    late = response_of(VALUES)
    assert held.finish(request, late) is late
    assert client.read(8, 16) == bytes(8)


def test_memory_that_has_shrunk_is_an_error(regions, client):
    request = request_of(outputs=output_in_region())
    held = hold_regions(regions, request)
    client.resize(16)
    response = held.finish(request, response_of(VALUES))
    assert isinstance(response.error, InvalidArgument)
    client.resize(0)
    with pytest.raises(InvalidArgument):
        hold_regions(regions, request_of(input_in_region()))
    assert not is_held(regions)


def test_an_unexpected_error_is_logged_with_an_error_id(regions, caplog):
    class Odd:
        nbytes = 0

    request = request_of(outputs=output_in_region())
    with caplog.at_level(logging.ERROR):
        response = hold_regions(regions, request).finish(
            request, InferResponse([Tensor("Y", "INT16", (4,), Odd())])
        )
    assert isinstance(response.error, Internal)
    assert "the copy of an output to shared memory failed unexpectedly" in caplog.text
    assert not is_held(regions)
