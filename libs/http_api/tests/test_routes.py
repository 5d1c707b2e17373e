from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy import Unavailable

EVERY_GET = [
    "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/echo", "/v2/models/echo/versions/1", "/v2/models/echo/ready",
    "/v2/models/echo/versions/1/ready", "/v2/models/echo/config", "/v2/models/echo/versions/1/config", "/v2/models/echo/stats",
    "/v2/models/echo/versions/1/stats", "/v2/models/stats",
]  # fmt: skip
EVERY_POST = [
    "/v2/models/echo/infer", "/v2/models/echo/versions/1/infer", "/v2/repository/index", "/v2/repository/r/index",
    "/v2/repository/models/echo/load", "/v2/repository/models/echo/unload", "/v2/repository/r/models/echo/load",
]  # fmt: skip
UNKNOWN = [
    "/", "/v1", "/v2/", "/v2/x", "/v2/health", "/v2/models", "/v2/models/", "/v2/models/echo/x", "/v2/models/echo/versions",
    "/v2/models/echo/versions/x", "/v2/models/echo/versions/1x/ready", "/v2/models/echo/versions/x/config", "/v2/repository",
    "/v2/repository/models/echo", "/v2/models//ready", "//v2", "/v2%2Fhealth%2Flive", "/v2/models%2Fecho", "/v2/models/a%2fb/config",
]  # fmt: skip


def test_every_get_route_succeeds(server):
    for path in EVERY_GET:
        assert server.call("GET", path).status == 200, path


def test_other_methods_are_not_allowed(server):
    wrong = {
        "POST": EVERY_GET,
        "GET": EVERY_POST,
        **dict.fromkeys(("DELETE", "PUT", "OPTIONS"), EVERY_GET + EVERY_POST),
    }
    for method, paths in wrong.items():
        for path in paths:
            reply = server.call(method, path)
            assert (reply.status, reply.body) == (405, b'{"error":"Method Not Allowed"}'), (
                method,
                path,
            )
            plain = "/health/" in path or path.endswith(("/ready", "/infer"))
            assert reply.headers["content-type"] == (
                "text/plain" if plain else "application/json"
            ), (method, path)
    assert server.call("HEAD", "/v2").status == 405


def test_unknown_paths_are_not_found(server):
    for path in UNKNOWN:
        for method in ("GET", "POST"):
            reply = server.call(method, path)
            assert (reply.status, reply.body) == (404, b'{"error":"Not Found"}'), (method, path)
            assert reply.headers["content-type"] == "text/plain"


def test_health_has_no_body(server, engine):
    reply = server.call("GET", "/v2/health/ready")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    engine.ready = False
    assert (
        server.call("GET", "/v2/health/ready").status,
        server.call("GET", "/v2/health/live").status,
    ) == (400, 200)


def test_an_exception_in_the_readiness_check_is_503(server, engine):
    def unavailable():
        raise Unavailable("Server not ready")

    engine.is_ready = unavailable
    reply = server.call("GET", "/v2/health/ready")
    assert (reply.status, reply.error) == (503, "Server not ready")


def test_metadata(server):
    assert (
        server.call("GET", "/v2").body
        == b'{"name":"triton","version":"1.2.3","extensions":["classification"]}'
    )
    assert server.call("GET", "/v2/models/echo").body == (
        b'{"name":"echo","versions":["1"],"platform":"fake","inputs":[{"name":"X","datatype":"FP32","shape":[-1]}],'
        b'"outputs":[{"name":"X","datatype":"FP32","shape":[-1]}]}'
    )


def test_a_model_that_is_not_ready(server):
    reply = server.call("GET", "/v2/models/echo/versions/3/ready")
    assert (reply.status, reply.error) == (400, "Model version not ready")
    reply = server.call("GET", "/v2/models/nope/config")
    assert (reply.status, reply.error) == (404, "Request for unknown model: 'nope' is not found")


def test_a_slow_readiness_check_does_not_block_other_calls(server, engine):
    is_checking, other_finished = threading.Event(), threading.Event()

    def check_slowly(_name, _version):
        is_checking.set()
        return other_finished.wait(20)

    engine.is_model_ready = check_slowly
    with ThreadPoolExecutor(1) as pool:
        readiness = pool.submit(server.call, "GET", "/v2/models/echo/ready")
        assert is_checking.wait(20)
        assert server.call("GET", "/v2/models/echo").status == 200
        other_finished.set()
        assert readiness.result(20).status == 200


def test_a_version_above_64_bits_is_refused(server):
    reply = server.call("GET", "/v2/models/echo/versions/99999999999999999999")
    assert reply.status == 400
    assert reply.error.startswith(
        "failed to get model version from specified version string '99999999999999999999'"
    )


def test_escaped_names_are_unescaped(server):
    assert server.call("GET", "/v2/models/%65cho/ready").status == 200


def test_config_and_statistics(server):
    assert server.call("GET", "/v2/models/echo/config").json["input"][0]["data_type"] == "TYPE_FP32"
    for path in ("/v2/models/echo/stats", "/v2/models/stats"):
        (stats,) = server.call("GET", path).json["model_stats"]
        assert list(stats) == [
            "name", "version", "last_inference", "inference_count", "execution_count", "inference_stats",
            "response_stats", "batch_stats", "memory_usage",
        ]  # fmt: skip
        assert stats["inference_stats"]["cache_hit"] == {"count": 0, "ns": 0}


def test_the_repository_index(server):
    whole = [{"name": "echo", "version": "1", "state": "READY"}, {"name": "never"}]
    assert server.call("POST", "/v2/repository/index").json == whole
    assert server.call("POST", "/v2/repository/any/index", {}).json == whole
    assert server.call("POST", "/v2/repository/index", []).json == whole
    assert server.call("POST", "/v2/repository/index", {"ready": True}).json == whole[:1]
    reply = server.call("POST", "/v2/repository/index", {"ready": "x"})
    assert (reply.status, reply.error) == (400, "Invalid value for 'ready': expected a boolean")
    for depth in (1, 100, 5_000, 50_000):
        reply = server.call(
            "POST", "/v2/repository/index", b'{"ready": ' + b"[" * depth + b"]" * depth + b"}"
        )
        assert (reply.status, reply.error) == (400, "Invalid value for 'ready': expected a boolean")
    reply = server.call(
        "POST", "/v2/repository/index", b'{"x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    )
    assert reply.error == "JSON nesting depth exceeds maximum allowed limit (100)"
    reply = server.call("POST", "/v2/repository/index", b"{")
    assert (
        reply.error
        == "failed to parse the request JSON buffer: Missing a name for object member. at 1"
    )


def test_load_passes_configuration_and_files(server, engine):
    content = bytes(range(256)) * 50_000  # above Litestar's default limit of 10 MB
    parameters = {"config": "{}", "file:1/model.onnx": base64.b64encode(content).decode()}
    reply = server.call("POST", "/v2/repository/models/echo/load", {"parameters": parameters})
    assert (reply.status, reply.body) == (200, b"")
    assert engine.loads == [("echo", "{}", {"file:1/model.onnx": content})]
    assert server.call("POST", "/v2/repository/models/echo/load").status == 200
    assert engine.loads[-1] == ("echo", None, None)
    assert (
        server.call(
            "POST", "/v2/repository/models/echo/load", {"parameters": {"versions": "3,1"}}
        ).status
        == 200
    )
    assert engine.loads[-1] == ("echo", None, None, [1, 3])


@pytest.mark.parametrize(
    ("parameters", "status", "text"),
    [
        ({"config": 1}, 500, "attempt to access JSON non-string as string"),
        ({"foo": "1"}, 500, "unexpected error on creating Triton parameter"),
        ([], 500, "attempt to get members for non-object"),
        ({"versions": 3}, 500, "attempt to access JSON non-string as string"),
        ({"versions": "newest"}, 400, "parameter 'versions' must be version numbers"),
        ({"file:1/x": "###"}, 400, "the content of 'file:1/x' is not valid base64"),
    ],
)
def test_invalid_load_parameters_are_refused(server, engine, parameters, status, text):
    reply = server.call("POST", "/v2/repository/models/echo/load", {"parameters": parameters})
    assert reply.status == status
    assert reply.error.startswith(text)
    assert engine.loads == []


def test_unload(server, engine):
    path = "/v2/repository/models/echo/unload"
    for body in (None, {}, {"parameters": {"unload_dependents": True}}):
        assert server.call("POST", path, body).status == 200
    assert engine.loads == [("echo", False), ("echo", False), ("echo", True)]
    assert server.call("POST", path, {"parameters": {"versions": "2"}}).status == 200
    assert engine.loads[-1] == ("echo", False, [2])
    assert server.call("POST", path, {"parameters": {"versions": ""}}).status == 400
    reply = server.call("POST", path, {"parameters": {"unload_dependents": "1"}})
    text = "Unable to parse 'unload_dependents': attempt to access JSON non-boolean as boolean"
    assert (reply.status, reply.error) == (500, text)


@pytest.mark.parametrize("repository", ["r", "models", "index"])
def test_a_named_repository_is_not_supported(server, engine, repository):
    for action in ("load", "unload"):
        reply = server.call("POST", f"/v2/repository/{repository}/models/echo/{action}")
        assert (reply.status, reply.error) == (
            501,
            "'repository_name' specification is not supported",
        )
    assert engine.loads == []


@pytest.mark.parametrize("name", ["models", "index"])
def test_names_that_equal_a_part_of_a_path_are_names(server, engine, name):
    assert server.call("POST", f"/v2/repository/{name}/index").status == 200
    assert server.call("POST", f"/v2/repository/models/{name}/unload").status == 200
    assert engine.loads == [(name, False)]
    # The engine of the test knows only the model "echo", and its error has the name.
    assert name in server.call("POST", f"/v2/repository/models/{name}/load").error


def test_json_bodies_are_limited(start_server):
    server = start_server(max_input_size=10)
    reply = server.call("POST", "/v2/repository/index", b'{"x":12345}')
    assert (reply.status, reply.error) == (
        400,
        (
            "request JSON size of 11 bytes exceeds the maximum allowed input size of 10 bytes. "
            "Use --http-max-input-size to increase the limit."
        ),
    )


def test_an_unexpected_error_is_logged_with_an_error_id(server, engine, caplog):
    def broken():
        raise RuntimeError("secret")

    engine.server_metadata = broken
    reply = server.call("GET", "/v2")
    assert reply.status == 500
    error_id = reply.error.split("error id ")[1].split()[0]
    assert "secret" not in reply.error
    assert any(error_id in record.getMessage() and record.exc_info for record in caplog.records)


def test_openapi_describes_the_routes(server):
    paths = server.call("GET", "/schema/openapi.json").json["paths"]
    assert set(paths) >= {
        "/v2",
        "/v2/models/{model}/config",
        "/v2/repository/index",
        "/v2/repository/models/{model}/load",
    }


def test_a_model_may_be_named_like_a_path_segment(server):
    reply = server.call("GET", "/v2/models/versions/ready")
    assert (reply.status, reply.error) == (400, "Model version not ready")
    reply = server.call("POST", "/v2/repository/models/versions/load", {})
    assert reply.error == "Request for unknown model: 'versions' is not found"
    assert server.call("GET", "/v2/models/versions/versions/x/ready").status == 404


def test_model_readiness_has_the_content_type_text(server):
    for path in ("/v2/models/echo/ready", "/v2/models/other/ready"):
        assert server.call("GET", path).headers["content-type"] == "text/plain"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v2/health/live", 200),
        ("/v2/health/ready", 200),
        ("/v2/models/echo/ready", 200),
        ("/v2/models/echo/versions/1/ready", 200),
        ("/v2/models/nowhere/ready", 400),
    ],
)
def test_head_on_a_health_route_is_get_without_body(server, path, status):
    get, head = server.call("GET", path), server.call("HEAD", path)
    assert (head.status, head.body) == (status, b"")
    assert get.status == status
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v2/health/live", "GET, HEAD"),
        ("POST", "/v2/models/echo/ready", "GET, HEAD"),
        ("HEAD", "/v2", "GET"),
        ("HEAD", "/v2/models/echo/infer", "POST"),
        ("HEAD", "/v2/models/echo/generate", "POST"),
        ("HEAD", "/v2/logging", "GET, POST"),
    ],
)
def test_a_405_response_lists_the_allowed_methods(server, method, path, allowed):
    reply = server.call(method, path)
    assert (reply.status, reply.headers["allow"]) == (405, allowed)
