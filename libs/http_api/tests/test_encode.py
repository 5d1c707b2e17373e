from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DTYPES, InferResponse, Internal, InvalidArgument, OutputSpec, Tensor
from tritonpy.frontend import RegionSlice
from tritonpy_http_api.compression import UnsupportedEncoding
from tritonpy_http_api.encode import JOIN_BELOW, JSON_TYPE, encode_error, encode_infer

S = Tensor.from_numpy("S", np.array([[1, 2]], np.int32))
D = Tensor.from_numpy("D", np.array([["a", "b"]], np.object_))


def encode(outputs, specs=None, binary=False, **fields):
    reply = encode_infer(InferResponse(outputs, "m", 1, **fields), specs, binary)
    body, headers = b"".join(reply.parts), dict(reply.headers)
    assert reply.size == len(body) == int(headers[b"content-length"])
    return body, headers


def split(body, headers):
    size = int(headers.get(b"inference-header-content-length", len(body)))
    return json.loads(body[:size]), body[size:]


def test_json_responses_match_triton():
    body, headers = encode([S], id="q", parameters={"a": 1, "b": "x", "c": True})
    assert body == (
        b'{"id":"q","model_name":"m","model_version":"1","parameters":{"a":1,"b":"x","c":true},'
        b'"outputs":[{"name":"S","datatype":"INT32","shape":[1,2],"data":[1,2]}]}'
    )
    assert headers[b"content-type"] == b"application/json"
    assert b"inference-header-content-length" not in headers


def test_binary_data_follows_in_the_order_of_the_outputs():
    body, headers = encode([S, D], binary=True)
    header, tail = split(body, headers)
    assert [output["parameters"]["binary_data_size"] for output in header["outputs"]] == [8, 10]
    assert tail == S.data.tobytes() + D.data.tobytes()
    assert headers[b"content-type"] == b"application/octet-stream"


def test_each_output_has_its_own_format():
    header, tail = split(*encode([D, S], {"D": OutputSpec("D"), "S": OutputSpec("S", binary=True)}))
    assert header["outputs"][0] == {
        "name": "D",
        "datatype": "BYTES",
        "shape": [1, 2],
        "data": ["a", "b"],
    }
    assert tail == S.data.tobytes()


@pytest.mark.parametrize("binary", [True, False])
def test_an_output_that_was_not_requested_has_the_general_format(binary):
    header, tail = split(*encode([D, S], {"S": OutputSpec("S", binary=True)}, binary))
    assert [output["name"] for output in header["outputs"]] == ["D", "S"]
    assert ("data" in header["outputs"][0]) is not binary
    assert tail.endswith(S.data.tobytes())


def test_an_output_in_shared_memory_has_no_data():
    far = Tensor("R", "INT32", (1, 2), RegionSlice("r", 0, 8))
    specs = {"R": OutputSpec("R", region="r", byte_size=8), "S": OutputSpec("S", binary=True)}
    header, tail = split(*encode([far, S], specs))
    assert header["outputs"][0] == {"name": "R", "datatype": "INT32", "shape": [1, 2]}
    assert tail == S.data.tobytes()


def test_empty_binary_outputs_have_the_content_type_json():
    empty = Tensor.from_numpy("E", np.empty((0, 3), np.float32))
    body, headers = encode([empty], binary=True)
    assert json.loads(body)["outputs"][0]["parameters"] == {"binary_data_size": 0}
    assert headers[b"content-type"] == b"application/json"


@pytest.mark.parametrize("datatype", [name for name in DTYPES if name != "BYTES"])
@pytest.mark.parametrize("count", [4, JOIN_BELOW + 1])
def test_every_datatype_is_sent_as_binary(datatype, count):
    array = (np.arange(count) % 2).astype(DTYPES[datatype])
    header, tail = split(*encode([Tensor.from_numpy("Y", array)], binary=True))
    assert tail == array.tobytes()
    assert header["outputs"][0]["datatype"] == datatype


def test_large_tensors_are_not_copied():
    array = np.zeros(JOIN_BELOW, np.float32)
    reply = encode_infer(InferResponse([Tensor.from_numpy("Y", array)], "m", 1), None, True)
    assert np.shares_memory(np.frombuffer(reply.parts[1], np.uint8), array)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
def test_any_name_and_id_are_quoted(name, request_id):
    for binary in (False, True):
        tensor = Tensor(name, "INT32", (1, 2), S.data)
        header, _ = split(*encode([tensor], binary=binary, id=request_id))
        assert (header["id"], header["outputs"][0]["name"]) == (request_id, name)


def test_half_precision_in_json_is_refused():
    with pytest.raises(InvalidArgument, match=r"sending FP16 data via JSON is not supported"):
        encode([Tensor.from_numpy("Y", np.zeros(1, np.float16))])


def test_errors_are_encoded():
    reply = encode_error(Internal("boom"))
    assert (reply.status, b"".join(reply.parts)) == (500, b'{"error":"boom"}')
    assert dict(reply.headers)[b"content-type"] == b"text/plain"
    assert (
        dict(encode_error(Internal("boom"), JSON_TYPE).headers)[b"content-type"]
        == b"application/json"
    )
    assert (
        dict(encode_error(UnsupportedEncoding("x")).headers)[b"accept-encoding"] == b"gzip, deflate"
    )
