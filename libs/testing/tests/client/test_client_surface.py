"""The interface of the in-process client, compared with both clients of tritonclient."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from tritonpy_testing import InferenceServerException, InferInput, InProcessClient, ToyEngine

# methods for sockets
ASIDE = {
    "plugin",
    "register_plugin",
    "unregister_plugin",
    "generate_request_body",
    "parse_response_body",
}
WIRE = {"headers": {}, "client_timeout": 1.0}


def public_methods(kind):
    return {name for name, member in inspect.getmembers(kind, callable) if not name.startswith("_")}


@pytest.fixture
def client():
    with ToyEngine() as engine, InProcessClient(engine) as client:
        yield client


@pytest.fixture
def given():
    return [InferInput("IN", [2], "FP32").set_data_from_numpy(np.ones(2, np.float32))]


@pytest.mark.parametrize("protocol", [tritonclient.grpc, tritonclient.http])
def test_it_has_every_applicable_method_of_tritonclient(protocol):
    assert public_methods(protocol.InferenceServerClient) - ASIDE <= public_methods(InProcessClient)


@pytest.mark.parametrize(
    "method",
    [
        "is_server_live",
        "is_server_ready",
        "get_server_metadata",
        "get_model_repository_index",
        "get_inference_statistics",
        "get_system_shared_memory_status",
        "get_cuda_shared_memory_status",
        "get_log_settings",
        "get_trace_settings",
    ],
)
def test_queries_accept_wire_options(client, method):
    ask = getattr(client, method)
    assert ask(**WIRE, as_json=True, query_params={}) == ask()


def test_inferences_accept_wire_options(client, given):
    result = client.infer(
        "identity", given, "1", None, "first", headers={}, compression_algorithm="gzip"
    )
    assert result.get_response()["id"] == "first"
    assert (result.as_numpy("OUT") == 1).all()


def test_unknown_arguments_are_refused(client, given):
    with pytest.raises(TypeError, match="as_jsn"):
        client.get_server_metadata(as_jsn=True)
    with pytest.raises(TypeError, match="request_ids"):
        client.infer("identity", given, request_ids="1")


def test_trace_settings_are_read_and_changed_as_over_http(client):
    settings = client.update_trace_settings("identity", {"trace_level": ["OFF"], "trace_rate": "7"})
    assert (settings["trace_level"], settings["trace_rate"]) == (["OFF"], "7")
    assert client.get_trace_settings("identity") == settings
    assert client.get_trace_settings()["trace_rate"] != "7"
    assert (
        client.update_trace_settings("identity", {"trace_rate": None})
        == client.get_trace_settings()
    )
    with pytest.raises(InferenceServerException, match="trace file location can not be updated"):
        client.update_trace_settings(settings={"trace_file": "elsewhere"})


def test_log_settings_are_read_and_changed_as_over_http(client):
    settings = client.update_log_settings(
        {"log_verbose_level": 2, "log_info": False, "log_format": None}
    )
    assert (settings["log_verbose_level"], settings["log_info"], settings["log_format"]) == (
        2,
        False,
        "default",
    )
    assert client.get_log_settings() == settings
    for wrong in ({"log_file": "elsewhere"}, {"log_info": "yes"}, {"log_format": "colourful"}):
        with pytest.raises(InferenceServerException):
            client.update_log_settings(wrong)
    assert client.get_log_settings() == settings
