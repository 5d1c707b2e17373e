"""Routes from a client's view: forwarded requests, metadata and management."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils
import tritonclient.utils.shared_memory as shm

from tests.conftest import TIMEOUT_S, Models, Serve, ServerProcess
from tests.traffic.routing import (
    ONE,
    Infer,
    canary,
    config,
    name_of,
    operate,
    put,
    route_status,
    write,
)


def test_unavailable_targets_are_skipped_and_reported(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "gone")
    warned = put(routed, name, targets=[{"model": "nobody", "weight": 9}, ONE])["warnings"]
    assert warned == [
        "target 'nobody' is not ready: Request for unknown model: 'nobody' is not found"
    ]
    assert {infer_route(name) for _ in range(10)} == {(1.0, "1")}
    assert routed.log.count(f"route {name}: skipping target nobody") == 1
    put(routed, name, targets=[{"model": "nobody"}])
    with pytest.raises(
        tritonclient.utils.InferenceServerException,
        match=f"Request for unknown model: '{name}' is not found",
    ):
        infer_route(name)


def test_a_route_may_shadow_a_model_name_while_explicit_versions_stay_reachable(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    assert infer_route("work")[1] == "5"
    put(routed, "work", targets=[ONE])
    try:
        assert infer_route("work")[1] == "1"
        assert infer_route("work", model_version="4") == (2.0, "4")
    finally:
        assert operate(routed, "DELETE", "/work") == (200, {})
    assert infer_route("work")[1] == "5"


def test_metadata_of_a_route_is_that_of_its_primary_target(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "questions")
    put(routed, name)
    infer_route(name)
    address = routed.http if protocol is tritonclient.http else routed.grpc
    more = {} if protocol is tritonclient.http else {"as_json": True}
    with protocol.InferenceServerClient(address) as client:
        assert client.is_model_ready(name)
        metadata = client.get_model_metadata(name, **more)
        assert (metadata["name"], metadata["versions"]) == (name, ["1"])
        found = client.get_model_config(name, **more)
        assert found.get("config", found)["name"] == name
        (counted,) = client.get_inference_statistics(name, **more)["model_stats"]
        assert (counted["name"], counted["version"]) == (name, "1")
        assert int(counted["inference_count"]) > 0


def test_decoupled_responses_stream_through_a_route(routed: ServerProcess) -> None:
    put(routed, "stream", targets=[{"model": "streams"}])
    responses: queue.Queue[Any] = queue.Queue()
    given = tritonclient.grpc.InferInput("IN", [1], "FP32")
    given.set_data_from_numpy(np.array([3], np.float32))
    with tritonclient.grpc.InferenceServerClient(routed.grpc) as client:
        client.start_stream(lambda result, error: responses.put((result, error)))
        client.async_stream_infer("stream", [given], enable_empty_final_response=True)
        results = [responses.get(timeout=TIMEOUT_S) for _ in range(4)]
        client.stop_stream()
        assert [error for _, error in results] == [None] * 4
        assert [result.get_response().model_name for result, _ in results] == ["stream"] * 4
        with pytest.raises(
            tritonclient.utils.InferenceServerException, match="decoupled transaction policy"
        ):
            client.infer("stream", [given])
    generated = routed.request("/v2/models/stream/generate_stream", '{"IN": [2]}')
    assert generated.status == 200
    assert generated.body.count(b'"model_name":"stream"') == 2


def test_regions_of_shared_memory_are_used_through_a_route(
    routed: ServerProcess, protocol: Any
) -> None:
    name = name_of(protocol, "regions")
    put(routed, name, shadow={"model": "work", "version": 5})
    address = routed.http if protocol is tritonclient.http else routed.grpc
    region = shm.create_shared_memory_region(name, f"/{name}", 8)
    try:
        shm.set_shared_memory_region(region, [np.array([7], np.float32)])
        with protocol.InferenceServerClient(address) as client:
            client.register_system_shared_memory(name, f"/{name}", 8)
            given, wanted = (
                protocol.InferInput("IN", [1], "FP32"),
                protocol.InferRequestedOutput("OUT"),
            )
            given.set_shared_memory(name, 4)
            wanted.set_shared_memory(name, 4, 4)
            client.infer(name, [given], outputs=[wanted])
            client.unregister_system_shared_memory(name)
        assert shm.get_contents_as_numpy(region, np.float32, [2]).tolist() == [7, 7]
    finally:
        shm.destroy_shared_memory_region(region)
    assert route_status(routed, name)["statistics"]["shadow"]["copies"]["uncompared"] == 1


def test_all_mistakes_are_reported_together_and_old_revisions_are_rejected(
    routed: ServerProcess,
) -> None:
    wrong = {"targets": [{"version": 0}], "shadow": {"model": "m", "share": 2}, "nothing": 1}
    status, response = operate(routed, "PUT", "/wrong", wrong)
    assert status == 400
    assert response["error"].startswith("the route has 4 problems:")
    status, response = operate(
        routed, "PUT", "/wrong", {"targets": [ONE, ONE], "sticky": {"header": "x-other"}}
    )
    assert (status, response["error"].count("\n")) == (400, 2)
    assert "add it to routers.traffic.sticky_headers" in response["error"]
    revision = put(routed, "versioned")["revision"]
    for method, path, body in (
        ("PUT", "", {"targets": [ONE]}),
        ("DELETE", "", None),
        ("POST", "/promote", None),
    ):
        status, response = operate(
            routed, method, f"/versioned{path}", body, {"If-Match": f'"{revision - 1}"'}
        )
        assert (status, response["error"]) == (
            412,
            f"route 'versioned' is at revision {revision}, not at {revision - 1}: read it again",
        )
    assert operate(routed, "DELETE", "/versioned", None, {"If-Match": f'"{revision}"'}) == (200, {})
    assert operate(routed, "GET", "/versioned")[0] == 404
    assert operate(routed, "POST", "/versioned/promote")[0] == 404


def test_routes_and_canary_states_survive_a_restart(serve: Serve, tmp_path: Path) -> None:
    models = Models(tmp_path / "models")
    write(models)
    more = ", routes: {configured: {targets: [{model: work, version: 1}]}, left: {targets: [{model: work, version: 4}]}}"
    with serve(config(models, more)) as served:
        put(served, "made", canary=canary(2))
        put(served, "rising", canary=canary(5, steps=[{"share": 0.1, "seconds": 3600}]))
        put(served, "configured", targets=[{"model": "work", "version": 5}])
        assert operate(served, "DELETE", "/left") == (200, {})
        assert operate(served, "POST", "/made/rollback")[0] == 200
        before = {each["name"]: each for each in operate(served, "GET", "")[1]["routes"]}
        served.process.kill()
        served.wait_until_exit()
    with serve(config(models, more)) as served:
        after = {each["name"]: each for each in operate(served, "GET", "")[1]["routes"]}
        assert after.keys() == before.keys() == {"made", "rising", "configured"}
        for name, found in after.items():
            assert found["route"] == before[name]["route"]
            assert found["revision"] > before[name]["revision"]
        assert after["made"]["canary"]["state"] == "rolled back"
        assert after["made"]["canary"]["reason"] == "requested"
        assert after["rising"]["canary"]["state"] == "running"
    changed = more.replace("version: 4", "version: 3")
    with serve(config(models, changed)) as served:  # the changed route of server.yaml applies
        assert route_status(served, "left")["route"]["targets"] == [
            {"model": "work", "version": 3, "weight": 1.0}
        ]
    (tmp_path / "routes.json").write_text("{")
    with serve(config(models), until=None) as served:
        assert served.wait_until_exit() == 1
        assert "cannot read routes of" in served.log


def test_a_trace_names_the_target_model(serve: Serve, tmp_path: Path) -> None:
    models = Models(tmp_path / "models")
    write(models)
    routes = ", routes: {traced: {targets: [{model: work, version: 4}]}}"
    settings = ("triton", f"file={tmp_path / 'traces.json'}"), ("level=TIMESTAMPS",), ("rate=1",)
    with serve(
        config(models, routes), *(f"--trace-config={','.join(each)}" for each in settings)
    ) as served:
        body = json.dumps(
            {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [1]}]}
        )
        assert served.request("/v2/models/traced/infer", body).json()["model_name"] == "traced"
        served.process.terminate()
        served.wait_until_exit()
    (file,) = tmp_path.glob("traces.json*")
    traces = json.loads(file.read_text())
    assert {
        (each["model_name"], each["model_version"]) for each in traces if "model_name" in each
    } == {("work", 4)}


def test_frontend_processes_serve_routes(serve: Serve, tmp_path: Path) -> None:
    models = Models(tmp_path / "models")
    write(models)
    with serve(config(models), "--frontend-processes=2") as served:
        put(served, "made", targets=[{"model": "work", "version": 4}])
        for module, address in ((tritonclient.http, served.http), (tritonclient.grpc, served.grpc)):
            given = module.InferInput("IN", [1], "FP32")
            given.set_data_from_numpy(np.ones(1, np.float32))
            with module.InferenceServerClient(address) as client:
                for _ in range(20):
                    result = client.infer("made", [given])
                    assert result.as_numpy("OUT").tolist() == [2]
        (counted,) = route_status(served, "made")["statistics"]["targets"]
        assert (counted["requests"], counted["failures"]) == (40, 0)
