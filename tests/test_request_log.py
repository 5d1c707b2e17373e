"""The request log of a whole server: a line per request while enabled, and access denials."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator

import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from tests.conftest import Models, Serve, ServerProcess

BODY = json.dumps(
    {
        "inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}],
        "id": "s3cret",
    }
)
RESTRICTED = "model-repository:admin-key=s3cret"
INFER = "/v2/models/plain/infer"
RPC = "/inference.GRPCInferenceService/"


@pytest.fixture(scope="module")
def served(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = Models(tmp_path_factory.mktemp("progress") / "models")
    models.identity("plain", "FP32", ["batch", 2])
    flags = (f"--http-restricted-api={RESTRICTED}", f"--grpc-restricted-protocol={RESTRICTED}")
    with serve(f"--model-repository={models.path}", *flags) as running:
        yield running


def test_requests_are_logged_while_the_log_settings_enable_it(served: ServerProcess) -> None:
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        for level in (0, 1):
            served.request("/v2/logging", json.dumps({"log_verbose_level": level}))
            assert served.request(INFER, BODY, {"authorization": "s3cret"}).status == 200
            assert served.request("/v2/models/plain/config?key=s3cret").status == 200
            client.get_model_metadata("plain", headers={"authorization": "s3cret"})
        for line in (
            f"POST {INFER}: 200",
            "GET /v2/models/plain/config: 200",
            f"{RPC}ModelMetadata: OK",
        ):
            served.wait_until_logged(line)
        client.update_log_settings({"log_verbose_level": 0})
    served.request(INFER, BODY)
    lines = re.findall(r'\] "(\[model: plain\] (?:POST|GET|/inference).*)"', served.log)
    assert sorted(lines) == [
        f"[model: plain] {RPC}ModelMetadata: OK",
        "[model: plain] GET /v2/models/plain/config: 200",
        f"[model: plain] POST {INFER}: 200",
    ]
    assert "s3cret" not in served.log


def test_refusals_of_restricted_apis_are_counted_and_logged(served: ServerProcess) -> None:
    assert served.request("/v2/repository/index", "{}", {"admin-key": "wr0ng"}).status == 403
    assert served.request("/v2/repository/index", "{}", {"admin-key": "s3cret"}).status == 200
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        for _ in range(2):
            with pytest.raises(InferenceServerException):
                client.get_model_repository_index()
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["metrics"], timeout=60)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    connection.close()
    counted = re.findall(
        r'^tritonpy_restricted_requests\{api="([a-z-]+)",protocol="(\w+)"\} ([1-9]\d*)',
        metrics,
        re.M,
    )
    assert sorted(counted) == [("model-repository", "grpc", "2"), ("model-repository", "http", "1")]
    for protocol in ("http", "grpc"):
        served.wait_until_logged(
            f"refused: {protocol} call to the restricted API 'model-repository'"
        )
    assert "wr0ng" not in served.log
