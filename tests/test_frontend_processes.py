"""Several frontend processes in front of one engine: what clients have of them is what they have of one process."""

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

from tests.conftest import Models, Serve, Served
from tests.fleets import (
    FLAGS,
    ONE,
    add_models,
    ask,
    connections,
    metrics,
    pending,
    processes,
    said,
    slow_stream,
)

_sequences = itertools.count(1)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("told") / "count"


@pytest.fixture(scope="module")
def fleet(serve: Serve, tmp_path_factory: pytest.TempPathFactory, told: Path) -> Iterator[Served]:
    models = Models(tmp_path_factory.mktemp("fleet") / "models")
    add_models(models, told)
    flags = ("--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true", "--metrics-interval-ms=50")
    with serve(f"--model-repository={models.path}", *FLAGS, *flags) as served:
        yield served


@pytest.fixture(scope="module")
def single(serve: Serve, fleet: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same models in one process."""
    models = Models(tmp_path_factory.mktemp("single") / "models")
    models.identity("identity", "FP32", ["rows", "columns"])
    models.toy("raising", more="dynamic_batching { }")
    models.toy("repeat", "INT32", "model_transaction_policy { decoupled: true }")
    flags = ("--transport=none", "--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true")
    with serve(f"--model-repository={models.path}", *flags) as served:
        yield served


def tensor(protocol: Any, array: np.ndarray[Any, Any], datatype: str) -> Any:
    given = protocol.InferInput("IN", list(array.shape), datatype)
    given.set_data_from_numpy(array)
    return given


def statistics(served: Served, model: str) -> dict[str, Any]:
    return served.ask(f"/v2/models/{model}/stats").json()["model_stats"][0]


def test_every_process_serves_and_everything_is_counted_once(fleet: Served) -> None:
    assert len(processes(fleet)) == 2
    before = statistics(fleet, "identity")["inference_count"]
    with connections(fleet) as opened:
        for connection in opened:
            assert ask(connection, "/v2/models/identity/infer", ONE)[0] == 200
        busy = [
            [one for one in process.net_connections("tcp")
             if one.status == psutil.CONN_ESTABLISHED and one.laddr.port == fleet.ports["http"]]
            for process in processes(fleet)
        ]  # fmt: skip
        assert all(busy), "one process has all connections"
        assert statistics(fleet, "identity")["inference_count"] == before + len(opened)
    counted = f'nv_inference_count{{model="identity",version="1"}} {before + len(opened)}'
    fleet.wait(lambda: counted in metrics(fleet), "the metrics count the same")


def test_each_process_tells_of_its_share_of_the_memory_of_requests(fleet: Served) -> None:
    shares = [f'nv_request_memory_limit_bytes{{process="{number}"}} ' for number in range(2)]
    fleet.wait(lambda: all(share in metrics(fleet) for share in shares), "the metrics show the shares")


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
def test_answers_are_those_of_one_process(fleet: Served, single: Served, number: int) -> None:
    path, body = BAD[number]
    of_fleet, of_one = fleet.ask(path, body), single.ask(path, body)
    assert (of_fleet.status, of_fleet.body, of_fleet.headers) == (of_one.status, of_one.body, of_one.headers)


def test_a_stream_tells_refusals_and_failures_as_one_process_does(fleet: Served, single: Served) -> None:
    asked: list[tuple[str, Any, str]] = [
        ("nobody", [[1.0]], "FP32"), ("raising", [[-2.0]], "FP32"), ("identity", [[1]], "INT32"), ("repeat", [[2]], "INT32"),
    ]  # fmt: skip
    said: list[list[str]] = []
    for served in (fleet, single):
        answers: queue.Queue[Any] = queue.Queue()
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            client.start_stream(lambda result, error, answers=answers: answers.put(error or result))
            for index, (model, array, datatype) in enumerate(asked):
                given = np.array(array, np.int32 if datatype == "INT32" else np.float32)
                client.async_stream_infer(model, [tensor(tritonclient.grpc, given, datatype)], request_id=f"r{index}")
            found = [answers.get(timeout=60) for _ in range(5)]
            client.stop_stream()
        said.append([str(each) if isinstance(each, Exception) else str(each.get_response()) for each in found])
    assert sorted(said[0]) == sorted(said[1])


@pytest.mark.parametrize(
    ("model", "array", "datatype"),
    [("nobody", [[1.0]], "FP32"), ("identity", [[1]], "INT32"), ("raising", [[-2.0]], "FP32"), ("repeat", [[1]], "INT32")],
)  # fmt: skip
def test_grpc_errors_are_those_of_one_process(
    fleet: Served, single: Served, model: str, array: list[Any], datatype: str
) -> None:
    said = []
    for served in (fleet, single):
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            given = np.array(array, np.int32 if datatype == "INT32" else np.float32)
            with pytest.raises(tritonclient.utils.InferenceServerException) as raised:
                client.infer(model, [tensor(tritonclient.grpc, given, datatype)], request_id="r9")
            said.append((raised.value.status(), raised.value.message()))
    assert said[0] == said[1]


def test_a_malformed_binary_tensor_ends_its_own_request_alone(fleet: Served, single: Served) -> None:
    head = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,3],"parameters":{"binary_data_size":5}}]}'
    headers = {"Inference-Header-Content-Length": str(len(head))}
    pids = [process.pid for process in processes(fleet)]
    answers = [served.ask("/v2/models/identity/infer", head + "12345", headers) for served in (fleet, single)]
    assert (answers[0].status, answers[0].body) == (answers[1].status, answers[1].body)
    assert answers[0].status == 400
    assert [process.pid for process in processes(fleet)] == pids


def test_a_sequence_goes_on_whichever_process_its_requests_meet(fleet: Served) -> None:
    sequences = [next(_sequences) for _ in range(4)]
    body = (
        '{{"inputs": [{{"name": "IN", "datatype": "INT32", "shape": [1, 1], "data": [{0}]}}], '
        '"parameters": {{"sequence_id": {1}, "sequence_start": {2}, "sequence_end": {3}}}}}'
    )
    found: dict[int, list[int]] = {}
    with connections(fleet, 8 * len(sequences)) as opened:
        for step in range(8):
            for sequence in sequences:
                start, end = json.dumps(step == 0), json.dumps(step == 7)
                status, answer = ask(opened.pop(), "/v2/models/sums/infer", body.format(step, sequence, start, end))
                assert status == 200, answer
                found.setdefault(sequence, []).append(json.loads(answer)["outputs"][0]["data"][0])
    assert set(map(tuple, found.values())) == {(0, 1, 3, 6, 10, 15, 21, 28)}


def test_streams_give_every_answer_in_order(fleet: Served) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(fleet.grpc) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        client.async_stream_infer(
            "repeat",
            [tensor(tritonclient.grpc, np.array([[1000]], np.int32), "INT32")],
            enable_empty_final_response=True,
        )
        found = [answers.get(timeout=60) for _ in range(1001)]
        assert [int(answer.as_numpy("OUT")[0]) for answer in found[:-1]] == list(range(1000))
        assert found[-1].get_response().parameters["triton_final_response"].bool_param
        client.stop_stream()


def test_a_slow_client_holds_its_model_back_and_one_that_leaves_cancels_it(fleet: Served, told: Path) -> None:
    ended = Path(f"{told}.ended")
    with slow_stream(fleet):
        fleet.wait(lambda: told.exists() and said(told) > 10, "the model answers")
        before = 0

        def stands_still() -> bool:
            nonlocal before
            last, before = before, said(told)
            threading.Event().wait(0.3)
            return last == before

        fleet.wait(stands_still, "the model waits")
        assert before < 2_000, "nobody held it back"
        assert not ended.exists()
    fleet.wait(ended.exists, "the model hears that nobody listens")
    fleet.wait(lambda: pending(fleet, "counting") == 0, "nothing is left of it")


@pytest.mark.parametrize("protocol", [tritonclient.http, tritonclient.grpc])
def test_tensors_in_regions_stay_there(fleet: Served, protocol: Any) -> None:
    array = np.arange(1 << 20, dtype=np.float32).reshape(1, -1)
    key = f"/tritonpy_fleet_{os.getpid()}_{protocol.__name__.rpartition('.')[2]}"
    region = shared_memory.create_shared_memory_region("both", key, 2 * array.nbytes)
    address = fleet.http if protocol is tritonclient.http else fleet.grpc
    try:
        shared_memory.set_shared_memory_region(region, [array])
        with protocol.InferenceServerClient(address) as client:
            client.register_system_shared_memory("both", key, 2 * array.nbytes)
            given = protocol.InferInput("IN", list(array.shape), "FP32")
            given.set_shared_memory("both", array.nbytes)
            wanted = protocol.InferRequestedOutput("OUT")
            wanted.set_shared_memory("both", array.nbytes, array.nbytes)
            sent = sum(process.io_counters().write_chars for process in processes(fleet))
            client.infer("wide", [given], outputs=[wanted])
            assert sum(process.io_counters().write_chars for process in processes(fleet)) - sent < array.nbytes / 8
            found = shared_memory.get_contents_as_numpy(region, np.float32, list(array.shape), array.nbytes)
            assert (found == array).all()
            client.unregister_system_shared_memory("both")
    finally:
        shared_memory.destroy_shared_memory_region(region)


def test_settings_that_are_changed_in_one_process_hold_in_all(fleet: Served) -> None:
    with connections(fleet) as opened:
        ask(opened[0], "/v2/logging", '{"log_verbose_level": 1}')
        assert {json.loads(ask(one, "/v2/logging")[1])["log_verbose_level"] for one in opened} == {1}

        def each_tells() -> bool:
            before = fleet.log.count("/v2/models/identity/ready")
            for one in opened:
                ask(one, "/v2/models/identity/ready")
            return fleet.log.count("/v2/models/identity/ready") >= before + len(opened)

        fleet.wait(each_tells, "every process logs its requests")
        ask(opened[1], "/v2/logging", '{"log_verbose_level": 0}')
        assert {json.loads(ask(one, "/v2/logging")[1])["log_verbose_level"] for one in opened} == {0}


def test_a_model_that_becomes_decoupled_is_known_as_such_in_every_process(fleet: Served) -> None:
    with connections(fleet) as opened:
        for decoupled in (False, True, False):
            config = f'{{"backend": "repeat", "max_batch_size": 8, "model_transaction_policy": {{"decoupled": {json.dumps(decoupled)}}}, '
            config += ", ".join(
                f'"{where}": [{{"name": "{name}", "data_type": "TYPE_INT32", "dims": [1]}}]'
                for where, name in (("input", "IN"), ("output", "OUT"))
            )
            status, answer = ask(
                opened[0], "/v2/repository/models/repeat/load", json.dumps({"parameters": {"config": config + "}"}})
            )
            assert status == 200, answer
            for one in opened:
                document = json.loads(ask(one, "/v2/models/repeat/config")[1])
                assert document["model_transaction_policy"]["decoupled"] is decoupled
        assert ask(opened[0], "/v2/repository/models/repeat/load", "{}")[0] == 200
