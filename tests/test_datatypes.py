"""Every data type over both protocols."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

NUMPY = {
    "BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64,
    "FP16": np.float16, "FP32": np.float32, "FP64": np.float64, "BF16": ml_dtypes.bfloat16,
}  # fmt: skip
JSON_TYPES = [name for name in NUMPY if name not in {"FP16", "BF16"}]


def sample(datatype: str) -> np.ndarray[Any, Any]:
    """Return 3 x 4 values that include the extremes of the type."""
    if datatype == "BYTES":
        texts = ["", "a", "zwölf", "\x00", "👍", *map(str, range(7))]
        return np.array([text.encode() for text in texts], object).reshape(3, 4)
    dtype = np.dtype(NUMPY[datatype])
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([low, high, *range(10)], dtype).reshape(3, 4)
    if dtype.kind == "b":
        return np.arange(12).reshape(3, 4) % 2 == 0
    return np.array([-1.5, 2.0**10, 0.25, *range(9)], dtype).reshape(3, 4)


def infer_tensor(
    client: Any, protocol: Any, model: str, values: np.ndarray[Any, Any], datatype: str, **how: Any
) -> Any:
    given = protocol.InferInput("IN", list(values.shape), datatype)
    given.set_data_from_numpy(values, **how)
    return client.infer(model, [given])


@pytest.mark.parametrize("datatype", [*NUMPY, "BYTES"])
def test_a_tensor_of_each_type_round_trips(client: Any, protocol: Any, datatype: str) -> None:
    values = sample(datatype)
    response = infer_tensor(client, protocol, f"identity_{datatype.lower()}", values, datatype)
    returned = response.as_numpy("OUT")
    assert returned.shape == values.shape
    # older client releases have no bfloat16 and return float32 with the same values
    assert (returned == values).all()
    described = response.get_output("OUT")
    assert (
        described["datatype"] if isinstance(described, dict) else described.datatype
    ) == datatype


@pytest.mark.parametrize("datatype", [*JSON_TYPES, "BYTES"])
def test_a_tensor_of_each_type_round_trips_as_json(http_client: Any, datatype: str) -> None:
    import tritonclient.http as protocol

    values = sample(datatype)
    given = protocol.InferInput("IN", list(values.shape), datatype)
    given.set_data_from_numpy(values, binary_data=False)
    wanted = protocol.InferRequestedOutput("OUT", binary_data=False)
    response = http_client.infer(f"identity_{datatype.lower()}", [given], outputs=[wanted])
    expected = (
        np.array([text.decode() for text in values.ravel()], object).reshape(3, 4)
        if datatype == "BYTES"
        else values
    )
    assert (response.as_numpy("OUT") == expected).all()
    assert "binary_data_size" not in str(response.get_response())


@pytest.mark.parametrize("datatype", [*NUMPY, "BYTES"])
def test_an_empty_tensor_round_trips(client: Any, protocol: Any, datatype: str) -> None:
    values = np.zeros((0, 4), NUMPY.get(datatype, np.object_))
    returned = infer_tensor(
        client, protocol, f"identity_{datatype.lower()}", values, datatype
    ).as_numpy("OUT")
    assert returned is None or returned.shape == (0, 4)


def test_a_single_element_round_trips(client: Any, protocol: Any) -> None:
    returned = infer_tensor(
        client, protocol, "identity_fp64", np.full((1, 1), np.pi), "FP64"
    ).as_numpy("OUT")
    assert returned.shape == (1, 1)
    assert returned[0, 0] == np.pi


def test_a_model_with_scalar_tensors_works(client: Any, protocol: Any) -> None:
    returned = infer_tensor(
        client, protocol, "scalar", np.array([[2.5], [-1]], np.float32), "FP32"
    ).as_numpy("OUT")
    assert returned.tolist() == [[2.5], [-1]]


def test_nan_and_infinities_round_trip_in_binary(client: Any, protocol: Any) -> None:
    values = np.array([[np.nan, np.inf, -np.inf]], np.float32)
    returned = infer_tensor(client, protocol, "identity_fp32", values, "FP32").as_numpy("OUT")
    assert returned.tobytes() == values.tobytes()


def test_sixteen_megabytes_round_trip(client: Any, protocol: Any) -> None:
    values = np.random.default_rng(7).random((2048, 2048), np.float32)
    assert (
        infer_tensor(client, protocol, "identity_fp32", values, "FP32").as_numpy("OUT") == values
    ).all()


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_precision_as_json_is_refused(server: Any, datatype: str) -> None:
    body = (
        f'{{"inputs": [{{"name": "IN", "datatype": "{datatype}", "shape": [1, 1], "data": [1]}}]}}'
    )
    response = server.request(f"/v2/models/identity_{datatype.lower()}/infer", body)
    assert response.status == 400
    assert response.json()["error"] == (
        f"receiving {datatype} data via JSON is not supported. Please use the binary data format for input IN"
    )
