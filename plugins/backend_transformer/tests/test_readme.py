"""The examples of the README work."""

from __future__ import annotations

import http.client
import json
import re
import shlex
from contextlib import closing
from pathlib import Path

from tritonpy_backend_transformer.fields import fields_of
from tritonpy_backend_transformer.model_folder import read_folder
from tritonpy_backend_transformer.sampling import PARAMETER_NAMES
from tritonpy_backend_transformer.settings import _PARSERS as PARAMETERS
from tritonpy_testing import running_server

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return found


def test_the_example_can_be_trained_and_served(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python"), "README.md", "exec"), {})  # noqa: S102
    commands = [shlex.split(line) for line in README.splitlines() if line.startswith("    curl ")]
    serve = next(
        shlex.split(line) for line in README.splitlines() if line.startswith("    tritonpy serve ")
    )
    assert serve == ["tritonpy", "serve", "--model-repository", "models"]
    config = {
        "repositories": [{"url": "models"}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
    }
    bodies = []
    with running_server(config) as server:
        for command in commands:
            path = next(word for word in command if "/v2/" in word).partition("/")[2]
            with closing(http.client.HTTPConnection(server.http, timeout=30)) as connection:
                connection.request("POST", f"/{path}", command[command.index("-d") + 1])
                bodies.append(connection.getresponse().read().decode())
    assert json.loads(bodies[0]) == json.loads(block("json"))
    responses = [
        json.loads(line.removeprefix("data: ")) for line in bodies[1].split("\n\n") if line
    ]
    assert [response["text_output"] for response in responses] == [" sat", " on", " a", " mat"]


def test_all_inputs_outputs_and_parameters_are_documented(decoder, encoder, translator):
    names = {*PARAMETERS, "GPU_DEVICE_IDS", "isolation"} | (
        PARAMETER_NAMES - {"best_of", "use_beam_search"}
    )
    for path, _ in (decoder, encoder, translator):
        fields = fields_of(read_folder(path))
        names |= {*fields.inputs, *fields.outputs}
    names -= {
        "min_new_tokens",
        "random_seed",
        "end_id",
        "beam_size",
        "num_beams",
        "num_return_sequences",
    }
    names -= {"sampling_topk", "sampling_topp", "sampling_temperature"}
    assert {name for name in names if f"`{name}`" not in README} == set()
