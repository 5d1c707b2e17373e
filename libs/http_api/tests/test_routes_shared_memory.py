from __future__ import annotations

import base64

import pytest

HANDLE = bytes(range(64))
CUDA = {"raw_handle": {"b64": base64.b64encode(HANDLE).decode()}, "device_id": 1, "byte_size": 8}
SYSTEM = {"key": "/k", "byte_size": 8}


def path(kind, action, region=""):
    return (
        f"/v2/{kind}sharedmemory/region/{region}/{action}"
        if region
        else f"/v2/{kind}sharedmemory/{action}"
    )


def test_the_status_lists_regions(server, engine):
    reply = server.call("GET", path("system", "status"))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json == [
        {"name": "one", "key": "/one", "offset": 4096, "byte_size": 2**40},
        {"name": "two", "key": "two", "offset": 0, "byte_size": 1},
    ]
    reply = server.call("GET", path("cuda", "status", "r"))
    assert reply.json == [{"name": "on a GPU", "device_id": 1, "byte_size": 2**40}]
    assert engine.calls == [("regions", "system", ""), ("regions", "cuda", "r")]


def test_a_system_region_is_registered(server, engine):
    reply = server.call(
        "POST", path("system", "register", "r"), {**SYSTEM, "offset": 2**64 - 1, "other": []}
    )
    assert (reply.status, reply.body, reply.headers["content-type"]) == (
        200,
        b"",
        "application/json",
    )
    server.call("POST", path("system", "register", "s"), SYSTEM)
    assert engine.calls == [
        ("check_region", "system", "r"), ("register_system_region", "r", "/k", 2**64 - 1, 8),
        ("check_region", "system", "s"), ("register_system_region", "s", "/k", 0, 8),
    ]  # fmt: skip


def test_a_cuda_region_is_registered(server, engine):
    reply = server.call("POST", path("cuda", "register", "r"), CUDA)
    assert (reply.status, reply.body) == (200, b"")
    assert engine.calls[-1] == ("register_cuda_region", "r", HANDLE, 1, 8)


def test_regions_are_unregistered_by_name_or_all(server, engine):
    assert server.call("POST", path("system", "unregister", "r")).status == 200
    assert server.call("POST", path("cuda", "unregister"), b"no JSON").status == 200
    assert engine.calls == [
        ("unregister_regions", "system", "r"),
        ("unregister_regions", "cuda", ""),
    ]


def test_engine_errors_take_precedence_over_body_errors(server, engine):
    reply = server.call("POST", path("system", "register", "refused"), b"no JSON")
    assert (reply.status, reply.error) == (501, "not here")
    reply = server.call("POST", path("system", "register", "taken"), SYSTEM)
    assert (reply.status, reply.error) == (400, "shared memory region 'taken' already in manager")


@pytest.mark.parametrize("name", ["a%20b", "%2e%2e", "a+b", "%", "a%2"])
def test_region_names_are_not_unescaped(server, engine, name):
    assert server.call("POST", path("system", "register", name), SYSTEM).status == 200
    assert engine.calls[-1][:2] == ("register_system_region", name)


NOT_UINT = "attempt to access JSON non-unsigned-integer as unsigned-integer"


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 500, "failed to parse the request JSON buffer: The document is empty. at 0"),
        ({}, 400, "Shared memory register request has no 'key' field"),
        ([], 400, "Shared memory register request has no 'key' field"),
        ({"key": 1, "byte_size": 8}, 500, "attempt to access JSON non-string as string"),
        ({"key": "/k"}, 400, "Shared memory register request has no 'byte_size' field"),
        ({"key": "/k", "byte_size": -1}, 500, NOT_UINT),
        ({"key": "/k", "byte_size": 2**64}, 500, NOT_UINT),
        ({"key": "/k", "byte_size": "8"}, 500, NOT_UINT),
        ({"key": "/k", "byte_size": 8, "offset": -1}, 500, NOT_UINT),
        ({"key": "/k", "offset": None, "byte_size": 8}, 500, NOT_UINT),
    ],
)
def test_invalid_registrations_have_tritons_error_texts(server, engine, body, status, text):
    reply = server.call("POST", path("system", "register", "r"), body)
    assert (reply.status, reply.error) == (status, text)
    assert engine.calls == [("check_region", "system", "r")]


WRONG_HANDLE = "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"raw_handle": {"b64": "AAAA"}}, WRONG_HANDLE),
        ({"raw_handle": {"b64": "not base64!"}}, WRONG_HANDLE),
        ({"raw_handle": {"b64": "ä"}}, WRONG_HANDLE),
        ({"raw_handle": {"b64": 1}}, "attempt to access JSON non-string as string"),
        ({"raw_handle": {}}, "attempt to access non-existing object member 'b64'"),
        ({"device_id": -1}, NOT_UINT),
        ({"byte_size": "8"}, NOT_UINT),
    ],
)
def test_invalid_cuda_registrations_have_tritons_error_texts(server, engine, change, text):
    assert server.call("POST", path("cuda", "register", "r"), CUDA | change).error == text
    assert engine.calls == [("check_region", "cuda", "r")]


@pytest.mark.parametrize("missing", ["raw_handle", "device_id", "byte_size"])
def test_cuda_registrations_require_every_field(server, missing):
    reply = server.call(
        "POST",
        path("cuda", "register", "r"),
        {key: value for key, value in CUDA.items() if key != missing},
    )
    text = f"attempt to access non-existing object member '{missing}'"
    assert reply.error == (
        "Shared memory register request has no 'raw_handle' field"
        if missing == "raw_handle"
        else text
    )


def test_a_body_that_is_too_large_is_refused(start_server):
    reply = start_server(max_input_size=100).call(
        "POST", path("system", "register", "r"), {"key": "k" * 200, "byte_size": 8}
    )
    assert reply.status == 400
    assert "exceeds the maximum allowed input size of 100 bytes" in reply.error


def test_other_methods_and_other_paths_are_refused(server):
    for kind in ("system", "cuda"):
        for region in ("", "r"):
            for method, action in (
                ("POST", "status"),
                ("GET", "register"),
                ("GET", "unregister"),
                ("PUT", "register"),
            ):
                reply = server.call(method, path(kind, action, region))
                assert (reply.status, reply.error) == (405, "Method Not Allowed"), (
                    method,
                    kind,
                    action,
                    region,
                )
        for unknown in (
            "",
            "/region/r",
            "/region//status",
            "/region/r/other",
            "/status/",
            "/region/r/status/",
            "/region/a/b/status",
        ):
            reply = server.call("GET", f"/v2/{kind}sharedmemory{unknown}")
            assert (reply.status, reply.error) == (404, "Not Found"), unknown
