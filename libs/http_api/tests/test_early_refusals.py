"""Requests that are refused by their head alone, before the body is read."""

from __future__ import annotations

import json

import pytest

from tritonpy import Unauthenticated
from tritonpy.frontend import RequestMemory
from tritonpy_http_api.generate.body import MANAGEMENT_BYTES

from .raw_http import BODY, INFER, chunked, connect, read_one, request

ENDLESS = 99_999_999_999
BINARY = f"inference-header-content-length: {len(BODY)}\r\n"
NOWHERE = INFER.replace("echo", "nowhere")
SMALL = 10_000
MANAGEMENT = [
    "/v2/logging",
    "/v2/trace/setting",
    "/v2/repository/index",
    "/v2/repository/models/echo/unload",
    "/v2/systemsharedmemory/region/one/register",
    "/v2/cudasharedmemory/region/one/register",
]


def begun(path, size=ENDLESS, headers=BINARY, start=BODY):
    return request(start, f"content-length: {size}\r\n{headers}", path, length=False)


def first_answer(server, sent):
    """Return status, headers and error of the response to an incomplete request."""
    with connect(server) as raw:
        raw.sendall(sent)
        status, headers, body = read_one(raw)
    return status, headers, json.loads(body)["error"]


@pytest.mark.parametrize(
    "path",
    [NOWHERE, NOWHERE.replace("infer", "generate"), NOWHERE.replace("infer", "generate_stream")],
)
def test_an_unknown_model_is_refused_before_the_body(server, path):
    status, _, error = first_answer(server, begun(path))
    assert (status, error) == (404, "Request for unknown model: 'nowhere' is not found")


def test_an_unknown_path_is_refused_before_the_body(server):
    assert first_answer(server, begun("/nowhere"))[0] == 404


def test_a_decoupled_model_is_refused_before_the_body(server):
    status, _, error = first_answer(server, begun(INFER.replace("echo", "decoupled")))
    assert (status, error) == (
        501,
        "HTTP end point doesn't support models with decoupled transaction policy",
    )


def test_oversized_json_is_refused_before_the_body(server):
    status, _, error = first_answer(server, begun(INFER, headers=""))
    assert status == 400
    assert error.startswith(
        f"request JSON size of {ENDLESS} bytes exceeds the maximum allowed input size"
    )


@pytest.mark.parametrize(
    "path", [INFER, INFER.replace("infer", "generate"), "/v2/repository/models/echo/load"]
)
def test_a_body_above_max_body_bytes_gets_413_before_it_is_read(start_server, path):
    status, _, error = first_answer(start_server(max_body_bytes=SMALL), begun(path, SMALL + 1))
    assert status == 413
    assert error == (
        f"The request body has {SMALL + 1} or more bytes, and the maximum is {SMALL} bytes. "
        "Use max_body_bytes under 'frontends: http:' to increase the limit."
    )


def test_max_body_bytes_holds_for_a_head_that_differs_in_its_length_only(start_server):
    allowed, too_large = BODY.ljust(4_000), BODY.ljust(6_000)
    with connect(start_server(max_body_bytes=5_000)) as raw:
        for _ in range(2):
            raw.sendall(request(allowed))
            assert read_one(raw)[0] == 200
        raw.sendall(request(too_large))
        assert read_one(raw)[0] == 413


@pytest.mark.parametrize("path", [INFER, INFER.replace("infer", "generate")])
def test_an_oversized_chunked_body_gets_413(start_server, path):
    sent = request(
        chunked(b"x" * SMALL)[:-5] + b"1\r\nx\r\n",
        BINARY + "transfer-encoding: chunked\r\n",
        path,
        length=False,
    )
    assert first_answer(start_server(max_body_bytes=SMALL), sent)[0] == 413


@pytest.mark.parametrize("path", MANAGEMENT)
@pytest.mark.parametrize("in_chunks", [False, True])
def test_a_management_body_is_limited_to_one_mebibyte(server, path, in_chunks):
    size = MANAGEMENT_BYTES + 1
    chunks = request(
        chunked(b" " * size)[:-5], "transfer-encoding: chunked\r\n", path, length=False
    )
    sent = chunks if in_chunks else begun(path, size, "", b"")
    status, _, error = first_answer(server, sent)
    assert status == 413
    assert "and the maximum is 1048576 bytes" in error


def test_the_files_of_a_model_may_be_larger(server, engine):
    content = "A" * (2 * MANAGEMENT_BYTES)
    reply = server.call(
        "POST", "/v2/repository/models/echo/load", {"parameters": {"file:1/model": content}}
    )
    assert reply.status == 200
    assert engine.loads[0][2]["file:1/model"] == bytes(len(content) * 3 // 4)


def test_a_client_that_expects_100_continue_is_refused(server):
    status, _, _ = first_answer(
        server, begun(NOWHERE, 100, BINARY + "expect: 100-continue\r\n", b"")
    )
    assert status == 404


def test_a_connection_stays_open_after_a_dropped_body(server):
    with connect(server) as raw:
        raw.sendall(begun(NOWHERE, 300_000, start=bytes(100_000)))
        assert read_one(raw)[0] == 404
        raw.sendall(bytes(200_000) + request())
        assert read_one(raw)[0] == 200


def test_a_very_long_body_closes_the_connection(server):
    with connect(server) as raw:
        raw.sendall(begun(NOWHERE))
        status, headers, _ = read_one(raw)
        assert (status, headers[b"connection"]) == (404, b"close")
        assert raw.file.read() == b""


@pytest.mark.parametrize(
    "path", [*MANAGEMENT, INFER.replace("infer", "generate"), "/nowhere", "/v2/health/ready"]
)
def test_a_very_long_body_closes_the_connection_on_every_route(server, path):
    with connect(server) as raw:
        raw.sendall(begun(path))
        assert read_one(raw)[0] >= 400
        assert raw.file.read() == b""


def test_many_chunks_after_the_response_close_the_connection(server, monkeypatch):
    monkeypatch.setattr("tritonpy_http1.connection.MAX_DROPPED", SMALL)
    with connect(server) as raw:
        raw.sendall(
            request(chunked(b"x")[:-5], "transfer-encoding: chunked\r\n", "/nowhere", length=False)
        )
        assert read_one(raw)[0] == 404
        raw.sendall(chunked(b"x" * SMALL, b"x") + request())
        assert raw.file.read() == b""


def test_few_chunks_after_the_response_keep_the_connection(server):
    with connect(server) as raw:
        raw.sendall(
            request(chunked(b"x")[:-5], "transfer-encoding: chunked\r\n", "/nowhere", length=False)
        )
        assert read_one(raw)[0] == 404
        raw.sendall(chunked(b"x" * SMALL) + request())
        assert read_one(raw)[0] == 200


def test_an_early_refusal_is_sent_in_order(start_server, engine):
    server = start_server()
    engine.hold = True
    with connect(server) as raw:
        raw.sendall(request() + begun(NOWHERE))
        assert engine.arrived.wait(30)
        engine.release()
        assert [read_one(raw)[0] for _ in range(2)] == [200, 404]


class RefusingAuthorizer:
    """Refuses every call."""

    def guards(self, _endpoint):
        return True

    def admit(self, *_arguments):
        raise Unauthenticated("credentials are missing")


def test_an_unauthorized_call_is_refused_before_the_body(start_server):
    status, _, error = first_answer(start_server(RefusingAuthorizer()), begun(INFER))
    assert (status, error) == (401, "credentials are missing")


def test_binary_tensors_may_have_any_size(start_server, engine):
    size = 3_000_000
    described = {
        "name": "X",
        "datatype": "UINT8",
        "shape": [size],
        "parameters": {"binary_data_size": size},
    }
    head = json.dumps({"inputs": [described]}).encode()
    reply = start_server(max_input_size=1000).infer(
        head + bytes(size), {"inference-header-content-length": str(len(head))}
    )
    assert reply.status == 200


class TestMemory:
    """Bodies and unread responses beyond the memory budget."""

    LIMIT = 2**20

    @pytest.fixture
    def memory(self):
        return RequestMemory(self.LIMIT)

    @pytest.fixture
    def server(self, start_server, memory):
        return start_server(memory=memory)

    @pytest.mark.parametrize(
        "path", [INFER, INFER.replace("infer", "generate"), "/v2/repository/models/echo/load"]
    )
    def test_a_body_beyond_the_memory_budget_gets_503(self, server, memory, path):
        status, headers, error = first_answer(server, begun(path, 10**7, start=bytes(self.LIMIT)))
        assert status == 503
        assert "of 1048576 bytes for requests and unsent responses are in use" in error
        assert "use --request-memory" in error
        assert b"retry-after" in headers
        assert memory.refused == 1

    def test_large_bodies_leave_memory_for_small_requests(self, server, memory):
        greedy = [connect(server) for _ in range(50)]
        for raw in greedy:
            raw.sendall(begun(INFER, 10**7, start=bytes(150_000)))
        statuses = []
        with connect(server) as raw:
            for _ in range(20):
                raw.sendall(request(BODY + b" " * 30_000))
                statuses.append(read_one(raw)[0])
        assert set(statuses) == {200}
        assert 0 < memory.used <= self.LIMIT
        for raw in greedy:
            raw.__exit__()

    def test_decompressed_data_counts_against_the_memory_budget(self, server, engine, memory):
        import gzip

        reply = server.infer(gzip.compress(BODY + b" " * self.LIMIT), {"content-encoding": "gzip"})
        assert reply.status == 503
        assert engine.requests == []
        assert memory.refused == 1

    def test_an_unread_response_counts_against_the_memory_budget(
        self, server, engine, memory, tensor
    ):
        from tritonpy import InferResponse

        def answer(_request):
            return [InferResponse([tensor("Y", [0] * self.LIMIT, "uint8")], "echo", 1)]

        engine.answer = answer
        body = json.loads(BODY) | {"parameters": {"binary_data_output": True}}
        reply = server.infer(body)
        assert reply.status == 503
        assert "unsent responses" in reply.error

    def test_all_memory_is_released(self, server, engine, memory):
        from .raw_http import eventually

        for size in (1000, 100_000, 300_000):
            assert server.infer(BODY + b" " * size).status == 200
        with connect(server) as raw:
            raw.sendall(begun(INFER, 10**7, start=bytes(200_000)))
        engine.requests.clear()
        eventually(lambda: memory.used == 0, server, lambda: memory.used)
