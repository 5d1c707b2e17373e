"""Failures at startup and in models: a clear text, an exit status, and no effect on the rest."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

BAD_CONFIG = 'backend: "onnxruntime"\nmax_batch_sise: 4\ninput [{ name: "IN" data_type: TYPE_FP3 dims: [1] }]\n'
ONE = '{"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [%s]}]}'


def failed_start(serve: Any, *flags: str, ports: bool = True) -> str:
    """Return the output of a server that must exit with status 1, without a traceback."""
    with serve(*flags, until=None, ports=ports) as served:
        assert served.wait_until_exit() == 1, served.log
        assert "Traceback" not in served.log
        return str(served.log)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "host: 127.0.0.1\nfrontend:\n  http: {}\n",
            "line 2, column 1: frontend: unknown option 'frontend'; did you mean 'frontends'?",
        ),
        (
            "frontends:\n  http: {prot: 8000}\n",
            "line 2, column 10: frontends.http.prot: unknown option 'prot'; did you mean 'port'?",
        ),
        (
            "control: {mode: explict}\n",
            "line 1, column 11: control.mode: expected one of: none, explicit, poll; got 'explict'",
        ),
        (
            "backends: {onnxruntime: {default-max-batch-sise: 8}}\n",
            "did you mean 'default-max-batch-size'?",
        ),
        (
            "frontends: {htpp: {port: 0}}\n",
            "line 1, column 13: frontends.htpp: no plugin provides frontend 'htpp', did you mean 'http'?",
        ),
        ("frontends: [\n", "line 2, column 1: "),
    ],
)
def test_a_typo_in_server_yaml_is_named_with_its_place(
    serve: Any, tmp_path: Path, text: str, expected: str
) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(text)
    printed = failed_start(serve, f"--config={file}", ports=False)
    assert expected in printed
    assert str(file) in printed


def test_an_unreadable_repository_makes_the_server_not_live_without_exit_on_error(
    serve: Any, tmp_path: Path
) -> None:
    with serve(
        f"--model-repository={tmp_path / 'nowhere'}", "--exit-on-error=false", until="not live: "
    ) as served:
        assert [
            served.request(path).status for path in ("/v2/health/live", "/v2/health/ready", "/v2")
        ] == [
            400,
            400,
            200,
        ]
        assert served.request("/v2/models/m/infer", "{}").json() == {"error": "Server not ready"}
        client = tritonclient.grpc.InferenceServerClient(served.grpc)
        assert not client.is_server_live()
        assert "cannot be read: No such file or directory" in served.log


def test_a_typo_in_a_flag_is_named_with_the_nearest(serve: Any) -> None:
    assert "unrecognized option '--http-prot'; did you mean '--http-port'?" in failed_start(
        serve, "--http-prot=1", ports=False
    )


def test_a_missing_repository_is_named(serve: Any, tmp_path: Path) -> None:
    assert f"model repository '{tmp_path / 'nowhere'}' cannot be read" in failed_start(
        serve, f"--model-repository={tmp_path / 'nowhere'}"
    )


@pytest.mark.parametrize("frontend", ["http", "grpc", "metrics"])
def test_a_port_in_use_ends_the_start(serve: Any, models: Any, frontend: str) -> None:
    models.example("add_sub")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        printed = failed_start(
            serve, f"--model-repository={models.path}", f"--{frontend}-port={port}"
        )
    assert re.search(rf"error: .*127\.0\.0\.1:{port}.*[Aa]ddress already in use", printed)
    assert "failed to load" not in printed


def test_a_failing_model_stops_the_start_after_the_others_loaded(serve: Any, models: Any) -> None:
    models.example("add_sub")
    models.repository.add("corrupt", versions={1: {"model.onnx": b"no protobuf at all"}})
    models.repository.add("typo", BAD_CONFIG)
    printed = failed_start(serve, f"--model-repository={models.path}")
    rows = {
        row[0]: row[1:]
        for line in printed.splitlines()
        if line.startswith("|")
        for row in [[cell.strip() for cell in line.strip("|").split("|")]]
    }
    assert rows["add_sub"] == ["1", "READY", ""]
    assert rows["corrupt"][1] == rows["typo"][1] == "UNAVAILABLE"
    assert "model.onnx failed:Protobuf parsing failed" in rows["corrupt"][2]
    assert (
        "line 2, column 1: max_batch_sise: unknown field 'max_batch_sise'; did you mean 'max_batch_size'?"
        in printed
    )
    assert (
        "line 3, column 32: input[0].data_type: unknown value 'TYPE_FP3'; did you mean 'TYPE_FP32'?"
        in printed
    )
    assert "failed to load all models: corrupt, typo." in printed


@pytest.mark.parametrize(("strict", "ready"), [("true", 400), ("false", 200)])
def test_without_exit_on_error_other_models_serve_and_readiness_depends_on_strictness(
    serve: Any, models: Any, strict: str, ready: int
) -> None:
    models.toy("raising")
    models.toy("broken")
    with serve(
        f"--model-repository={models.path}", "--exit-on-error=false", f"--strict-readiness={strict}"
    ) as served:
        assert served.request("/v2/health/live").status == 200
        assert served.request("/v2/health/ready").status == ready
        assert served.request("/v2/models/raising/infer", ONE % 4).json()["outputs"][0]["data"] == [
            2
        ]
        index = {
            model["name"]: model for model in served.request("/v2/repository/index", b"").json()
        }
        assert index["broken"]["state"] == "UNAVAILABLE"
        assert "the weights are torn" in index["broken"]["reason"]


def test_model_exceptions_become_error_responses_on_both_protocols(server: Any) -> None:
    response = server.request("/v2/models/raising/infer", ONE % -4)
    assert (response.status, response.json()) == (
        500,
        {"error": "ValueError: cannot take the root of -4"},
    )
    given = tritonclient.grpc.InferInput("IN", [1, 1], "FP32")
    given.set_data_from_numpy(np.array([[-4]], np.float32))
    with (
        tritonclient.grpc.InferenceServerClient(server.grpc) as client,
        pytest.raises(InferenceServerException) as raised,
    ):
        client.infer("raising", [given])
    assert (raised.value.status(), raised.value.message()) == (
        "StatusCode.INTERNAL",
        "ValueError: cannot take the root of -4",
    )


def test_a_model_chooses_the_code_of_its_error(server: Any) -> None:
    response = server.request("/v2/models/raising/infer", ONE % -2)
    assert (response.status, response.json()) == (
        503,
        {"error": "this model takes no minus two today"},
    )


def test_every_request_gets_one_response_when_some_batches_fail(server: Any) -> None:
    before = success_and_failure(server)
    with tritonclient.http.InferenceServerClient(server.http, concurrency=16) as client:
        calls = []
        for number in range(100):
            given = tritonclient.http.InferInput("IN", [1, 1], "FP32")
            given.set_data_from_numpy(np.array([[-9 if number % 10 == 3 else number]], np.float32))
            calls.append(client.async_infer("raising", [given]))
        failed = [isinstance(outcome(call), InferenceServerException) for call in calls]
    assert all(failed[3::10])
    success, failure = success_and_failure(server)
    assert (success - before[0], failure - before[1]) == (failed.count(False), failed.count(True))


def outcome(call: Any) -> Any:
    try:
        return call.get_result()
    except InferenceServerException as error:
        return error


def success_and_failure(server: Any) -> tuple[int, int]:
    statistics = server.request("/v2/models/raising/stats").json()["model_stats"][0][
        "inference_stats"
    ]
    return statistics["success"]["count"], statistics["fail"]["count"]


def test_models_keep_serving_when_a_polled_repository_disappears(serve: Any, models: Any) -> None:
    models.example("add_sub")
    away = models.path.with_name("away")
    with serve(
        f"--model-repository={models.path}", "--model-control-mode=poll", "--repository-poll-secs=1"
    ) as served:
        models.path.rename(away)
        served.wait_until_logged("cannot be read")
        assert served.request("/v2/models/add_sub/ready").status == 200
        away.rename(models.path)
        models.toy("raising")
        served.wait(
            lambda: served.request("/v2/models/raising/ready").status == 200,
            "the repository is followed again",
        )
        assert served.log.count("successfully loaded 'add_sub'") == 1
        assert "Traceback" not in served.log


def test_a_reload_fails_when_the_repository_disappears_and_the_model_keeps_serving(
    serve: Any, models: Any
) -> None:
    models.example("add_sub")
    away = models.path.with_name("away")
    with serve(
        f"--model-repository={models.path}", "--model-control-mode=explicit", "--load-model=add_sub"
    ) as served:
        models.path.rename(away)
        response = served.request("/v2/repository/models/add_sub/load", json.dumps({}))
        assert response.status >= 400
        assert "error" in response.json()
        assert served.request("/v2/models/add_sub/ready").status == 200
        assert served.request("/v2/repository/index", b"").status in (200, 503)
        assert "Traceback" not in served.log


def test_a_failed_reload_keeps_the_old_version_serving_and_reports_the_reason(
    serve: Any, models: Any
) -> None:
    models.example("add_sub")
    with serve(
        f"--model-repository={models.path}", "--model-control-mode=explicit", "--load-model=add_sub"
    ) as served:
        (models.path / "add_sub" / "config.pbtxt").write_text(BAD_CONFIG)
        response = served.request("/v2/repository/models/add_sub/load", json.dumps({}))
        assert response.status >= 400
        assert "max_batch_sise" in response.json()["error"]
        assert served.request("/v2/models/add_sub/ready").status == 200
        assert served.request("/v2/models/add_sub/config").json()["max_batch_size"] == 64
