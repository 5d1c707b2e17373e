"""Models that are replaced while clients of both protocols ask them: nothing fails, and no old version answers after a switch."""

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

from tests.conftest import TIMEOUT_S, Models, Served, tensors_text
from tests.generations import Generations, ask, asked, load, load_of, until_asked
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


def state(served: Served, version: str = "1") -> str:
    """Return the state and reason of a version in the index."""
    lines = served.ask("/v2/repository/index", b"").json()
    return next(f"{each['state']} {each.get('reason', '')}" for each in lines if each.get("version") == version).strip()


@BACKENDS
def test_no_request_fails_and_none_is_answered_by_what_was_replaced(
    serve: Any, models: Models, backend: str, times: int
) -> None:
    model = Generations(models.path, backend)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served, asked(served, each=2) as (askers, switches):
        for number in range(times):
            generation = model.write()
            load(served, PROTOCOLS[number % 2])
            switches.newest = generation
            until_asked(served, askers)
            assert {asker.answers[-1] for asker in askers} == {generation}
        assert served.log.count(f"successfully unloaded '{model.name}'") <= times


def test_neither_does_any_where_polls_replace_it(serve: Any, models: Models, tmp_path: Path) -> None:
    model = Generations(models.path)
    settings = tmp_path / "server.yaml"
    settings.write_text("control: {mode: poll, interval_s: 0.05}\n")
    with serve(f"--model-repository={models.path}", f"--config={settings}") as served, asked(served) as (askers, _):
        for _ in range(5):
            generation = model.write()
            served.wait(
                lambda generation=generation: all(asker.wrong or asker.answers[-1] == generation for asker in askers),
                "the next generation answers",
            )


def test_an_ensemble_follows_the_model_that_it_stands_on_and_loses_nothing(serve: Any, models: Models) -> None:
    model = Generations(models.path)
    models.repository.add("top", ON_TOP, {1: {}})
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        asked(served, "top") as (askers, switches),
        asked(served) as (others, other_switches),
    ):
        for number in range(10):
            generation = model.write()
            load(served, PROTOCOLS[number % 2])
            switches.newest = other_switches.newest = generation
            until_asked(served, [*askers, *others])


def test_a_reload_that_fails_is_not_noticed_by_anybody_else(serve: Any, models: Models) -> None:
    model = Generations(models.path)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served, asked(served) as (askers, switches):
        for protocol in PROTOCOLS:
            model.write(content=b"no protobuf at all")
            with pytest.raises(InferenceServerException, match="load failed for model 'm'"):
                load(served, protocol)
            until_asked(served, askers)
            assert {asker.answers[-1] for asker in askers} == {switches.newest}
            generation = model.write()
            load(served, protocol)
            switches.newest = generation
            until_asked(served, askers)


def test_several_reloads_at_once_all_return_when_the_newest_serves(serve: Any, models: Models) -> None:
    model = Generations(models.path)
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        asked(served) as (askers, switches),
        ThreadPoolExecutor(4) as pool,
    ):
        for _ in range(5):
            generation = model.write()
            loads = [pool.submit(load, served, PROTOCOLS[number % 2]) for number in range(4)]
            for each in loads:
                each.result(TIMEOUT_S)
                switches.newest = generation
            until_asked(served, askers)


def test_a_hit_of_what_was_replaced_is_never_served(serve: Any, models: Models) -> None:
    model = Generations(models.path, more="response_cache { enable: true }")
    flags = ("--cache-config=local,size=1MiB", *EXPLICIT)
    with serve(f"--model-repository={models.path}", *flags) as served, asked(served, each=2) as (askers, switches):
        for number in range(20):
            generation = model.write()
            load(served, PROTOCOLS[number % 2])
            switches.newest = generation
            until_asked(served, askers)
        hits = served.ask("/v2/models/m/stats").json()["model_stats"][0]["inference_stats"]["cache_hit"]["count"]
        assert hits > 0


def test_what_executes_is_finished_by_the_old_version_while_the_new_one_serves(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    gate, entered = tmp_path / "gate", tmp_path / "entered"
    model = Generations(models.path, "python", more="")
    held = f"open({str(entered)!r}, 'w').close()\n        while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    old = model.write(work=held)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served, ThreadPoolExecutor(2) as pool:
        running = [pool.submit(ask, served, protocol) for protocol in PROTOCOLS]
        served.wait(entered.exists, "the old version executes")
        new = model.write()
        load(served)
        assert [ask(served, protocol) for protocol in PROTOCOLS] == [new, new]
        assert "successfully unloaded" not in served.log
        gate.touch()
        # the second one may have waited behind the first, in the old version's queue
        assert [each.result(TIMEOUT_S) for each in running] == [old, old]
        served.until_logged("successfully unloaded 'm' version 1")


def test_a_server_that_drains_during_a_reload_answers_what_it_took_and_ends(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    gate, entered, starting = tmp_path / "gate", tmp_path / "entered", tmp_path / "starting"
    model = Generations(models.path, "python", more="")
    wait = f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    old = model.write(work=f"open({str(entered)!r}, 'w').close()\n        {wait}")
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served, ThreadPoolExecutor(2) as pool:
        running = pool.submit(ask, served)
        served.wait(entered.exists, "the old version executes")
        model.write(begin=f"open({str(starting)!r}, 'w').close()\n        {wait}")
        reload = pool.submit(load, served)
        served.wait(starting.exists, "the new version starts")
        served.process.send_signal(signal.SIGTERM)
        served.wait(lambda: answered_503(served), "it refuses new connections")
        gate.touch()
        assert running.result(TIMEOUT_S) == old
        # Its client hears of it in any case: it is done in time, or refused.
        assert isinstance(reload.exception(TIMEOUT_S), InferenceServerException | ConnectionError | None)
        assert served.until_ended() == 0
        assert "Traceback" not in served.log


def test_a_new_worker_that_is_killed_while_it_starts_changes_nothing(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    gate, number = tmp_path / "gate", tmp_path / "number"
    model = Generations(models.path, "python", more="")
    with (
        serve(f"--model-repository={models.path}", *EXPLICIT) as served,
        asked(served) as (askers, switches),
        ThreadPoolExecutor(1) as pool,
    ):
        model.write(
            begin=f"open({str(number)!r}, 'w').write(str(os.getpid()))\n"
            f"        while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
        )
        reload = pool.submit(load, served)
        worker = served.wait(lambda: number.exists() and number.read_text(), "the new worker starts")
        os.kill(int(worker), signal.SIGKILL)
        error = reload.exception(TIMEOUT_S)
        assert isinstance(error, InferenceServerException)
        assert "load failed for model 'm'" in error.message()
        until_asked(served, askers)
        gate.touch()
        generation = model.write()
        load(served)
        switches.newest = generation
        until_asked(served, askers)


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


def test_a_client_that_reads_slowly_gets_all_of_the_old_version(serve: Any, models: Models) -> None:
    count = 64

    def write(generation: int) -> None:
        code = (
            STREAMING.replace("COUNT", str(count)).replace("BYTES", str(1 << 20)).replace("GENERATION", str(generation))
        )
        config = f'backend: "python"\n{tensors_text("FP32", "-1")}model_transaction_policy {{ decoupled: true }}\n'
        models.repository.add("m", config, {1: {"model.py": code}})

    write(1)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        reads, answers = threading.Event(), queue.SimpleQueue[Any]()

        def taken(result: Any, error: Any) -> None:
            answers.put(error or result.as_numpy("OUT"))
            assert reads.wait(TIMEOUT_S)

        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            given = tritonclient.grpc.InferInput("IN", [1], "FP32")
            given.set_data_from_numpy(np.ones(1, np.float32))
            client.start_stream(taken)
            client.async_stream_infer("m", [given])
            found = [answers.get(timeout=TIMEOUT_S)]
            write(2)
            load(served)
            assert "successfully unloaded" not in served.log
            reads.set()
            found += [answers.get(timeout=TIMEOUT_S) for _ in range(count - 1)]
            assert {float(values.min()) for values in found} == {float(values.max()) for values in found} == {1.0}
            served.until_logged("successfully unloaded 'm' version 1")
            client.async_stream_infer("m", [given])
            assert [answers.get(timeout=TIMEOUT_S)[0] for _ in range(count)] == [2.0] * count
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
def test_a_sequence_that_lives_at_the_switch_is_told_to_begin_anew_and_then_has_the_new_version(
    serve: Any, models: Models, module: Any
) -> None:
    def write(generation: int) -> None:
        models.repository.add("m", SEQUENCES, {1: {"model.py": SUMMING.replace("GENERATION", str(generation))}})

    write(1)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        assert ask(served, module, sequence_id=7, sequence_start=True) == 1001
        assert ask(served, module, sequence_id=7) == 1002
        write(2)
        load(served, module)
        with pytest.raises(InferenceServerException, match="must specify the START flag"):
            ask(served, module, sequence_id=7)
        assert ask(served, module, sequence_id=7, sequence_start=True) == 2001
        assert ask(served, module, sequence_id=7, sequence_end=True) == 2002


@pytest.mark.parametrize("module", PROTOCOLS, ids=["http", "grpc"])
def test_single_versions_come_and_go_while_the_others_serve(serve: Any, models: Models, module: Any) -> None:
    model = Generations(models.path, more="version_policy { specific { versions: [1, 2] } }")
    second, third = model.write(2), model.write(3)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        assert ask(served, module) == second
        load_of(served, "load", module, "3")
        assert (ask(served, module), ask(served, module, version="1")) == (third, 0)
        load_of(served, "unload", module, "1,2")
        served.until_logged("successfully unloaded 'm' version 1")
        assert ask(served, module) == third
        served.wait(lambda: state(served, "1") == state(served, "2") == "UNAVAILABLE unloaded", "the index says it")
        with pytest.raises(InferenceServerException, match="'m' version 1 is not at ready state"):
            ask(served, module, version="1")
        assert served.ask("/v2/health/ready").status == 200
        assert served.log.count('loading: m:3"') == 1
        load(served, module)
        assert [ask(served, module, version=version) for version in ("", "1", "2")] == [second, 0, second]
        assert state(served, "1") == state(served, "2") == "READY"


@pytest.mark.parametrize("module", PROTOCOLS, ids=["http", "grpc"])
def test_versions_that_are_none_are_refused(serve: Any, models: Models, module: Any) -> None:
    Generations(models.path)
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served:
        for action in ("load", "unload"):
            with pytest.raises(Exception, match="parameter 'versions' must be version numbers"):
                load_of(served, action, module, "newest")
        with pytest.raises(Exception, match="model 'm' has no version 9 in its folder"):
            load_of(served, "load", module, "9")
        assert ask(served, module) == 0


def test_a_version_more_leaves_the_others_alone(serve: Any, models: Models) -> None:
    model = Generations(models.path, "python", more="version_policy { all {} }")
    with serve(f"--model-repository={models.path}", *EXPLICIT) as served, asked(served) as (askers, switches):
        for version in (2, 3):
            generation = model.write(version)
            load(served)
            switches.newest = generation
            until_asked(served, askers)
        assert [served.log.count(f'loading: m:{version}"') for version in (1, 2, 3)] == [1, 1, 1]
        assert "successfully unloaded" not in served.log
