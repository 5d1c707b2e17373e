"""Tenants with API keys on a server with ports."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tritonpy_auth_api_keys.key import new_key
from tritonpy_auth_api_keys.key_file import KeyEntry, format_entry
from tritonpy_protos import grpc_service_pb2 as service_pb2
from tritonpy_testing import RunningServer, running_server

KEYS = {name: new_key() for name in ("acme", "greedy")}
CONFIG = """
backend: "python" max_batch_size: 1
input { name: "IN" data_type: TYPE_INT64 dims: 1 } output { name: "OUT" data_type: TYPE_INT64 dims: 1 }
instance_group { count: 1 kind: KIND_CPU } parameters { key: "isolation" value { string_value: "thread" } }
"""
MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each.inputs()[0].as_numpy())]) for each in requests]
"""
CALLER = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        outputs = []
        for request in requests:
            for _ in range(5):
                made = pb_utils.InferenceRequest(model_name="plain", inputs=request.inputs(), requested_output_names=["OUT"])
                answer = made.exec()
                assert not answer.has_error(), answer.error().message()
            outputs.append(pb_utils.InferenceResponse(answer.output_tensors()))
        return outputs
"""
SHARING = {
    "fair": {
        "header": "X-Tenant",
        "tenants": {name: {"requests_per_s": 0.01, "burst": 2} for name in ("greedy", "modest")},
    }
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("fair")
    keys = folder / "keys.toml"
    entries = [
        format_entry(key.id, KeyEntry(name, key.hash, infer=("*",))) for name, key in KEYS.items()
    ]
    keys.write_text("\n".join(entries))
    keys.chmod(0o600)
    for name, code in {"plain": MODEL, "caller": CALLER}.items():
        (folder / "models" / name / "1").mkdir(parents=True)
        (folder / "models" / name / "1" / "model.py").write_text(code)
        (folder / "models" / name / "config.pbtxt").write_text(CONFIG)
    settings: dict[str, Any] = {
        "repositories": [{"url": str(folder / "models")}],
        "frontends": {
            "http": {"port": 0},
            "grpc": {"port": 0},
            "metrics": False,
        },
        "auth": {"api_keys": {"file": str(keys)}},
        "sharing": SHARING,
    }
    with running_server(settings) as running:
        yield running


def post(
    server: RunningServer, path: str, tenant: str, key: str = "acme", value: int = 1
) -> tuple[int, dict[str, str], Any]:
    body = {"inputs": [{"name": "IN", "datatype": "INT64", "shape": [1, 1], "data": [value]}]}
    if "/generate" in path:
        body = {"IN": value}
    connection = http.client.HTTPConnection(server.http)
    headers = {"authorization": f"Bearer {KEYS[key].text}"} | (
        {"x-tenant": tenant} if tenant else {}
    )
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    values = (
        response.status,
        {name.lower(): text for name, text in response.getheaders()},
        json.loads(response.read()),
    )
    connection.close()
    return values


def use_up(server: RunningServer) -> None:
    for _ in range(2):
        post(server, "/v2/models/plain/infer", "greedy")


@pytest.mark.parametrize(
    "path",
    ["/v2/models/plain/infer", "/v2/models/plain/generate", "/v2/models/plain/generate_stream"],
)
@pytest.mark.parametrize(("tenant", "key"), [("greedy", "acme"), ("", "greedy")])
def test_over_http_an_exceeded_quota_is_429_with_retry_after(
    server: RunningServer, path: str, tenant: str, key: str
) -> None:
    use_up(server)
    status, headers, body = post(server, path, tenant, key)
    assert (status, body) == (
        429,
        {"error": "tenant 'greedy' exceeds its quota of 0.01 per second"},
    )
    assert 1 <= int(headers["retry-after"]) <= 100
    assert post(server, "/v2/models/plain/infer", "")[0] == 200


def message(value: int = 1) -> service_pb2.ModelInferRequest:
    request = service_pb2.ModelInferRequest(model_name="plain")
    request.inputs.add(name="IN", datatype="INT64", shape=[1, 1]).contents.int64_contents.append(
        value
    )
    return request


@pytest.mark.parametrize(("tenant", "key"), [("greedy", "acme"), ("", "greedy")])
def test_over_grpc_it_is_resource_exhausted_with_trailing_metadata(
    server: RunningServer, tenant: str, key: str
) -> None:
    use_up(server)
    named = (("x-tenant", tenant),) if tenant else ()
    metadata = (("authorization", f"Bearer {KEYS[key].text}"), *named)
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            service_pb2.ModelInferRequest.SerializeToString,
            service_pb2.ModelInferResponse.FromString,
        )
        with pytest.raises(grpc.RpcError) as caught:
            call(message(), metadata=metadata)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert int(dict(caught.value.trailing_metadata())["retry-after"]) >= 1
        stream = channel.stream_stream(
            "/inference.GRPCInferenceService/ModelStreamInfer",
            service_pb2.ModelInferRequest.SerializeToString,
            service_pb2.ModelStreamInferResponse.FromString,
        )
        (response,) = stream(iter([message()]), metadata=metadata)
        assert response.error_message == "tenant 'greedy' exceeds its quota of 0.01 per second"


def test_requests_from_models_are_not_counted_again(server: RunningServer) -> None:
    status, _, body = post(server, "/v2/models/caller/infer", "modest")
    assert (status, body["outputs"][0]["data"]) == (200, [1])
    assert post(server, "/v2/models/plain/infer", "modest")[0] == 200
    assert post(server, "/v2/models/plain/infer", "modest")[0] == 429
