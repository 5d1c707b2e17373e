"""The effects of faulty models."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tritonpy import InferRequest, Tensor
from tritonpy_testing import (
    InferenceServerException,
    InferInput,
    InProcessClient,
    RecordingSink,
    RunningServer,
)

from .serving import (
    DOUBLE,
    ONE_IN_ONE_OUT,
    descriptors,
    query,
    served,
    wait_for,
    workers,
    write_model,
)

PARAMETER = 'parameters {{ key: "{}" value {{ string_value: "{}" }} }}\n'
REPORT_PID = """
def execute(self, requests):
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, 1), os.getpid()))]) for r in requests]
"""
# A negative input breaks the process, others are doubled.
BREAKS = """
def execute(self, requests):
    for request in requests:
        if request.inputs()[0].as_numpy().min() < 0:
            {}
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy() * 2)]) for r in requests]
"""


def mapped() -> int:
    """Return the number of workers' shared segments that this process has mapped."""
    gc.collect()
    return Path("/proc/self/maps").read_text().count("memfd:tritonpy")


def answered(server: RunningServer, model: str) -> bool:
    try:
        return query(server, model).size == 1
    except InferenceServerException:
        return False


def recovered(server: RunningServer, model: str) -> bool:
    try:
        return query(server, model, (4,)).tolist() == [[8]]
    except InferenceServerException:
        return False


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9"),
        ("os.abort()", "killed by signal 6"),
        ("os._exit(3)", "exited with status 3"),
        ("import ctypes; ctypes.string_at(0)", "killed by signal 11"),
    ],
)
def test_a_crash_fails_the_workers_requests_and_the_worker_restarts(
    tmp_path: Path, action: str, text: str
) -> None:
    write_model(tmp_path, "breaks", BREAKS.format(action))
    write_model(tmp_path, "other")
    with served(tmp_path) as server:
        with pytest.raises(InferenceServerException, match=text) as caught:
            query(server, "breaks", (-1,))
        assert "Stub process 'breaks_0" in str(caught.value)
        assert query(server, "other", (3,)).tolist() == [[6]]
        wait_for(lambda: recovered(server, "breaks"))


def test_requests_of_a_killed_worker_get_exactly_one_response_each(tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    waits = f"open({str(begun)!r}, 'w').close()\n    while not os.path.exists({str(go)!r}): time.sleep(0.01)\n    return"
    write_model(tmp_path, "slow", REPORT_PID.replace("return", waits))
    with served(tmp_path) as server:
        client = InProcessClient(server)
        tensor = InferInput("IN", [1, 1], "INT64").set_data_from_numpy(np.zeros((1, 1), np.int64))
        calls = [client.async_infer("slow", [tensor]) for _ in range(20)]
        wait_for(begun.exists)
        os.kill(workers()[0].pid, signal.SIGKILL)
        go.touch()
        outcomes = []
        for call in calls:
            try:
                outcomes.append(call.get_result().as_numpy("OUT").size)
            except InferenceServerException as error:
                outcomes.append(str(error))
        assert len(outcomes) == 20
        assert any("killed by signal 9" in str(outcome) for outcome in outcomes)
        assert outcomes[-1] == 1  # the next process serves waiting requests


def test_a_request_that_ends_its_worker_fails_no_other_request(tmp_path: Path) -> None:
    write_model(tmp_path, "breaks", BREAKS.format("os._exit(3)"))
    with served(tmp_path) as server:
        client = InProcessClient(server)

        def send(value: int) -> Any:
            tensor = InferInput("IN", [1, 1], "INT64").set_data_from_numpy(
                np.full((1, 1), value, np.int64)
            )
            return client.async_infer("breaks", [tensor])

        query(server, "breaks", (1,))
        for _ in range(3):
            calls = [(value, send(value)) for value in (1, 2, 3, -1, 4, 5, 6)]
            for value, call in calls:
                if value > 0:
                    assert call.get_result().as_numpy("OUT").tolist() == [[2 * value]]
                else:
                    with pytest.raises(InferenceServerException, match="exited with status 3"):
                        call.get_result()


def test_the_execution_limit_ends_an_endless_loop(tmp_path: Path) -> None:
    config = ONE_IN_ONE_OUT + PARAMETER.format("EXECUTION_LIMIT_SECONDS", "0.5")
    write_model(tmp_path, "endless", BREAKS.format("while True: pass"), config)
    with served(tmp_path) as server:
        with pytest.raises(InferenceServerException, match=r"longer than the limit of 0\.5 s"):
            query(server, "endless", (-1,))
        wait_for(lambda: recovered(server, "endless"))


@pytest.mark.parametrize("first", ["pass", "await asyncio.sleep(0)"])
def test_the_execution_limit_ends_a_coroutine_that_blocks_its_loop(
    tmp_path: Path, first: str
) -> None:
    methods = f"""
    async def execute(self, requests):
        import asyncio
        for request in requests:
            sender, data = request.get_response_sender(), request.inputs()[0].as_numpy()
            {first}
            while data.min() < 0:
                pass
            await asyncio.sleep(1)  # longer than the limit, but not blocking
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data * 2)]), flags=1)
    """
    config = ONE_IN_ONE_OUT + "model_transaction_policy { decoupled: true }"
    write_model(
        tmp_path, "endless", methods, config + PARAMETER.format("EXECUTION_LIMIT_SECONDS", "0.5")
    )
    recorder = RecordingSink()

    def send(value: int) -> InferRequest:
        inputs = {"IN": Tensor.from_numpy("IN", np.array([[value]]))}
        request = InferRequest("endless", inputs, recorder.sink, accepts_decoupled=True)
        server.engine.infer(request)
        return request

    def is_doubled(request: InferRequest) -> bool:
        (answers,) = recorder.wait(request)
        return answers[0].error is None and answers[0].outputs[0].numpy().tolist() == [[8]]

    with served(tmp_path) as server:
        wait_for(lambda: is_doubled(send(4)))  # a busy machine may exceed the limit once
        looping = send(-1)
        if first != "pass":  # it has started: the limit applies to the next one, which cannot
            send(4)
        ((answer,),) = recorder.wait(looping)
        assert "longer than the limit of 0.5 s" in str(answer.error)
        wait_for(lambda: is_doubled(send(4)))


def test_a_model_that_exceeds_its_memory_limit_keeps_running(tmp_path: Path) -> None:
    config = ONE_IN_ONE_OUT + PARAMETER.format("MEMORY_LIMIT", "512MiB")
    greedy = BREAKS.format("hoard = []\n            while True: hoard.append(bytearray(1 << 24))")
    write_model(tmp_path, "greedy", greedy, config)
    with served(tmp_path) as server:
        pid = workers()[0].pid
        with pytest.raises(InferenceServerException, match="MemoryError"):
            query(server, "greedy", (-1,))
        assert query(server, "greedy", (4,)).tolist() == [[8]]
        assert workers()[0].pid == pid


def test_a_model_that_exits_in_initialize_fails_its_load(tmp_path: Path) -> None:
    write_model(
        tmp_path, "leaves", "def initialize(self, args):\n    os._exit(0)\n" + DOUBLE.strip()
    )
    with served(tmp_path) as server:
        assert "exited with status 0" in server.engine.repository_index()[0].reason
        assert workers() == []


def test_requests_of_a_model_that_cannot_restart_get_the_reason(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    methods = f"""
    def initialize(self, args):
        if os.path.exists({str(marker)!r}):
            raise RuntimeError("only once")
        open({str(marker)!r}, "w").close()

    def execute(self, requests):
        os._exit(1)
    """
    write_model(tmp_path / "models", "once", methods)
    with served(tmp_path / "models") as server:
        with pytest.raises(InferenceServerException, match="exited with status 1"):
            query(server, "once")
        with pytest.raises(InferenceServerException, match="only once"):
            query(server, "once")
        assert not server.engine.is_model_ready("once")
        marker.unlink()
        wait_for(lambda: server.engine.is_model_ready("once"))


def test_an_instance_keeps_running_when_another_one_dies(tmp_path: Path) -> None:
    write_model(
        tmp_path, "pair", REPORT_PID, ONE_IN_ONE_OUT + "instance_group { count: 2 kind: KIND_CPU }"
    )
    with served(tmp_path) as server:
        wait_for(lambda: len(workers()) == 3)  # the template and two instances
        before = {process.pid for process in workers()}
        victim = next(process for process in workers() if process.ppid() != os.getpid())
        victim.kill()
        lost = [None for _ in range(50) if not answered(server, "pair")]
        assert len(lost) <= 1  # the request in flight when the process died
        wait_for(lambda: len(workers()) == 3 and {process.pid for process in workers()} != before)


def test_workers_outlive_their_template(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_model(
        tmp_path, "pair", REPORT_PID, ONE_IN_ONE_OUT + "instance_group { count: 2 kind: KIND_CPU }"
    )
    with served(tmp_path) as server:
        wait_for(lambda: len(workers()) == 3)
        template = next(process for process in workers() if process.ppid() == os.getpid())
        instances = [process for process in workers() if process.pid != template.pid]
        template.kill()
        assert query(server, "pair").size == 1
        instances[0].kill()
        wait_for(lambda: not psutil.pid_exists(instances[0].pid))
        wait_for(lambda: "Stub process 'pair_0" in caplog.text)  # the server has noticed it too
        for _ in range(20):
            assert query(server, "pair").size == 1
        instances[1].kill()
        wait_for(lambda: answered(server, "pair"))


def test_loading_and_unloading_releases_all_resources(tmp_path: Path) -> None:
    write_model(tmp_path, "double")
    with served(tmp_path, control={"mode": "explicit", "load": ["*"]}) as server:
        data = np.ones((1, 1 << 16), np.int64)  # large enough to travel in shared memory
        tensor = InferInput("IN", list(data.shape), "INT64").set_data_from_numpy(data)

        def cycle() -> None:
            server.engine.load_model("double")
            result = InProcessClient(server).infer("double", [tensor])
            assert result.as_numpy("OUT")[0, -1] == 2
            del result
            server.engine.unload_model("double")
            wait_for(lambda: not workers())

        cycle()
        wait_for(lambda: not server.engine.repository_index(ready=True))
        before, mapped_before = descriptors(), mapped()
        for _ in range(10):
            cycle()
        wait_for(lambda: descriptors() <= before)
        wait_for(lambda: mapped() <= mapped_before)


FREE = """
def execute(self, requests):
    import c_python_backend_utils
    free = c_python_backend_utils.shared_memory.free_memory()
    for request in requests:
        if request.inputs()[0].as_numpy().min() < 0:
            os._exit(3)
    rows = int(requests[0].inputs()[0].as_numpy()[0, 0])
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, rows), free))]) for r in requests]
"""


def test_free_shared_memory_is_equal_after_a_restart(tmp_path: Path) -> None:
    write_model(tmp_path, "free", FREE)
    with served(tmp_path) as server:
        for _ in range(2):
            assert query(server, "free", (100_000,))[0, 0] == 0
            wait_for(lambda: query(server, "free", (1,))[0, 0] >= 100_000 * 8)
            with pytest.raises(InferenceServerException, match="exited with status 3"):
                query(server, "free", (-1,))
