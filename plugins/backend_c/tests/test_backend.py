from __future__ import annotations

import shutil
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import tritonpy_backend_c
from plugins.backend_c.tests.conftest import Serve, int_model
from tritonpy import (
    CallbackSink,
    InferRequest,
    InvalidArgument,
    OutputSpec,
    SequenceInfo,
    Tensor,
    TritonError,
)
from tritonpy_backend_c.backend import CBackend
from tritonpy_testing import BackendContract, ModelRepository

ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'


class TestContract(BackendContract):
    plugin_class = CBackend
    plugin = tritonpy_backend_c
    name = "c"
    config = """
        name: "m" backend: "identity" max_batch_size: 8
        input { name: "INPUT0" data_type: TYPE_FP32 dims: 3 }
        output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 3 }
    """

    @pytest.fixture(autouse=True)
    def _libraries(self, backends: Path) -> None:
        self.library = backends / "identity" / "libtriton_identity.so"

    def write_model(self, version_folder: Path) -> None:
        shutil.copy(self.library, version_folder)


class TestContractInProcesses(TestContract):
    config = TestContract.config + ISOLATED


class TestContractInTheServer(TestContract):
    config = TestContract.config + ISOLATED.replace("process", "thread")


IDENTITY = """
    backend: "identity" max_batch_size: 8 dynamic_batching {}
    input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 }
    input { name: "INPUT1" data_type: TYPE_STRING dims: 2 }
    output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }
    output { name: "OUTPUT1" data_type: TYPE_STRING dims: 2 }
"""


def identity_request(rows: int, columns: int, seed: int) -> dict[str, Tensor]:
    random = np.random.default_rng(seed)
    texts = np.empty((rows, 2), np.object_)
    texts[:] = [[b"row %d" % row, b""] for row in range(rows)]
    numbers = random.random((rows, columns), np.float32)
    return {
        "INPUT0": Tensor.from_numpy("INPUT0", numbers),
        "INPUT1": Tensor.from_numpy("INPUT1", texts),
    }


def test_inputs_of_every_size_come_back_unchanged(serve: Serve, isolation: str) -> None:
    with serve({"m": IDENTITY}, isolation) as client:
        sent = []
        for number in range(200):
            # 100,000 columns are passed as memory, small outputs inside the words
            inputs = identity_request(1 + number % 8, (3, 0, 100_000)[number % 3], number)
            done = threading.Event()
            received: list = []

            def take(_request, response, received=received, done=done):
                received.append(response)
                done.set()

            client.engine.infer(InferRequest("m", inputs, CallbackSink(take), id=f"r{number}"))
            sent.append((inputs, received, done))
        for number, (inputs, received, done) in enumerate(sent):
            assert done.wait(60)
            (response,) = received
            assert response.error is None, response.error
            assert response.id == f"r{number}"
            outputs = {tensor.name: tensor for tensor in response.outputs}
            for index in "01":
                given, got = inputs[f"INPUT{index}"], outputs[f"OUTPUT{index}"]
                assert (got.datatype, got.shape) == (given.datatype, given.shape)
                np.testing.assert_array_equal(got.numpy(), given.numpy())


def test_more_shapes_than_are_kept_are_served(serve: Serve, isolation: str) -> None:
    """Batches of eight different shapes: layouts are replaced while a batch is packed."""
    config = IDENTITY.replace("dims: -1", "dims: -1 allow_ragged_batch: true", 1)
    with serve({"m": config}, isolation) as client:
        received: list[int] = []
        done = threading.Event()

        def take(_request, response):
            assert response.error is None, response.error
            received.append(response.outputs[0].shape[1])
            if len(received) == 3000:
                done.set()

        for columns in range(3000):
            inputs = identity_request(1, columns, 0)
            client.engine.infer(InferRequest("m", inputs, CallbackSink(take)))
        assert done.wait(60)
    assert sorted(received) == list(range(3000))


def test_values_of_64_bits_do_not_fail_a_batch(serve: Serve, isolation: str) -> None:
    with serve({"m": int_model("misbehave")}, isolation) as client:
        parameters = {"large": 2**64 - 1, "text": "\ud800"}
        assert client.number("m", 0, parameters=parameters, timeout_us=2**64 - 1) == 0


def test_response_parameters_have_their_types(serve: Serve, isolation: str) -> None:
    with serve({"m": IDENTITY}, isolation) as client:
        done = threading.Event()
        received: list = []
        inputs = identity_request(1, 2, 0)
        sink = CallbackSink(lambda _, response: (received.append(response), done.set()))
        outputs = {"OUTPUT1": OutputSpec("OUTPUT1")}
        client.engine.infer(InferRequest("m", inputs, sink, id="seven", outputs=outputs))
        assert done.wait(60)
    assert received[0].parameters == {"id": "seven", "answer": 42, "copied": True, "ratio": 0.5}
    # As in Triton, a backend itself decides to send only the requested outputs.
    assert [tensor.name for tensor in received[0].outputs] == ["OUTPUT0", "OUTPUT1"]


def test_times_and_memory_of_the_backend_are_in_the_statistics(
    serve: Serve, isolation: str
) -> None:
    with serve({"m": int_model("sleeper")}, isolation) as client:
        assert client.number("m", 30) == 1
        (statistics,) = client.engine.statistics("m")
    assert statistics.inference_stats.success.count == 1
    assert statistics.inference_stats.success.ns > 30e6
    with serve({"i": IDENTITY}, isolation) as client:

        def reported() -> int:
            (statistics,) = client.engine.statistics("i")
            return sum([usage.byte_size for usage in statistics.memory_usage])

        deadline = time.monotonic() + 30
        while reported() < 4096 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert reported() >= 4096


def test_logs_of_a_backend_reach_the_server_s_log(
    serve: Serve, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    settings = {"backends": {"identity": {"speed": 3, "fast": True}}}
    with serve({"m": IDENTITY}, isolation, **settings):
        deadline = time.monotonic() + 30
        while "instance m_0 runs on CPU device 0" not in caplog.text:
            assert time.monotonic() < deadline, caplog.text
            time.sleep(0.02)
    assert '"speed":"3"' in caplog.text
    assert '"fast":"true"' in caplog.text
    assert any(record.filename == "common.h" for record in caplog.records)


def test_an_instance_knows_the_settings_of_its_group(serve: Serve, isolation: str) -> None:
    groups = """instance_group [
        { count: 1 kind: KIND_CPU host_policy: "own"
          secondary_devices { kind: KIND_NVDLA device_id: 3 } },
        { name: "idle" kind: KIND_CPU passive: true }
    ]"""
    with serve({"m": int_model("describe", groups)}, isolation) as client:
        answers = [client.ask("m", 1).parameters for _ in range(4)]
    assert [answer["name"] for answer in answers] == ["m_0_0"] * 4  # never the passive one
    expected = {
        "kind": "CPU",
        "device": 0,
        "passive": False,
        "host policy": '{"own":{}}',
        "profiles": 0,
        "secondary devices": 1,
        "secondary device 0": "KIND_NVDLA 3",
        "model": "m",
        "version": 1,
        "folder": "/m",
    }
    assert answers[0].items() >= expected.items()


def test_preferred_groups_are_used_where_a_configuration_leaves_them_open(
    serve: Serve, isolation: str
) -> None:
    models = {
        "none": int_model("describe"),
        "no_count": int_model("describe", "instance_group { kind: KIND_CPU }"),
        "own": int_model("describe", "instance_group { count: 1 kind: KIND_CPU }"),
        "other": int_model("describe", "instance_group { kind: KIND_MODEL }"),
    }
    for complete in (True, False):
        with serve(models, isolation, disable_auto_complete=not complete) as client:
            groups = {name: client.engine.model_config(name).instance_group for name in models}
        counts = {name: [group.count for group in each] for name, each in groups.items()}
        assert counts == {"none": [2], "no_count": [2], "own": [1], "other": [1]}
        assert groups["none"][0].name == "none"


def test_preferred_groups_stay_when_instances_change(
    serve: Serve, isolation: str, model_repository: ModelRepository
) -> None:
    own = int_model("describe", "instance_group { count: 1 kind: KIND_CPU }")
    with serve({"m": own}, isolation, control={"mode": "explicit"}) as client:
        client.engine.load_model("m")
        choice = f'parameters {{ key: "isolation" value {{ string_value: "{isolation}" }} }}'
        (model_repository.path / "m" / "config.pbtxt").write_text(int_model("describe") + choice)
        client.engine.load_model("m")
        assert [group.count for group in client.engine.model_config("m").instance_group] == [2]


def test_passive_instances_are_initialized(
    serve: Serve, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    groups = 'instance_group [{ count: 1 }, { name: "idle" kind: KIND_CPU passive: true }]'
    with serve({"m": int_model("describe", groups)}, isolation):
        deadline = time.monotonic() + 30
        while not {"instance m_0_0 is active", "instance idle_0 is passive"} <= set(
            caplog.messages
        ):
            assert time.monotonic() < deadline, caplog.text
            time.sleep(0.02)


def test_the_profiles_of_a_group_reach_the_backend(
    serve: Serve, backends: Path, model_repository: ModelRepository, isolation: str
) -> None:
    library = (backends / "describe" / "libtriton_describe.so").read_bytes()
    model_repository.add("m", files={"libtriton_describe.so": library})
    model = int_model("tensorrt", 'instance_group { kind: KIND_CPU profile: ["3", "7"] }')
    model += 'platform: "tensorrt_plan" runtime: "libtriton_describe.so"'
    with serve({"m": model}, isolation) as client:
        answer = client.ask("m", 1).parameters
    assert [answer["profile 0"], answer["profile 1"]] == ["3", "7"]
    assert answer["profile that does not exist"] == (
        "out of bounds index 2: instance is configured with 2 profiles"
    )


def test_a_decoupled_backend_sends_many_responses(serve: Serve, isolation: str) -> None:
    config = int_model("repeat", "model_transaction_policy { decoupled: true }")
    with serve({"m": config}, isolation) as client:
        streams = [client.send("m", count) for count in (0, 1, 5, 500)]
        assert [stream.numbers() for stream in streams] == [
            [], [0], [0, 1, 2, 3, 4], list(range(500))
        ]  # fmt: skip
        assert all(stream.responses[-1].empty for stream in streams)


def test_a_cancelled_request_ends_early(
    serve: Serve, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    config = int_model("repeat", "model_transaction_policy { decoupled: true }")
    with serve({"m": config}, isolation) as client:
        stream = client.send("m", 2_000_000_000)
        while not stream.responses:
            time.sleep(0.001)
        stream.request.cancel()
        stream.wait()
        deadline = time.monotonic() + 30
        while " of 2000000000" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert len(stream.responses) < 2_000_000_000


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
def test_states_follow_their_sequences(serve: Serve, isolation: str, strategy: str) -> None:
    config = int_model(
        "total",
        f"sequence_batching {{ {strategy} "
        'control_input { name: "START" control { kind: CONTROL_SEQUENCE_START '
        "int32_false_true: [0, 1] } } "
        'state { input_name: "TOTAL_IN" output_name: "TOTAL_OUT" data_type: TYPE_INT32 dims: 1 } }',
        batch=4,
    )
    with serve({"m": config}, isolation) as client:
        totals = dict.fromkeys((11, 12, 13), 0)
        for step in range(6):
            sent = {
                sequence: client.send(
                    "m", -1 if step == 3 else step + sequence, shape=(1, 1),
                    sequence=SequenceInfo(sequence, step == 0, step == 5),
                )
                for sequence in totals
            }  # fmt: skip
            for sequence, answers in sent.items():
                totals[sequence] += 0 if step == 3 else step + sequence
                (response,) = answers.wait()
                assert response.error is None, response.error
                assert response.outputs[0].numpy().tolist() == [[totals[sequence]]]


def test_a_backend_completes_the_configuration(serve: Serve, isolation: str) -> None:
    with serve({"m": 'backend: "complete"'}, isolation) as client:
        config = client.engine.model_config("m")
        assert config.max_batch_size == 4
        assert [tensor.name for tensor in (*config.input, *config.output)] == ["IN", "OUT"]
        assert client.number("m", 1, shape=(1, 1)) == 1


def test_errors_of_loading_have_the_backend_s_text(serve: Serve, isolation: str) -> None:
    models = {"refused": 'backend: "complete"', "m": int_model("sleeper")}
    with serve(models, isolation, control={"mode": "explicit"}) as client:
        with pytest.raises(TritonError, match="the weights are missing"):
            client.engine.load_model("refused")
        client.engine.load_model("m")
        assert client.number("m", 0) == 1


def test_a_crash_while_a_configuration_is_completed_does_not_end_the_server(serve: Serve) -> None:
    models = {"crashing": 'backend: "complete"', "m": int_model("sleeper")}
    with serve(models, "process", control={"mode": "explicit"}) as client:
        with pytest.raises(TritonError, match=r"ended the process .* \(SIGABRT\)"):
            client.engine.load_model("crashing")
        client.engine.load_model("m")
        assert client.number("m", 0) == 1


def test_instances_execute_at_the_same_time(serve: Serve) -> None:
    config = int_model("sleeper", "instance_group { count: 2 kind: KIND_CPU }")
    with serve({"m": config}, "thread") as client:
        sent = [client.send("m", 300) for _ in range(2)]
        assert [answers.numbers() for answers in sent] == [[2], [2]]


def test_the_interpreter_is_free_while_a_backend_executes(serve: Serve) -> None:
    with serve({"m": int_model("sleeper")}, "thread") as client:
        answers = client.send("m", 300)
        steps = 0
        while not answers.responses:
            steps += 1
        assert steps > 10_000  # this thread would not run if the backend held the lock
        assert answers.numbers() == [1]


def test_a_device_blocking_backend_executes_one_instance_of_a_device(serve: Serve) -> None:
    config = int_model("blocking", "instance_group { count: 2 kind: KIND_CPU }")
    with serve({"m": config}, "thread") as client:
        sent = [client.send("m", 50) for _ in range(4)]
        assert [answers.numbers() for answers in sent] == [[1]] * 4


def test_a_backend_calls_other_models_and_counts(serve: Serve, isolation: str) -> None:
    double = int_model("sleeper")
    models = {"m": int_model("caller"), "double": double, "late": double}
    control = {"mode": "explicit", "load": ["m", "double"]}
    with serve(models, isolation, control=control) as client:
        response = client.ask("m", 5)
        assert response.error is None, response.error
        assert response.outputs[0].numpy().tolist() == [1]
        assert response.parameters["calls"] == 1.0
        assert "missing" in client.error("m", -1)
        assert client.number("m", -2) == 11  # not ready before; ready after, and not decoupled
        with urllib.request.urlopen(f"http://{client.server.metrics}/metrics") as page:
            assert 'caller_calls{kind="double"} 3' in page.read().decode()
        client.engine.unload_model("m")
        client.engine.load_model("m")
        assert client.number("m", 5) == 1


def test_a_library_in_the_model_s_folder_serves_it(
    serve: Serve, backends: Path, model_repository: ModelRepository
) -> None:
    library = (backends / "sleeper" / "libtriton_sleeper.so").read_bytes()
    own, older = int_model("own"), int_model("older")
    model_repository.add("own", versions={1: {"libtriton_own.so": library}})
    model_repository.add("older", files={"libtriton_older.so": library})
    with serve({"own": own, "older": older}, "process") as client:
        assert client.number("own", 0) == client.number("older", 0) == 1
        assert client.engine.model_config("own").runtime == "libtriton_own.so"


def test_a_missing_library_names_where_it_was_searched(
    serve: Serve, backends: Path, model_repository: ModelRepository
) -> None:
    config = int_model("sleeper", 'runtime: "libtriton_other.so"')
    with (
        serve({"m": config}, "process", control={"mode": "explicit"}) as client,
        pytest.raises(InvalidArgument) as refused,
    ):
        client.engine.load_model("m")
    folder = model_repository.path / "m"
    assert (
        f"unable to find backend library 'libtriton_other.so' for model 'm', searched: "
        f"'{folder}/1' '{folder}' '{backends}/sleeper' "
    ) in refused.value.message


def test_models_reload_and_unload(serve: Serve, isolation: str) -> None:
    with serve({"m": int_model("sleeper")}, isolation, control={"mode": "explicit"}) as client:
        for _ in range(3):
            client.engine.load_model("m")
            assert client.number("m", 0) == 1
        client.engine.unload_model("m")
