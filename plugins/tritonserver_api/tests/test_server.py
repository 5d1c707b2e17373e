from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import tritonserver
from tritonserver import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    ModelControlMode,
    UnavailableError,
)

from plugins.tritonserver_api.tests.conftest import ECHO, ECHO_CONFIG, write_model

EXPLICIT = ModelControlMode.EXPLICIT


def test_nothing_works_before_the_start() -> None:
    server = tritonserver.Server()
    for call in (server.live, server.ready, server.metadata, server.metrics, server.models):
        with pytest.raises(InvalidArgumentError, match="Server not started"):
            call()
    with pytest.raises(InvalidArgumentError, match="Server not started"):
        server.model("m")
    with pytest.raises(InvalidArgumentError, match="Server not started"):
        server.stop()


def test_a_server_starts_and_stops_again(models: str) -> None:
    server = tritonserver.Server(model_repository=models, server_id="mine")
    for _ in range(2):
        server.start(wait_until_ready=True)
        assert (server.live(), server.ready()) == (True, True)
        assert server.metadata()["name"] == "mine"
        with pytest.raises(InvalidArgumentError, match="already started"):
            server.start()
        model = server.model("echo")
        server.stop()
        with pytest.raises(InvalidArgumentError, match="not started"):
            model.infer(inputs={"bool_in": [[True]]})


def test_a_server_without_references_stops(models: str) -> None:
    before = set(threading.enumerate())
    server = tritonserver.Server(model_repository=models, model_control_mode=EXPLICIT).start()
    model = server.model("echo")
    started = weakref.ref(server.started())
    del server
    gc.collect()
    assert started() is not None, "the model still needs it"
    del model
    gc.collect()
    assert started() is None
    assert {each for each in threading.enumerate() if not each.daemon} <= before


def test_a_program_that_forgets_to_stop_ends_cleanly(models: str) -> None:
    program = (
        "import numpy, tritonserver\n"
        f"server = tritonserver.Server(model_repository={models!r}).start(wait_until_ready=True)\n"
        "list(server.model('echo').infer(inputs={'bool_in': numpy.ones((1, 1), bool)}))\n"
        "print('served')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")


@pytest.mark.parametrize(
    "options",
    [
        {"server_id": 1},
        {"model_repository": 1},
        {"model_repository": [1]},
        {"exit_timeout": "5"},
        {"strict_readiness": 1},
        {"log_verbose": True},
        {"startup_models": [3]},
    ],
)
def test_options_of_a_wrong_type_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        tritonserver.Server(**{"model_repository": "x", **options}).start()


def test_a_server_needs_a_repository() -> None:
    for options in ({"model_repository": None}, {"model_repository": []}, {}):
        with pytest.raises(InvalidArgumentError, match="repository must be specified"):
            tritonserver.Server(**options).start()
    with pytest.raises(InternalError, match="/no/folder"):
        tritonserver.Server(model_repository="/no/folder").start()


def test_models_are_loaded_changed_and_unloaded(models: str) -> None:
    server = tritonserver.Server(model_repository=models, model_control_mode=EXPLICIT).start()
    assert set(server.models()) == {("echo", -1), ("fail", -1), ("repeat", -1)}
    assert server.models(exclude_not_ready=True) == {}
    with pytest.raises(InternalError, match="failed to load 'none'"):
        server.load("none")
    config = {"backend": "python", "max_batch_size": 4}
    tensors = {"name": "bool_in", "data_type": "TYPE_BOOL", "dims": [1]}
    config |= {"input": [tensors], "output": [tensors | {"name": "bool_out"}]}
    model = server.load("echo", {"config": json.dumps(config)})
    assert model.batch_properties() is tritonserver.ModelBatchFlag.FIRST_DIM
    found = server.models()
    assert found["echo", 1].state == "READY"
    assert found["echo"].version == -1
    for key in ("none", ("echo", 2)):
        with pytest.raises(KeyError, match="Unknown Model"):
            found[key]
    for parameters in ({"other": "x"}, {"config": b"x"}, {"file:1/model.py": "text"}):
        with pytest.raises(InvalidArgumentError, match="unexpected parameter"):
            server.load("echo", parameters)  # type: ignore[arg-type]
    server.unload(model, wait_until_unloaded=True)
    assert server.models()["echo", 1].state == "UNAVAILABLE"
    assert not model.ready()
    server.stop()


def test_repositories_are_registered_at_run_time(models: str, tmp_path: Path) -> None:
    write_model(tmp_path, "folder", ECHO_CONFIG, ECHO)
    server = tritonserver.Server(model_repository=models, model_control_mode=EXPLICIT).start()
    server.register_model_repository(str(tmp_path), {"folder": "named"})
    with pytest.raises(AlreadyExistsError):
        server.register_model_repository(str(tmp_path))
    assert server.load("named").ready()
    server.unload("named", wait_until_unloaded=True, timeout=30)
    server.unregister_model_repository(str(tmp_path))
    with pytest.raises(tritonserver.TritonError):
        server.load("named")
    with pytest.raises(InvalidArgumentError, match="repository not found"):
        server.unregister_model_repository(str(tmp_path))
    with pytest.raises(UnavailableError, match="polling is disabled"):
        server.poll_model_repository()
    server.stop()


def test_a_poll_finds_new_models(tmp_path: Path) -> None:
    write_model(tmp_path, "first", ECHO_CONFIG, ECHO)
    server = tritonserver.Server(
        model_repository=[str(tmp_path)], model_control_mode=ModelControlMode.POLL
    ).start()
    write_model(tmp_path, "second", ECHO_CONFIG, ECHO)
    server.poll_model_repository()
    assert server.model("second").ready()
    with pytest.raises(UnavailableError, match="polling is enabled"):
        server.load("first")
    server.stop()


def test_metrics_are_those_of_the_server_and_of_the_program(server: tritonserver.Server) -> None:
    list(server.model("echo").infer(inputs={"bool_in": np.ones((1, 1), bool)}))
    family = tritonserver.MetricFamily(
        tritonserver.MetricKind.GAUGE, "my_gauge", "A gauge of the program"
    )
    metric = tritonserver.Metric(family, {"where": "here"})
    metric.set_value(3)
    metric.increment(1.5)
    assert (metric.value, metric.kind) == (4.5, tritonserver.MetricKind.GAUGE)
    text = server.metrics()
    assert 'nv_inference_request_success{model="echo",version="1"}' in text
    assert 'my_gauge{where="here"} 4.5' in text
    assert "nv_cpu_utilization" in text
    counter = tritonserver.MetricFamily(tritonserver.MetricKind.COUNTER, "my_counter", "")
    with pytest.raises(tritonserver.UnsupportedError):
        tritonserver.Metric(counter).set_value(1)
    with pytest.raises(AlreadyExistsError):
        tritonserver.MetricFamily(tritonserver.MetricKind.COUNTER, "nv_inference_count", "")
    with pytest.raises(InvalidArgumentError):
        tritonserver.MetricFamily(tritonserver.MetricKind.COUNTER, "my-counter", "")
    del metric, family
    gc.collect()
    assert "my_gauge" not in server.metrics()


def test_metrics_may_be_off(models: str) -> None:
    server = tritonserver.Server(
        model_repository=models, model_control_mode=EXPLICIT, metrics=False
    ).start()
    assert server.metrics() == ""
    server.stop()


def test_logs_are_written_as_the_options_say(models: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = tritonserver.Server(
        model_repository=models,
        model_control_mode=EXPLICIT,
        log_file=str(log),
        log_info=True,
        log_format=tritonserver.LogFormat.ISO8601,
    ).start()
    server.load("repeat")
    server.stop()
    assert "successfully loaded 'repeat'" in log.read_text(encoding="utf-8")


def test_private_names_of_nvidia_s_package_exist() -> None:
    assert tritonserver._api._response.InferenceResponse is tritonserver.InferenceResponse
    assert tritonserver._api._model.Model is tritonserver.Model
    assert tritonserver.TritonError.__module__ == "tritonserver"
    assert issubclass(tritonserver.NotFoundError, tritonserver.TritonError)
