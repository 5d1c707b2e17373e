"""Models in a complete server."""

from __future__ import annotations

import ctypes
import gc
import time

import numpy as np
import psutil
import pytest
from openvino import opset13 as ops

from tritonpy import InvalidArgument
from tritonpy_testing import InferenceServerException, InferInput, InProcessClient, running_server

NO_PORTS = {"http": False, "grpc": False, "metrics": False}


def parameters(**values):
    return "".join(
        f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in values.items()
    )


TWO = parameters(NUM_STREAMS="2", INFERENCE_NUM_THREADS="2")
WAYS = {"one": "", "two": TWO, "process": TWO + parameters(isolation="process")}


@pytest.fixture
def add(models, model_repository):
    """`add(name, config)`: creates a model and directs `models` to its folder."""

    def make(name, config=""):
        models.path = model_repository.add(name, config) / "1" / "model.xml"
        return models

    return make


@pytest.fixture
def serve(model_repository):
    def run(**more):
        return running_server(
            {"repositories": [{"url": str(model_repository.path)}], "frontends": NO_PORTS, **more}
        )

    return run


def numbers(name, array):
    return InferInput(name, list(array.shape), "FP32").set_data_from_numpy(array.astype(np.float32))


def doubled(models):
    models.map("FP32", [-1, 2], lambda node: ops.add(node, node))


def test_models_without_a_configuration_are_served(add, serve):
    doubled(add("m"))
    with serve() as server:
        config = server.engine.model_config("m")
        assert (config.backend, config.default_model_filename, config.max_batch_size) == (
            "openvino",
            "model.xml",
            4,
        )
        answer = InProcessClient(server).infer("m", [numbers("IN", np.ones((2, 2)))])
        assert answer.as_numpy("OUT").tolist() == [[2, 2], [2, 2]]
        statistics = server.engine.statistics("m")[0]
        assert statistics.inference_stats.compute_infer.ns > 0


@pytest.mark.parametrize("way", WAYS)
def test_concurrent_requests_get_their_own_responses_in_order(add, serve, way):
    doubled(
        add(
            "m",
            'backend: "openvino" max_batch_size: 4 dynamic_batching { preserve_ordering: true }'
            + WAYS[way],
        )
    )
    with serve() as server:
        client, order = InProcessClient(server), []
        calls = [
            client.async_infer(
                "m", [numbers("IN", np.full((1, 2), number))], request_id=str(number)
            )
            for number in range(200)
        ]
        for number, call in enumerate(calls):
            answer = call.get_result()
            order.append(answer.get_response()["id"])
            assert answer.as_numpy("OUT").tolist() == [[2 * number, 2 * number]]
        assert order == [str(number) for number in range(200)]


@pytest.mark.parametrize("way", WAYS)
def test_a_device_failure_affects_only_its_request(add, serve, way):
    models = add("m", 'backend: "openvino" ' + WAYS[way])
    row = models.parameter("ROW", "INT64", [1])
    rows = [
        ops.constant(np.full((count, 2), value, np.float32)) for count, value in ((4, 0), (1, 1))
    ]
    models.save(
        [
            models.result(
                "OUT", ops.scatter_update(rows[0], row, rows[1], ops.constant(np.array(0)))
            )
        ],
        [row],
    )
    with serve() as server:
        client = InProcessClient(server)
        chosen = [
            InferInput("ROW", [1], "INT64").set_data_from_numpy(np.array([number]))
            for number in (9, 1)
        ]
        calls = [client.async_infer("m", [chosen[number % 2]]) for number in range(40)]
        for number, call in enumerate(calls):
            if number % 2:
                assert call.get_result().as_numpy("OUT").tolist() == [
                    [0, 0],
                    [1, 1],
                    [0, 0],
                    [0, 0],
                ]
            else:
                with pytest.raises(
                    InferenceServerException,
                    match=r"openvino error in running inference : .*ScatterUpdate",
                ):
                    call.get_result()
        assert server.engine.statistics("m")[0].inference_stats.fail.count == 20


FOLDING = """
    input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
    sequence_batching {
        STRATEGY max_sequence_idle_microseconds: 60000000
        control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } }
        state { input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: 1 }
    }
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
def test_sequences_keep_their_state_and_their_order(add, serve, way, strategy):
    models = add(
        "m",
        'backend: "openvino" max_batch_size: 4' + FOLDING.replace("STRATEGY", strategy) + WAYS[way],
    )
    given, old, start = (models.parameter(name, "FP32", [-1, 1]) for name in ("IN", "OLD", "START"))
    total = ops.add(ops.add(old, given), ops.multiply(start, ops.constant(np.float32(100))))
    models.save(
        [models.result("OUT", total), models.result("NEW", ops.add(old, given))],
        [given, old, start],
    )
    steps = [(sequence, value) for value in (1.0, 2.0, 3.0) for sequence in (1, 2, 3)]
    with serve() as server:
        client = InProcessClient(server)
        calls = [
            client.async_infer(
                "m", [numbers("IN", np.array([[value * sequence]]))], sequence_id=sequence,
                sequence_start=value == 1.0, sequence_end=value == 3.0,
            )
            for sequence, value in steps
        ]  # fmt: skip
        found = [float(call.get_result().as_numpy("OUT")[0, 0]) for call in calls]
    assert found == [
        {1.0: 101.0 if s == 1 else 100.0 + s, 2.0: 3.0 * s, 3.0: 6.0 * s}[value]
        for s, value in steps
    ]


def test_a_bad_model_does_not_affect_others(add, serve):
    doubled(add("good"))
    bad = add("bad")
    doubled(bad)
    bad.path.write_bytes(b"<net")
    with serve(control={"mode": "explicit", "load": ["good"]}) as server:
        with pytest.raises(
            InvalidArgument,
            match=r"load failed for model 'bad': version 1 .* Internal: openvino error in reading model : ",
        ):
            server.engine.load_model("bad")
        answer = InProcessClient(server).infer("good", [numbers("IN", np.ones((1, 2)))])
        assert answer.as_numpy("OUT").tolist() == [[2, 2]]


@pytest.mark.parametrize("kind", ["AUTO:CPU", "HETERO:CPU", "MULTI:CPU"])
def test_virtual_devices_serve(add, serve, kind):
    doubled(add("m", 'backend: "openvino" max_batch_size: 4' + parameters(TARGET_DEVICE=kind)))
    with serve() as server:
        client = InProcessClient(server)
        calls = [
            client.async_infer("m", [numbers("IN", np.full((1, 2), number))])
            for number in range(20)
        ]
        assert [call.get_result().as_numpy("OUT").tolist() for call in calls] == [
            [[2 * n, 2 * n]] for n in range(20)
        ]


def resident():
    return psutil.Process().memory_info().rss


def test_unloading_frees_memory(add, serve):
    rng = np.random.default_rng(0)
    doubled(add("first"))
    weights = [
        rng.standard_normal((2048, 2048)).astype(np.float32) for _ in range(6)
    ]  # 16 MiB each

    def layers(node):
        for each in weights:
            node = ops.matmul(node, each, transpose_a=False, transpose_b=False)
        return node

    add("large").map("FP32", [-1, 2048], layers)
    weights.clear()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # exclude memory left over from building the model
    with serve(control={"mode": "explicit", "load": ["first"]}) as server:
        client = InProcessClient(server)
        client.infer("first", [numbers("IN", np.ones((1, 2)))])
        before = resident()
        server.engine.load_model("large")
        client.infer("large", [numbers("IN", np.ones((1, 2048)))])
        [usage] = server.engine.statistics("large")[0].memory_usage
        assert (usage.type, usage.id) == ("CPU", 0)
        assert usage.byte_size >= 6 << 24
        held = resident() - before
        assert held > 48 << 20
        server.engine.unload_model("large")
        end = time.monotonic() + 60
        while resident() - before > held / 4:
            assert time.monotonic() < end, (
                f"{(resident() - before) >> 20} of {held >> 20} MiB did not come back"
            )
            time.sleep(0.01)
