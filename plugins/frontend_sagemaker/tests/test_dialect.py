from __future__ import annotations

import json

import numpy as np
import pytest

from .conftest import PREFIX, add_model, adder_config, infer_body


@pytest.fixture
def single(serve):
    """A server with one model, `adder`, which /invocations runs."""
    add_model(serve.repository / "adder", adder_config())
    return serve(load=("adder",), default_model="adder").client


def test_ping_reports_readiness(single):
    assert single.get("/ping").status_code == 200


@pytest.mark.parametrize(("mode", "status"), [("ready", 400), ("live", 200)])
def test_a_failed_model_makes_ping_fail_unless_it_reports_liveness(serve, mode, status):
    add_model(serve.repository / "adder", adder_config(error="load: broken"))
    client = serve(load=("adder",), exit_on_error=False, ping_mode=mode).client
    assert client.get("/ping").status_code == status


def test_invocations_run_the_default_model(single):
    response = single.post("/invocations", json=infer_body(1, 2))
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json()["model_name"] == "adder"
    assert response.json()["outputs"][0]["data"] == [2, 3]


def test_binary_tensors_have_the_length_of_the_json_in_the_content_type_both_ways(single):
    header = json.dumps(
        {
            "inputs": [
                {"name": "IN", "datatype": "FP32", "shape": [2],
                 "parameters": {"binary_data_size": 8}}
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()  # fmt: skip
    body = header + np.array([1, 2], np.float32).tobytes()
    response = single.post(
        "/invocations", content=body, headers={"content-type": f"{PREFIX}{len(header)}"}
    )
    kind = response.headers["content-type"]
    assert (response.status_code, kind[: len(PREFIX)]) == (200, PREFIX)
    assert "inference-header-content-length" not in response.headers
    data = response.content[int(kind.removeprefix(PREFIX)) :]
    assert np.frombuffer(data, np.float32).tolist() == [2, 3]


def test_the_header_of_tritons_own_protocol_is_ignored(single):
    response = single.post(
        "/invocations", json=infer_body(1, 2), headers={"inference-header-content-length": "1"}
    )
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (f"x/{PREFIX}1", "expect MIME type for binary data starts with"),
        (f"{PREFIX}x1", "Unable to parse inference header size, got: x1"),
        (f"{PREFIX}-123", "inference header size should be in range (0, "),
        (f"{PREFIX}12345", "inference header size should be in range (0, "),
        (f"{PREFIX}99999999999", "inference header size, value is out of range, got: 99999999999"),
        (f"{PREFIX}{'9' * 5000}", "value is out of range"),
    ],
)
def test_wrong_content_types_of_binary_tensors_get_tritons_texts(single, kind, text):
    response = single.post("/invocations", json=infer_body(1, 2), headers={"content-type": kind})
    assert response.status_code == 400
    assert text in response.json()["error"]
    assert single.get("/ping").status_code == 200


def test_without_a_default_model_the_error_says_which_variable_is_missing(serve):
    response = serve().client.post("/invocations", content=b"dummy")
    assert response.status_code == 400
    name = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
    assert response.json() == {"error": f"Request for unknown model: '{name}' is not found"}


def test_the_environment_gives_the_default_model_and_the_inference_type(serve, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "adder")
    monkeypatch.setenv("SAGEMAKER_TRITON_INFERENCE_TYPE", "generate")
    add_model(serve.repository / "adder", adder_config())
    response = serve(load=("adder",)).client.post("/invocations", json={"IN": [1, 2]})
    assert (response.status_code, response.json()["OUT"]) == (200, [2, 3])


def test_generate_streams_events(serve):
    add_model(serve.repository / "adder", adder_config())
    client = serve(load=("adder",), default_model="adder", inference_type="generate_stream").client
    response = client.post("/invocations", json={"IN": [1, 2]})
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert json.loads(response.text.removeprefix("data: "))["OUT"] == [2, 3]


@pytest.mark.parametrize("kind", ["infer", "generate"])
@pytest.mark.parametrize(
    ("error", "status"),
    [("13 is wrong", 400), ("CUDA out of memory. Tried to allocate", 507), ("a bathrOOMs", 400)],
)
def test_a_lack_of_memory_gets_507_and_other_errors_of_models_400(serve, error, status, kind):
    add_model(serve.repository / "adder", adder_config(error=error))
    client = serve(load=("adder",), default_model="adder", inference_type=kind).client
    body = infer_body(13, 1) if kind == "infer" else {"IN": [13, 1]}
    response = client.post("/invocations", json=body)
    assert response.status_code == status
    assert error in response.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 400),
        ("GET", "/v2/health/ready", 400),
        ("GET", "/invocations", 405),
        ("POST", "/ping", 405),
        ("PUT", "/models", 400),
        ("GET", "/models/unknown", 404),
        ("DELETE", "/models/unknown", 404),
        ("POST", "/models/unknown/invoke", 404),
        ("GET", "/models/unknown/invoke", 400),
        ("POST", "/models/a/b", 400),
    ],
)
def test_other_routes_and_methods_are_refused(single, method, path, status):
    assert single.request(method, path).status_code == status


def test_restricted_apis_close_the_models_but_not_health_and_inference(serve):
    add_model(serve.repository / "adder", adder_config())
    restricted = [{"apis": ["model-repository"], "key": "X-Auth", "value": "secret"}]
    client = serve(load=("adder",), default_model="adder", restricted_apis=restricted).client
    assert client.get("/ping").status_code == 200
    assert client.post("/invocations", json=infer_body(1, 2)).status_code == 200
    body = {"model_name": "a", "url": "/nowhere"}
    for response in (
        client.get("/models"),
        client.get("/models/a"),
        client.post("/models", json=body),
        client.delete("/models/a"),
    ):
        assert response.status_code == 403
        assert "This API is restricted" in response.json()["error"]
    assert client.get("/models", headers={"X-Auth": "secret"}).json() == {"models": []}


def test_without_a_key_clients_do_not_learn_which_models_exist(serve, archives, tmp_path):
    (tmp_path / "keys.toml").touch()
    client = serve(auth={"api_keys": {"file": str(tmp_path / "keys.toml")}}).client
    url = archives.add("known", adder=adder_config())
    statuses = {
        client.request(method, path, json={"model_name": "known", "url": url}).status_code
        for method, path in (
            ("POST", "/models"),
            ("GET", "/models"),
            ("GET", "/models/unknown"),
            ("DELETE", "/models/unknown"),
            ("POST", "/models/unknown/invoke"),
            ("POST", "/invocations"),
        )
    }
    assert statuses == {401}


def test_bodies_of_many_chunks_are_refused(single):
    def chunks():
        for _ in range(65537):
            yield b"A"

    response = single.post("/models", content=chunks())
    assert response.status_code == 400
    assert "exceeds maximum of 65536 non-empty chunks" in response.json()["error"]
