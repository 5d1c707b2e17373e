"""Several frontend processes in front of one engine behave like one process."""

from __future__ import annotations

import itertools
import json
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import shared_memory

from tests.conftest import Models, Serve, ServerProcess
from tests.multi_process_server import (
    FLAGS,
    ONE,
    add_models,
    connections,
    metrics,
    pending,
    processes,
    read_count,
    request_path,
    slow_stream,
)

_sequences = itertools.count(1)


@pytest.fixture(scope="module")
def progress_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("progress") / "count"


@pytest.fixture(scope="module")
def multi_process(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, progress_file: Path
) -> Iterator[ServerProcess]:
    models = Models(tmp_path_factory.mktemp("fleet") / "models")
    add_models(models, progress_file)
    flags = (
        "--model-control-mode=explicit",
        "--load-model=*",
        "--allow-client-shm=true",
        "--metrics-interval-ms=50",
    )
    with serve(f"--model-repository={models.path}", *FLAGS, *flags) as served:
        yield served


@pytest.fixture(scope="module")
def single(
    serve: Serve, multi_process: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The same models served by one process."""
    models = Models(tmp_path_factory.mktemp("single") / "models")
    models.identity("identity", "FP32", ["rows", "columns"])
    models.toy("raising", more="dynamic_batching { }")
    models.toy("repeat", "INT32", "model_transaction_policy { decoupled: true }")
    flags = (
        "--transport=none",
        "--model-control-mode=explicit",
        "--load-model=*",
        "--allow-client-shm=true",
    )
    with serve(f"--model-repository={models.path}", *flags) as served:
        yield served


def tensor(protocol: Any, array: np.ndarray[Any, Any], datatype: str) -> Any:
    given = protocol.InferInput("IN", list(array.shape), datatype)
    given.set_data_from_numpy(array)
    return given


def statistics(served: ServerProcess, model: str) -> dict[str, Any]:
    return served.request(f"/v2/models/{model}/stats").json()["model_stats"][0]


def test_every_process_serves_and_everything_is_counted_once(multi_process: ServerProcess) -> None:
    assert len(processes(multi_process)) == 2
    before = statistics(multi_process, "identity")["inference_count"]
    with connections(multi_process) as opened:
        for connection in opened:
            assert request_path(connection, "/v2/models/identity/infer", ONE)[0] == 200
        busy = [
            [one for one in process.net_connections("tcp")
             if one.status == psutil.CONN_ESTABLISHED and one.laddr.port == multi_process.ports["http"]]
            for process in processes(multi_process)
        ]  # fmt: skip
        assert all(busy), "one process has all connections"
        assert statistics(multi_process, "identity")["inference_count"] == before + len(opened)
    counted = f'nv_inference_count{{model="identity",version="1"}} {before + len(opened)}'
    multi_process.wait(lambda: counted in metrics(multi_process), "the metrics count the same")


def test_each_process_exports_its_share_of_request_memory(multi_process: ServerProcess) -> None:
    shares = [f'nv_request_memory_limit_bytes{{process="{number}"}} ' for number in range(2)]
    multi_process.wait(
        lambda: all(share in metrics(multi_process) for share in shares),
        "the metrics show the shares",
    )


BAD: list[tuple[str, str | None]] = [
    ("/v2", None),
    ("/v2/health/live", None),
    ("/v2/models/nobody", None),
    ("/v2/models/nobody/ready", None),
    ("/v2/models/nobody/stats", None),
    ("/v2/models/nobody/infer", ONE),
    ("/v2/models/identity/versions/9/infer", ONE),
    ("/v2/models/repeat/infer", ONE.replace("FP32", "INT32")),
    ("/v2/models/identity/infer", ONE.replace("FP32", "INT99")),
    ("/v2/models/identity/infer", ONE.replace("FP32", "FP64")),
    ("/v2/models/identity/infer", ONE.replace("[1, 1]", "[1, -1]")),
    ("/v2/models/identity/infer", ONE.replace("[1, 1]", "[2, 2]")),
    ("/v2/models/identity/infer", ONE.replace('"IN"', '"OTHER"')),
    ("/v2/models/identity/infer", '{"id": "r7", "inputs": []}'),
    ("/v2/models/identity/infer", ONE[:-1] + ', "outputs": [{"name": "NOTHING"}], "id": "r8"}'),
    ("/v2/models/identity/infer", ONE[:-1] + ', "parameters": {"sequence_id": 7}}'),
    ("/v2/models/raising/infer", ONE.replace("[4]", "[-2]")),
    ("/v2/models/raising/infer", ONE.replace("[4]", "[-4]")),
    ("/v2/models/identity/generate", '{"IN": 4}'),
    ("/v2/models/identity/generate", '{"IN": 4, "INN": 5}'),
    ("/v2/models/identity/generate_stream", '{"IN": 4}'),
    ("/v2/models/raising/generate_stream", '{"IN": [1, 2]}'),
    ("/v2/models/raising/generate", '{"IN": [1, 2]}'),
    ("/v2/models/raising/generate_stream", '{"IN": -2}'),
    ("/v2/repository/models/nobody/load", "{}"),
    ("/v2/repository/models/nobody/unload", "{}"),
    ("/v2/systemsharedmemory/region/no/status", None),
    ("/v2/trace/setting", '{"trace_level": "NOTHING"}'),
    ("/v2/logging", '{"log_verbose_level": "x"}'),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD)))
def test_responses_equal_those_of_a_single_process(
    multi_process: ServerProcess, single: ServerProcess, number: int
) -> None:
    path, body = BAD[number]
    of_several, of_one = multi_process.request(path, body), single.request(path, body)
    assert (of_several.status, of_several.body, of_several.headers) == (
        of_one.status,
        of_one.body,
        of_one.headers,
    )


def test_stream_errors_equal_those_of_a_single_process(
    multi_process: ServerProcess, single: ServerProcess
) -> None:
    requests: list[tuple[str, Any, str]] = [
        ("nobody", [[1.0]], "FP32"), ("raising", [[-2.0]], "FP32"), ("identity", [[1]], "INT32"), ("repeat", [[2]], "INT32"),
    ]  # fmt: skip
    messages: list[list[str]] = []
    for served in (multi_process, single):
        responses: queue.Queue[Any] = queue.Queue()
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            client.start_stream(
                lambda result, error, responses=responses: responses.put(error or result)
            )
            for index, (model, array, datatype) in enumerate(requests):
                given = np.array(array, np.int32 if datatype == "INT32" else np.float32)
                client.async_stream_infer(
                    model, [tensor(tritonclient.grpc, given, datatype)], request_id=f"r{index}"
                )
            found = [responses.get(timeout=60) for _ in range(5)]
            client.stop_stream()
        messages.append(
            [
                str(each) if isinstance(each, Exception) else str(each.get_response())
                for each in found
            ]
        )
    assert sorted(messages[0]) == sorted(messages[1])


@pytest.mark.parametrize(
    ("model", "array", "datatype"),
    [("nobody", [[1.0]], "FP32"), ("identity", [[1]], "INT32"), ("raising", [[-2.0]], "FP32"), ("repeat", [[1]], "INT32")],
)  # fmt: skip
def test_grpc_errors_equal_those_of_a_single_process(
    multi_process: ServerProcess, single: ServerProcess, model: str, array: list[Any], datatype: str
) -> None:
    messages = []
    for served in (multi_process, single):
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            given = np.array(array, np.int32 if datatype == "INT32" else np.float32)
            with pytest.raises(tritonclient.utils.InferenceServerException) as raised:
                client.infer(model, [tensor(tritonclient.grpc, given, datatype)], request_id="r9")
            messages.append((raised.value.status(), raised.value.message()))
    assert messages[0] == messages[1]


def test_a_malformed_binary_tensor_fails_only_its_own_request(
    multi_process: ServerProcess, single: ServerProcess
) -> None:
    head = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,3],"parameters":{"binary_data_size":5}}]}'
    headers = {"Inference-Header-Content-Length": str(len(head))}
    pids = [process.pid for process in processes(multi_process)]
    responses = [
        served.request("/v2/models/identity/infer", head + "12345", headers)
        for served in (multi_process, single)
    ]
    assert (responses[0].status, responses[0].body) == (responses[1].status, responses[1].body)
    assert responses[0].status == 400
    assert [process.pid for process in processes(multi_process)] == pids


def test_a_sequence_continues_across_processes(multi_process: ServerProcess) -> None:
    sequences = [next(_sequences) for _ in range(4)]
    body = (
        '{{"inputs": [{{"name": "IN", "datatype": "INT32", "shape": [1, 1], "data": [{0}]}}], '
        '"parameters": {{"sequence_id": {1}, "sequence_start": {2}, "sequence_end": {3}}}}}'
    )
    found: dict[int, list[int]] = {}
    with connections(multi_process, 8 * len(sequences)) as opened:
        for step in range(8):
            for sequence in sequences:
                start, end = json.dumps(step == 0), json.dumps(step == 7)
                status, response = request_path(
                    opened.pop(), "/v2/models/sums/infer", body.format(step, sequence, start, end)
                )
                assert status == 200, response
                found.setdefault(sequence, []).append(json.loads(response)["outputs"][0]["data"][0])
    assert set(map(tuple, found.values())) == {(0, 1, 3, 6, 10, 15, 21, 28)}


def test_streams_deliver_all_responses_in_order(multi_process: ServerProcess) -> None:
    responses: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(multi_process.grpc) as client:
        client.start_stream(lambda result, error: responses.put(error or result))
        client.async_stream_infer(
            "repeat",
            [tensor(tritonclient.grpc, np.array([[1000]], np.int32), "INT32")],
            enable_empty_final_response=True,
        )
        found = [responses.get(timeout=60) for _ in range(1001)]
        assert [int(response.as_numpy("OUT")[0]) for response in found[:-1]] == list(range(1000))
        assert found[-1].get_response().parameters["triton_final_response"].bool_param
        client.stop_stream()


def test_a_slow_client_throttles_its_model_and_a_disconnect_cancels_it(
    multi_process: ServerProcess, progress_file: Path
) -> None:
    ended = Path(f"{progress_file}.ended")
    with slow_stream(multi_process):
        multi_process.wait(
            lambda: progress_file.exists() and read_count(progress_file) > 10, "the model answers"
        )
        before = 0

        def stands_still() -> bool:
            nonlocal before
            last, before = before, read_count(progress_file)
            threading.Event().wait(0.3)
            return last == before

        multi_process.wait(stands_still, "the model waits")
        assert before < 2_000, "the model was not throttled"
        assert not ended.exists()
    multi_process.wait(ended.exists, "the model detects the disconnect")
    multi_process.wait(lambda: pending(multi_process, "counting") == 0, "nothing is left of it")


@pytest.mark.parametrize("protocol", [tritonclient.http, tritonclient.grpc])
def test_shared_memory_tensors_are_not_copied(multi_process: ServerProcess, protocol: Any) -> None:
    array = np.arange(1 << 20, dtype=np.float32).reshape(1, -1)
    key = f"/tritonpy_fleet_{os.getpid()}_{protocol.__name__.rpartition('.')[2]}"
    region = shared_memory.create_shared_memory_region("both", key, 2 * array.nbytes)
    address = multi_process.http if protocol is tritonclient.http else multi_process.grpc
    try:
        shared_memory.set_shared_memory_region(region, [array])
        with protocol.InferenceServerClient(address) as client:
            client.register_system_shared_memory("both", key, 2 * array.nbytes)
            given = protocol.InferInput("IN", list(array.shape), "FP32")
            given.set_shared_memory("both", array.nbytes)
            wanted = protocol.InferRequestedOutput("OUT")
            wanted.set_shared_memory("both", array.nbytes, array.nbytes)
            sent = sum(process.io_counters().write_chars for process in processes(multi_process))
            client.infer("wide", [given], outputs=[wanted])
            assert (
                sum(process.io_counters().write_chars for process in processes(multi_process))
                - sent
                < array.nbytes / 8
            )
            found = shared_memory.get_contents_as_numpy(
                region, np.float32, list(array.shape), array.nbytes
            )
            assert (found == array).all()
            client.unregister_system_shared_memory("both")
    finally:
        shared_memory.destroy_shared_memory_region(region)


def test_settings_changed_in_one_process_apply_to_all(multi_process: ServerProcess) -> None:
    with connections(multi_process) as opened:
        request_path(opened[0], "/v2/logging", '{"log_verbose_level": 1}')
        assert {
            json.loads(request_path(one, "/v2/logging")[1])["log_verbose_level"] for one in opened
        } == {1}

        def each_logs() -> bool:
            before = multi_process.log.count("/v2/models/identity/ready")
            for one in opened:
                request_path(one, "/v2/models/identity/ready")
            return multi_process.log.count("/v2/models/identity/ready") >= before + len(opened)

        multi_process.wait(each_logs, "every process logs its requests")
        request_path(opened[1], "/v2/logging", '{"log_verbose_level": 0}')
        assert {
            json.loads(request_path(one, "/v2/logging")[1])["log_verbose_level"] for one in opened
        } == {0}


def test_a_model_that_becomes_decoupled_is_decoupled_in_every_process(
    multi_process: ServerProcess,
) -> None:
    with connections(multi_process) as opened:
        for decoupled in (False, True, False):
            config = f'{{"backend": "repeat", "max_batch_size": 8, "model_transaction_policy": {{"decoupled": {json.dumps(decoupled)}}}, '
            config += ", ".join(
                f'"{where}": [{{"name": "{name}", "data_type": "TYPE_INT32", "dims": [1]}}]'
                for where, name in (("input", "IN"), ("output", "OUT"))
            )
            status, response = request_path(
                opened[0],
                "/v2/repository/models/repeat/load",
                json.dumps({"parameters": {"config": config + "}"}}),
            )
            assert status == 200, response
            for one in opened:
                document = json.loads(request_path(one, "/v2/models/repeat/config")[1])
                assert document["model_transaction_policy"]["decoupled"] is decoupled
        assert request_path(opened[0], "/v2/repository/models/repeat/load", "{}")[0] == 200
