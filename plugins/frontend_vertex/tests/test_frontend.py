from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import numpy as np
import pytest

from tritonpy import Backend, StartupError, hookimpl
from tritonpy_testing import running_server

BINARY = "application/vnd.vertex-ai-triton.binary+json;json-header-size="
CONFIG = """
    backend: "adder"
    input { name: "IN" data_type: TYPE_FP32 dims: 2 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
"""
BODY = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}


class Adder(Backend):
    """OUT is IN + 1."""

    def infer(self, inputs: Any) -> Any:
        return {"OUT": inputs["IN"] + np.float32(1)}


class AdderPlugin:
    @hookimpl
    def tritonpy_backends(self) -> dict[str, type[Backend]]:
        return {"adder": Adder}


@pytest.fixture
def serve(tmp_path) -> Iterator[Any]:
    """Return a function that serves models and returns a client for the port."""
    with ExitStack() as stack:

        def start(*models: str, metrics: bool = True, **options: Any) -> httpx.Client:
            for name in models:
                (tmp_path / name / "1").mkdir(parents=True)
                (tmp_path / name / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
            routes = {"predict_route": "/predict", "health_route": "/health"}
            config = {
                "repositories": [{"url": str(tmp_path)}],
                "frontends": {
                    "http": False,
                    "grpc": False,
                    "metrics": metrics and {"port": 0},
                    "vertex": {"port": 0, "host": "127.0.0.1", **routes, **options},
                },
            }
            server = stack.enter_context(running_server(config, [AdderPlugin()]))
            url = f"http://{server.address('vertex')}"
            return stack.enter_context(httpx.Client(base_url=url, timeout=30))

        yield start


def redirect(client: httpx.Client, path: str, **more: Any) -> httpx.Response:
    return client.post("/predict", headers={"X-Vertex-Ai-Triton-Redirect": path}, **more)


def test_predictions_run_the_only_model(serve):
    client = serve("adder")
    assert client.get("/health").status_code == 200
    response = client.post("/predict", json=BODY)
    assert response.json()["outputs"][0]["data"] == [2, 3]


def test_binary_tensors_have_the_length_of_the_json_in_the_content_type(serve):
    client = serve("adder")
    tensor = {"name": "IN", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
    header = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    body = header + np.array([1, 2], np.float32).tobytes()
    response = client.post(
        "/predict", content=body, headers={"content-type": f"{BINARY}{len(header)}"}
    )
    length = int(response.headers["inference-header-content-length"])
    assert np.frombuffer(response.content[length:], np.float32).tolist() == [2, 3]
    wrong = client.post("/predict", content=body, headers={"content-type": f"x/{BINARY}1"})
    assert wrong.status_code == 400
    assert "expect MIME type for binary data starts with" in wrong.json()["error"]


def test_redirects_read_everything_and_infer_any_model(serve):
    client = serve("first", "second", default_model="first")
    assert client.post("/predict", json=BODY).json()["model_name"] == "first"
    infer = redirect(client, "v2/models/second/infer", json=BODY)
    assert infer.json()["model_name"] == "second"
    assert "nv_inference_request_success" in redirect(client, "metrics").text
    assert redirect(client, "v2").json()["name"] == "triton"
    assert redirect(client, "v2/health/live").status_code == 200
    assert redirect(client, "v2/models/second/ready").status_code == 200
    assert redirect(client, "v2/models/other/ready").status_code == 400
    assert redirect(client, "v2/models/second/config").json()["backend"] == "adder"
    assert redirect(client, "v2/models/second/versions/1/stats").status_code == 200
    assert len(redirect(client, "v2/models/stats").json()["model_stats"]) == 2
    assert len(redirect(client, "v2/repository/index").json()) == 2
    assert redirect(client, "v2/systemsharedmemory/status").json() == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("v2/repository/models/adder/load", 403),
        ("v2/repository/models/adder/unload", 403),
        ("v2/systemsharedmemory/region/a/register", 403),
        ("v2/cudasharedmemory/unregister", 403),
        ("v2/logging", 400),
        ("v2/trace/setting", 400),
        ("v2/models/adder/generate", 400),
        ("schema", 400),
        ("../v2", 400),
    ],
)
def test_redirects_cannot_change_the_server(serve, path, status):
    client = serve("adder")
    assert redirect(client, path, json={}).status_code == status
    assert client.post("/predict", json=BODY).status_code == 200


def test_other_methods_and_paths_are_refused(serve):
    client = serve("adder", metrics=False)
    assert client.get("/predict").status_code == 405
    assert client.get("/v2").status_code == 400
    response = redirect(client, "metrics")
    assert response.status_code == 400
    assert "enable the frontend 'metrics'" in response.json()["error"]


def test_the_start_fails_without_routes(serve):
    with pytest.raises(StartupError, match="API_PREDICT_ROUTE is not defined for Vertex AI"):
        serve("adder", predict_route="")
    with pytest.raises(StartupError, match="AIP_HEALTH_ROUTE is not defined for Vertex AI"):
        serve(health_route="")


def test_the_start_fails_without_one_default_model(serve):
    text = "Expect the model repository contains only a single model if default model is not"
    with pytest.raises(StartupError, match=f"{text} specified. Ready models: first, second"):
        serve("first", "second")
    with pytest.raises(StartupError, match="Expect the default model 'other' is loaded"):
        serve(default_model="other")


def test_the_environment_gives_port_and_routes(serve, monkeypatch):
    from tritonpy_frontend_vertex.options import VertexOptions

    monkeypatch.setenv("AIP_HTTP_PORT", "5234")
    monkeypatch.setenv("AIP_PREDICT_ROUTE", "/p")
    monkeypatch.setenv("AIP_HEALTH_ROUTE", "/h")
    options = VertexOptions()
    assert (options.port, options.predict_route, options.health_route) == (5234, "/p", "/h")
    monkeypatch.setenv("AIP_HTTP_PORT", "80x")
    with pytest.raises(
        StartupError, match="AIP_HTTP_PORT must be a port from 0 to 65535, not '80x'"
    ):
        VertexOptions()
    monkeypatch.delenv("AIP_HTTP_PORT")
    with pytest.raises(ValueError, match="starts with '/'"):
        VertexOptions(predict_route="p")
