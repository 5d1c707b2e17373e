"""The command against real servers: own ones, and a running one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

import tritonpy_analyzer
from tritonpy.cli import main
from tritonpy_analyzer import AnalysisOptions, analyze
from tritonpy_analyzer.command import AnalyzeCommand
from tritonpy_analyzer.study import read_study
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.description import open_control
from tritonpy_testing import CommandContract, ModelRepository, running_server

MODEL = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(each, "IN").as_numpy() for each in requests]
        time.sleep(0.005 + 0.0002 * sum(len(each) for each in inputs))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each)]) for each in inputs]
"""
CONFIG = """
# Sleeps 5 ms per batch.
backend: "python"
max_batch_size: 8
input [{ name: "IN" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "OUT" data_type: TYPE_FP32 dims: [4] }]
instance_group [{ count: 1 kind: KIND_CPU }]
"""

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [{ name: "X" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "Y" data_type: TYPE_FP32 dims: [4] }]
ensemble_scheduling { step [{ model_name: "sleepy" model_version: -1
  input_map { key: "IN" value: "X" } output_map { key: "OUT" value: "Y" } }] }
"""

CALLER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "IN")
            call = pb_utils.InferenceRequest(
                model_name="sleepy", requested_output_names=["OUT"], inputs=[tensor]
            )
            response = call.exec()
            if response.has_error():
                raise pb_utils.TritonModelException(response.error().message())
            responses.append(response)
        return responses
"""


class TestAnalyzeCommand(CommandContract):
    plugin = tritonpy_analyzer
    plugin_class = AnalyzeCommand
    name = "analyze"
    status = 2  # no model was given


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models" / "sleepy"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(MODEL, encoding="utf-8")
    (folder / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    return tmp_path / "models"


@pytest.fixture
def live(models):
    config = {
        "repositories": [{"url": str(ModelRepository(models).path)}],
        "frontends": {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": False},
        "control": {"mode": "explicit", "load": ["sleepy"]},
    }
    with running_server(config) as server:
        yield server


def config_of(url):
    control = open_control(LoadOptions(model="sleepy", url=url))
    try:
        return control.config("sleepy", "")
    finally:
        control.close()


def test_batching_is_found_and_written_with_all_reports(models, tmp_path, capsys):
    status = main([
        "analyze", "sleepy", "--model-repository", str(models), "--slo", "p99<60ms",
        "--minutes", "0.9", "--max-instances", "2", "--study", str(tmp_path / "study"),
        "--ignore-load", "--json", "-o", str(tmp_path / "report.html"), "--csv", str(tmp_path / "result.csv"),
        "--write",
    ])  # fmt: skip
    printed = capsys.readouterr()
    assert status == 0, printed.err
    study = json.loads(printed.out)
    assert study["status"] == "found"
    best = {name: value for _, name, value in study["recommended"]["settings"]}
    assert best["dynamic_batching"]
    assert study["recommended"]["gain"]["low"] > 1
    assert study["seconds"] < 0.9 * 60 * 1.1
    assert "+dynamic_batching {" in printed.err
    changed = (models / "sleepy" / "config.pbtxt").read_text(encoding="utf-8")
    assert "# Sleeps 5 ms per batch." in changed
    assert "dynamic_batching {" in changed
    assert "<svg" in (tmp_path / "report.html").read_text() or "charts" in (
        tmp_path / "report.html"
    ).read_text(encoding="utf-8")
    assert main(["analyze", "--report", str(tmp_path / "study")]) == 0
    assert "use batch" in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_running_server_is_restored(live, tmp_path, protocol):
    before = config_of(live.http)
    study = analyze(
        AnalysisOptions(
            models=("sleepy",), url=getattr(live, protocol), protocol=protocol, slo=("p99<60ms",), minutes=0.25,
            max_instances=2, folder=str(tmp_path / "study"), yes_disturb=True, ignore_load=True,
        )
    )  # fmt: skip
    assert study.windows > 5
    assert len(study.candidates) >= 2
    assert config_of(live.http) == before


@pytest.mark.parametrize("delay_s", [0.9, 3.3])
def test_a_running_server_is_restored_after_a_signal(live, tmp_path, delay_s):
    before = config_of(live.http)
    process = subprocess.Popen(
        [
            sys.executable, "-m", "tritonpy", "analyze", "sleepy", "-u", live.http,
            "--minutes", "1", "--study", str(tmp_path / "study"), "--yes-disturb", "--ignore-load",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    windows = tmp_path / "study" / "windows.jsonl"
    while not windows.exists() or not windows.read_bytes():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    time.sleep(delay_s)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in {0, 1}, errors
    assert config_of(live.http) == before


def test_a_killed_analysis_resumes_and_leaves_no_server(models, tmp_path):
    folder = tmp_path / "study"
    command = [
        sys.executable, "-m", "tritonpy", "analyze", "sleepy", "--model-repository", str(models),
        "--slo", "p99<60ms", "--minutes", "0.3", "--max-instances", "2", "--study", str(folder), "--ignore-load",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    windows = folder / "windows.jsonl"
    while not windows.exists() or windows.read_bytes().count(b"\n") < 6:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    others = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    recorded = windows.read_bytes().splitlines()[:6]
    assert psutil.wait_procs(others, timeout=30)[1] == []
    subprocess.run([*command, "--resume"], check=True, capture_output=True, timeout=120)
    assert windows.read_bytes().splitlines()[:6] == recorded
    study = read_study(folder)
    assert not any("new study" in note for note in study.notes)
    assert study.windows == len(windows.read_bytes().splitlines())
    assert study.seconds < 0.3 * 60 * 1.1


def test_the_members_of_an_ensemble_are_searched(models, tmp_path, capsys):
    chain = models / "chain"
    (chain / "1").mkdir(parents=True)
    (chain / "config.pbtxt").write_text(ENSEMBLE, encoding="utf-8")
    status = main([
        "analyze", "chain", "--model-repository", str(models), "--slo", "p99<60ms",
        "--minutes", "0.3", "--max-instances", "2", "--study", str(tmp_path / "study"),
        "--ignore-load",
    ])  # fmt: skip
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert "candidates" in printed.err
    study = read_study(tmp_path / "study")
    assert {model for model, _, _ in study.present.settings} == {"sleepy"}
    assert len(study.candidates) >= 2
    assert study.present.shares["sleepy"] > 0


def test_the_models_that_a_model_calls_are_found(models, tmp_path, capsys):
    caller = models / "caller"
    (caller / "1").mkdir(parents=True)
    (caller / "1" / "model.py").write_text(CALLER, encoding="utf-8")
    (caller / "config.pbtxt").write_text(CONFIG.replace("count: 1", "count: 2"), encoding="utf-8")
    status = main([
        "analyze", "caller", "--model-repository", str(models), "--slo", "p99<80ms",
        "--minutes", "0.25", "--max-instances", "2", "--study", str(tmp_path / "study"), "--ignore-load",
    ])  # fmt: skip
    assert status == 0, capsys.readouterr().err
    study = read_study(tmp_path / "study")
    assert {model for model, _, _ in study.present.settings} == {"caller", "sleepy"}


def test_several_models_share_the_requests(models, tmp_path, capsys):
    shutil.copytree(models / "sleepy", models / "other")
    status = main([
        "analyze", "sleepy", "other", "--model-repository", str(models), "--mix", "sleepy=3,other=1",
        "--slo", "p99<80ms", "--minutes", "0.3", "--max-instances", "2",
        "--study", str(tmp_path / "study"), "--ignore-load",
    ])  # fmt: skip
    assert status == 0, capsys.readouterr().err
    study = read_study(tmp_path / "study")
    assert {model for model, _, _ in study.present.settings} == {"sleepy", "other"}
    assert study.present.shares["sleepy"] > study.present.shares["other"]


def test_a_server_with_other_clients_is_refused(live, tmp_path, capsys):
    stop = threading.Event()

    def use():
        with subprocess.Popen(
            [sys.executable, "-m", "tritonpy", "bench", "sleepy", "-u", live.http,
             "--request-count", "100000", "--no-live"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            stop.wait()
            process.kill()

    thread = threading.Thread(target=use)
    thread.start()
    try:
        control = open_control(LoadOptions(model="sleepy", url=live.http))
        while not int(control.statistics("sleepy", "")[0]["inference_count"]):
            time.sleep(0.05)
        control.close()
        command = ["analyze", "sleepy", "-u", live.http, "--study", str(tmp_path / "study")]
        assert main(command) == 2
    finally:
        stop.set()
        thread.join()
    assert "add --yes-disturb" in capsys.readouterr().err


def test_a_server_that_loads_no_models_on_request_is_refused(models, tmp_path, capsys):
    config = {
        "repositories": [{"url": str(models)}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
    }
    with running_server(config) as server:
        command = ["analyze", "sleepy", "-u", server.http, "--study", str(tmp_path / "study")]
        assert main(command) == 2
    assert "--model-control-mode=explicit" in capsys.readouterr().err


def test_a_server_that_cannot_start_is_explained_with_its_log(models, tmp_path, capsys):
    status = main([
        "analyze", "sleepy", "--model-repository", str(models), "--study", str(tmp_path / "study"),
        "--server-flag=--no-such-flag",
    ])  # fmt: skip
    assert status == 1
    assert "the server did not start" in capsys.readouterr().err


def test_a_model_whose_requests_fail_is_explained(models, tmp_path, capsys):
    path = models / "sleepy" / "1" / "model.py"
    path.write_text(MODEL.replace("time.sleep", "raise ValueError('no luck') #"), encoding="utf-8")
    status = main([
        "analyze", "sleepy", "--model-repository", str(models), "--minutes", "0.3",
        "--slo", "p99<60ms", "--study", str(tmp_path / "study"), "--ignore-load",
    ])  # fmt: skip
    assert status == 1
    printed = capsys.readouterr().out
    assert "no configuration keeps the constraints: requests fail:" in printed
    assert "no luck" in printed


def test_a_study_that_cannot_be_written_is_explained(models, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    command = ["analyze", "sleepy", "--model-repository", str(models)]
    assert main([*command, "--study", str(tmp_path / "file" / "study")]) == 1
    assert "use --study FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no model was given"),
        (["m", "--slo", "p99"], "is not a constraint"),
        (["m", "--rate", "1", "--concurrency", "2"], "exclude each other"),
        (["m", "--scenario", "server"], "needs a latency limit"),
        (["m", "--scenario", "offline", "--rate", "3"], "remove --rate"),
        (["m", "--minutes", "0"], "--minutes must be greater than 0"),
        (["m", "--mix", "x=3"], "names a model that is not analyzed"),
        (["m", "--mix", "x"], "expected NAME=VALUE"),
        (["m", "--max-instances", "0"], "--max-instances must be at least 1"),
        (["m", "--model-repository", "missing"], "there is no folder 'missing'"),
    ],
)
def test_a_wrong_command_line_is_explained(tmp_path, monkeypatch, capsys, arguments, message):
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["analyze", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not os.listdir(tmp_path / "models")
