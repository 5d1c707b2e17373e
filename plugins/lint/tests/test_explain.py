"""The command explain: fields, keys of server.yaml, codes and models."""

from __future__ import annotations

import numpy as np
import pytest

import tritonpy_lint
from tritonpy.cli import main
from tritonpy.plugins import make_plugin_manager
from tritonpy_lint.explain import NOTES, ExplainCommand, explain
from tritonpy_lint.server_keys import server_keys
from tritonpy_testing import CommandContract, InferInput, InProcessClient, running_server

BATCHED = (
    'backend: "python"\nmax_batch_size: 8\n'
    "dynamic_batching { max_queue_delay_microseconds: 500 }\n"
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 3, -1 ] }\n'
    'output { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }\n'
    "instance_group { count: 2 }\n"
)


class TestExplain(CommandContract):
    plugin = tritonpy_lint
    plugin_class = ExplainCommand
    name = "explain"
    arguments = ("D002",)


def text_of(topic: str, **options: bool) -> str:
    return "\n".join(explain(topic, **options)[1])


def test_a_field_has_meaning_default_example_and_related_topics() -> None:
    text = text_of("dynamic_batching.max_queue_delay_microseconds")
    assert text.startswith("dynamic_batching.max_queue_delay_microseconds: integer")
    assert "Default: 0" in text
    assert "Example: dynamic_batching {" in text
    assert "See also: D003" in text


def test_inner_fields_are_listed() -> None:
    assert "priority_levels" in text_of("dynamic_batching")
    assert "default_queue_policy.max_queue_size" in text_of("dynamic_batching", recursive=True)
    assert "KIND_MODEL" in text_of("instance_group.kind")


def test_a_key_of_server_yaml_names_its_reader() -> None:
    assert "tritonpy-frontend-http" in text_of("frontends.http.port")
    assert "Seconds between two polls" in text_of("control.interval_s")


def test_every_key_of_server_yaml_has_a_text() -> None:
    keys = list(server_keys(make_plugin_manager()))
    assert len(keys) > 100
    assert [key.path for key in keys if not key.text] == []


def test_every_code_is_explained() -> None:
    for code in [*make_plugin_manager().table("tritonpy_lint_rules"), *NOTES, "L001", "Y001"]:
        assert text_of(code).startswith(f"{code}: ")


def test_an_unknown_topic_has_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dynamic_baching"]) == 1
    assert "did you mean 'dynamic_batching'" in capsys.readouterr().err
    assert main(["explain", "F099"]) == 1
    assert main(["explain", "--nonsense"]) == 2


def test_a_model_is_explained_for_clients(repository) -> None:
    folder = repository.add("words", BATCHED)
    data, lines = explain(str(folder))
    text = "\n".join(lines)
    assert "IN  FP32  [1..8, 3, any]" in text
    assert data["sample"]["inputs"][0]["shape"] == [1, 3, 1]
    assert data["inputs"][0]["datatype"] == "FP32"
    assert data["outputs"][0]["datatype"] == "BYTES"
    assert "starts when 8 rows wait or 500 us after" in " ".join(text.split())
    assert "words_0_1 on CPU" in text
    assert "a list of requests" in " ".join(text.split())
    assert "more than 8 rows in one request" in text
    origins = {each["path"]: each["origin"] for each in data["settings"]}
    assert origins["max_batch_size"] == "config.pbtxt:2"
    assert origins["version_policy.latest.num_versions"] == "default"


ECHO = """import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        out = pb_utils.Tensor("OUT", np.array([[b"done"]], dtype=object))
        return [pb_utils.InferenceResponse([out]) for _ in requests]
"""


def test_the_sample_request_is_answered(repository) -> None:
    folder = repository.add("words", BATCHED, **{"1/model.py": ECHO})
    data, _ = explain(str(folder / "config.pbtxt"))
    no_ports = {"http": False, "grpc": False, "metrics": False}
    yaml = {"repositories": [{"url": str(repository.path)}], "frontends": no_ports}
    [tensor] = data["sample"]["inputs"]
    given = InferInput(tensor["name"], tensor["shape"], tensor["datatype"])
    array = np.array(tensor["data"], np.float32).reshape(tensor["shape"])
    with running_server(yaml) as server:
        result = InProcessClient(server).infer("words", [given.set_data_from_numpy(array)])
        assert result.as_numpy("OUT").tolist() == [[b"done"]]


def test_the_name_of_a_model_in_the_usual_folder_is_enough(repository, monkeypatch) -> None:
    repository.add("words", BATCHED)
    monkeypatch.chdir(repository.path.parent)
    assert text_of("words").startswith("Model words: backend python")


def test_a_model_with_errors_is_not_explained(repository, capsys) -> None:
    folder = repository.add("bad", "max_batch_size: x\n")
    assert main(["explain", str(folder)]) == 1
    assert "run tritonpy lint" in capsys.readouterr().err


def test_an_ensemble_shows_its_steps(repository) -> None:
    repository.add("member", BATCHED.replace("[ 3, -1 ]", "[ 4 ]"))
    folder = repository.add(
        "pipeline",
        'platform: "ensemble" max_batch_size: 8\n'
        'input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "B" data_type: TYPE_STRING dims: [ 1 ] }\n'
        'ensemble_scheduling { step { model_name: "member" model_version: -1\n'
        'input_map { key: "IN" value: "A" } output_map { key: "OUT" value: "B" } } }\n',
    )
    assert "Step 0 runs member: A -> B." in text_of(str(folder))
