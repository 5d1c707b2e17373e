"""What a whole server says of its requests: a line for each while that is wanted, and of restricted APIs the refusals."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator

import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from tests.conftest import Models, Serve, Served

BODY = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}], "id": "s3cret"})
RESTRICTED = "model-repository:admin-key=s3cret"
INFER = "/v2/models/plain/infer"
RPC = "/inference.GRPCInferenceService/"


@pytest.fixture(scope="module")
def served(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    models = Models(tmp_path_factory.mktemp("told") / "models")
    models.identity("plain", "FP32", ["batch", 2])
    flags = (f"--http-restricted-api={RESTRICTED}", f"--grpc-restricted-protocol={RESTRICTED}")
    with serve(f"--model-repository={models.path}", *flags) as running:
        yield running


def test_requests_are_told_of_while_the_log_settings_say_so(served: Served) -> None:
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        for level in (0, 1):
            served.ask("/v2/logging", json.dumps({"log_verbose_level": level}))
            assert served.ask(INFER, BODY, {"authorization": "s3cret"}).status == 200
            assert served.ask("/v2/models/plain/config?key=s3cret").status == 200
            client.get_model_metadata("plain", headers={"authorization": "s3cret"})
        for told in (f"POST {INFER}: 200", "GET /v2/models/plain/config: 200", f"{RPC}ModelMetadata: OK"):
            served.until_logged(told)
        client.update_log_settings({"log_verbose_level": 0})
    served.ask(INFER, BODY)
    lines = re.findall(r'\] "(\[model: plain\] (?:POST|GET|/inference).*)"', served.log)
    assert sorted(lines) == [
        f"[model: plain] {RPC}ModelMetadata: OK",
        "[model: plain] GET /v2/models/plain/config: 200",
        f"[model: plain] POST {INFER}: 200",
    ]
    assert "s3cret" not in served.log


def test_refusals_of_restricted_apis_are_counted_and_logged(served: Served) -> None:
    assert served.ask("/v2/repository/index", "{}", {"admin-key": "wr0ng"}).status == 403
    assert served.ask("/v2/repository/index", "{}", {"admin-key": "s3cret"}).status == 200
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        for _ in range(2):
            with pytest.raises(InferenceServerException):
                client.get_model_repository_index()
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["metrics"], timeout=60)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    connection.close()
    counted = re.findall(r'^tritonpy_restricted_requests\{api="([a-z-]+)",protocol="(\w+)"\} ([1-9]\d*)', metrics, re.M)
    assert sorted(counted) == [("model-repository", "grpc", "2"), ("model-repository", "http", "1")]
    for protocol in ("http", "grpc"):
        served.until_logged(f"refused: a call over {protocol} of the restricted API 'model-repository'")
    assert "wr0ng" not in served.log
