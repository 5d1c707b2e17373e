"""Reloads under load: no request fails, and no old version responds after a switch."""

from __future__ import annotations

import os
import queue
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from tests.conftest import TIMEOUT_S, Models, ServerProcess, tensors_text
from tests.generations import (
    Generations,
    continuous_requests,
    infer_generation,
    load,
    load_of,
    wait_for_responses,
)
from tests.test_shutdown import answered_503

EXPLICIT = ("--model-control-mode=explicit", "--load-model=*")
PROTOCOLS = (tritonclient.http, tritonclient.grpc)
BACKENDS = pytest.mark.parametrize(("backend", "times"), [("onnxruntime", 20), ("python", 6)])
ON_TOP = """
platform: "ensemble"
input [{ name: "IN" data_type: TYPE_FP32 dims: [1] }] output [{ name: "OUT" data_type: TYPE_FP32 dims: [1] }]
ensemble_scheduling { step { model_name: "m" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""


def state(served: ServerProcess, version: str = "1") -> str:
    """Return the state and reason of a version in the index."""
    lines = served.request("/v2/repository/index", b"").json()
    return next(
        f"{each['state']} {each.get('reason', '')}"
        for each in lines
        if each.get("version") == version
    ).strip()


@BACKENDS
def test_reloads_fail_no_request_and_return_no_old_version(
    serve: Any, models: Models, backend: str, times: int
) -> None:
    model = Generations(models.path, backend)
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        continuous_requests(served, each=2) as (loops, expected),
    ):
        for number in range(times):
            generation = model.write()
            load(served, PROTOCOLS[number % 2])
            expected.newest = generation
            wait_for_responses(served, loops)
            assert {loop.responses[-1] for loop in loops} == {generation}
        assert served.log.count(f"successfully unloaded '{model.name}'") <= times


def test_polled_reloads_fail_no_request_and_return_no_old_version(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    model = Generations(models.path)
    settings = tmp_path / "server.yaml"
    settings.write_text("control: {mode: poll, interval_s: 0.05}\n")
    with (
        serve(f"--model-repository={models.path}", f"--config={settings}") as served,
        continuous_requests(served) as (loops, _),
    ):
        for _ in range(5):
            generation = model.write()
            served.wait(
                lambda generation=generation: all(
                    loop.wrong or loop.responses[-1] == generation for loop in loops
                ),
                "the next generation answers",
            )


def test_an_ensemble_uses_the_reloaded_member_and_fails_no_request(
    serve: Any, models: Models
) -> None:
    model = Generations(models.path)
    models.repository.add("top", ON_TOP, {1: {}})
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        continuous_requests(served, "top") as (loops, expected),
        continuous_requests(served) as (other_loops, other_expected),
    ):
        for number in range(10):
            generation = model.write()
            load(served, PROTOCOLS[number % 2])
            expected.newest = other_expected.newest = generation
            wait_for_responses(served, [*loops, *other_loops])


def test_a_failed_reload_does_not_affect_clients(serve: Any, models: Models) -> None:
    model = Generations(models.path)
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        continuous_requests(served) as (loops, expected),
    ):
        for protocol in PROTOCOLS:
            model.write(content=b"no protobuf at all")
            with pytest.raises(InferenceServerException, match="load failed for model 'm'"):
                load(served, protocol)
            wait_for_responses(served, loops)
            assert {loop.responses[-1] for loop in loops} == {expected.newest}
            generation = model.write()
            load(served, protocol)
            expected.newest = generation
            wait_for_responses(served, loops)


def test_concurrent_reloads_return_when_the_newest_version_serves(
    serve: Any, models: Models
) -> None:
    model = Generations(models.path)
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        continuous_requests(served) as (loops, expected),
        ThreadPoolExecutor(4) as pool,
    ):
        for _ in range(5):
            generation = model.write()
            loads = [pool.submit(load, served, PROTOCOLS[number % 2]) for number in range(4)]
            for each in loads:
                each.result(TIMEOUT_S)
                expected.newest = generation
            wait_for_responses(served, loops)


def test_cached_responses_of_a_replaced_version_are_not_returned(
    serve: Any, models: Models
) -> None:
    model = Generations(models.path, more="response_cache { enable: true }")
    flags = ("--cache-config=local,size=1MiB", *EXPLICIT)
    with (
        serve(f"--model-repository={models.path}", *flags) as served,
        continuous_requests(served, each=2) as (loops, expected),
    ):
        for number in range(20):
            generation = model.write()
            load(served, PROTOCOLS[number % 2])
            expected.newest = generation
            wait_for_responses(served, loops)
        hits = served.request("/v2/models/m/stats").json()["model_stats"][0]["inference_stats"][
            "cache_hit"
        ]["count"]
        assert hits > 0


def test_the_old_version_finishes_its_executions_while_the_new_one_serves(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    gate, entered = tmp_path / "gate", tmp_path / "entered"
    model = Generations(models.path, "python", more="")
    held = f"open({str(entered)!r}, 'w').close()\n        while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    old = model.write(work=held)
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        ThreadPoolExecutor(2) as pool,
    ):
        running = [pool.submit(infer_generation, served, protocol) for protocol in PROTOCOLS]
        served.wait(entered.exists, "the old version executes")
        new = model.write()
        load(served)
        assert [infer_generation(served, protocol) for protocol in PROTOCOLS] == [new, new]
        assert "successfully unloaded" not in served.log
        gate.touch()
        # the second request may have been queued behind the first, in the old version's queue
        assert [each.result(TIMEOUT_S) for each in running] == [old, old]
        served.wait_until_logged("successfully unloaded 'm' version 1")


def test_a_server_that_drains_during_a_reload_finishes_accepted_requests(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    gate, entered, starting = tmp_path / "gate", tmp_path / "entered", tmp_path / "starting"
    model = Generations(models.path, "python", more="")
    wait = f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    old = model.write(work=f"open({str(entered)!r}, 'w').close()\n        {wait}")
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        ThreadPoolExecutor(2) as pool,
    ):
        running = pool.submit(infer_generation, served)
        served.wait(entered.exists, "the old version executes")
        model.write(begin=f"open({str(starting)!r}, 'w').close()\n        {wait}")
        reload = pool.submit(load, served)
        served.wait(starting.exists, "the new version starts")
        served.process.send_signal(signal.SIGTERM)
        served.wait(lambda: answered_503(served), "it refuses new connections")
        gate.touch()
        assert running.result(TIMEOUT_S) == old
        # The client always gets a result: the request finishes in time, or is refused.
        assert isinstance(
            reload.exception(TIMEOUT_S), InferenceServerException | ConnectionError | None
        )
        assert served.wait_until_exit() == 0
        assert "Traceback" not in served.log


def test_killing_a_starting_worker_keeps_the_old_version(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    gate, number = tmp_path / "gate", tmp_path / "number"
    model = Generations(models.path, "python", more="")
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        continuous_requests(served) as (loops, expected),
        ThreadPoolExecutor(1) as pool,
    ):
        model.write(
            begin=f"open({str(number)!r}, 'w').write(str(os.getpid()))\n"
            f"        while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
        )
        reload = pool.submit(load, served)
        worker = served.wait(
            lambda: number.exists() and number.read_text(), "the new worker starts"
        )
        os.kill(int(worker), signal.SIGKILL)
        error = reload.exception(TIMEOUT_S)
        assert isinstance(error, InferenceServerException)
        assert "load failed for model 'm'" in error.message()
        wait_for_responses(served, loops)
        gate.touch()
        generation = model.write()
        load(served)
        expected.newest = generation
        wait_for_responses(served, loops)


STREAMING = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(COUNT):
                out = np.full(BYTES // 4, GENERATION, np.float32)
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def test_a_slow_reader_gets_all_responses_of_the_old_version(serve: Any, models: Models) -> None:
    count = 64

    def write(generation: int) -> None:
        code = (
            STREAMING.replace("COUNT", str(count))
            .replace("BYTES", str(1 << 20))
            .replace("GENERATION", str(generation))
        )
        config = f'backend: "python"\n{tensors_text("FP32", "-1")}model_transaction_policy {{ decoupled: true }}\n'
        models.repository.add("m", config, {1: {"model.py": code}})

    write(1)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        reads, responses = threading.Event(), queue.SimpleQueue[Any]()

        def taken(result: Any, error: Any) -> None:
            responses.put(error or result.as_numpy("OUT"))
            assert reads.wait(TIMEOUT_S)

        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            given = tritonclient.grpc.InferInput("IN", [1], "FP32")
            given.set_data_from_numpy(np.ones(1, np.float32))
            client.start_stream(taken)
            client.async_stream_infer("m", [given])
            found = [responses.get(timeout=TIMEOUT_S)]
            write(2)
            load(served)
            assert "successfully unloaded" not in served.log
            reads.set()
            found += [responses.get(timeout=TIMEOUT_S) for _ in range(count - 1)]
            assert (
                {float(values.min()) for values in found}
                == {float(values.max()) for values in found}
                == {1.0}
            )
            served.wait_until_logged("successfully unloaded 'm' version 1")
            client.async_stream_infer("m", [given])
            assert [responses.get(timeout=TIMEOUT_S)[0] for _ in range(count)] == [2.0] * count
            client.stop_stream()


SUMMING = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.count = 0

    def execute(self, requests):
        answers = []
        for request in requests:
            start = pb_utils.get_input_tensor_by_name(request, "START").as_numpy().ravel()[0]
            self.count = 1 if start else self.count + 1
            out = np.array([1000 * GENERATION + self.count], np.float32)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]))
        return answers
"""
SEQUENCES = f"""
backend: "python"
{tensors_text("FP32", "1")}
instance_group [{{ count: 1 kind: KIND_CPU }}]
sequence_batching {{ max_sequence_idle_microseconds: 60000000 direct {{ }}
  control_input {{ name: "START" control {{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }} }} }}
"""


@pytest.mark.parametrize("module", PROTOCOLS, ids=["http", "grpc"])
def test_a_sequence_live_at_a_reload_must_restart_and_uses_the_new_version(
    serve: Any, models: Models, module: Any
) -> None:
    def write(generation: int) -> None:
        models.repository.add(
            "m", SEQUENCES, {1: {"model.py": SUMMING.replace("GENERATION", str(generation))}}
        )

    write(1)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        assert infer_generation(served, module, sequence_id=7, sequence_start=True) == 1001
        assert infer_generation(served, module, sequence_id=7) == 1002
        write(2)
        load(served, module)
        with pytest.raises(InferenceServerException, match="must specify the START flag"):
            infer_generation(served, module, sequence_id=7)
        assert infer_generation(served, module, sequence_id=7, sequence_start=True) == 2001
        assert infer_generation(served, module, sequence_id=7, sequence_end=True) == 2002


@pytest.mark.parametrize("module", PROTOCOLS, ids=["http", "grpc"])
def test_single_versions_load_and_unload_while_others_serve(
    serve: Any, models: Models, module: Any
) -> None:
    model = Generations(models.path, more="version_policy { specific { versions: [1, 2] } }")
    second, third = model.write(2), model.write(3)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        assert infer_generation(served, module) == second
        load_of(served, "load", module, "3")
        assert (
            infer_generation(served, module),
            infer_generation(served, module, version="1"),
        ) == (third, 0)
        load_of(served, "unload", module, "1,2")
        served.wait_until_logged("successfully unloaded 'm' version 1")
        assert infer_generation(served, module) == third
        served.wait(
            lambda: state(served, "1") == state(served, "2") == "UNAVAILABLE unloaded",
            "the index says it",
        )
        with pytest.raises(InferenceServerException, match="'m' version 1 is not at ready state"):
            infer_generation(served, module, version="1")
        assert served.request("/v2/health/ready").status == 200
        assert served.log.count('loading: m:3"') == 1
        load(served, module)
        assert [
            infer_generation(served, module, version=version) for version in ("", "1", "2")
        ] == [second, 0, second]
        assert state(served, "1") == state(served, "2") == "READY"


@pytest.mark.parametrize("module", PROTOCOLS, ids=["http", "grpc"])
def test_invalid_versions_are_rejected(serve: Any, models: Models, module: Any) -> None:
    Generations(models.path)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        for action in ("load", "unload"):
            with pytest.raises(Exception, match="parameter 'versions' must be version numbers"):
                load_of(served, action, module, "newest")
        with pytest.raises(Exception, match="model 'm' has no version 9 in its folder"):
            load_of(served, "load", module, "9")
        assert infer_generation(served, module) == 0


def test_an_added_version_does_not_affect_the_others(serve: Any, models: Models) -> None:
    model = Generations(models.path, "python", more="version_policy { all {} }")
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        continuous_requests(served) as (loops, expected),
    ):
        for version in (2, 3):
            generation = model.write(version)
            load(served)
            expected.newest = generation
            wait_for_responses(served, loops)
        assert [served.log.count(f'loading: m:{version}"') for version in (1, 2, 3)] == [1, 1, 1]
        assert "successfully unloaded" not in served.log
