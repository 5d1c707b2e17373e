"""What README says is what runs: its code blocks, on a copy of the project, in an environment that holds nothing before."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PARTS = ("core", "protos", "plugins", "examples")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "tests", ".*", "*.egg-info")


def block(*holding: str) -> str:
    """Return the one code block that holds all these texts."""
    found = [code for _, code in BLOCK.findall(README) if all(text in code for text in holding)]
    assert len(found) == 1, f"{len(found)} code blocks of README hold {holding}"
    return found[0]


def inline(start: str) -> str:
    """Return the command between backticks that starts like this."""
    found = re.findall(rf"`({re.escape(start)}[^`\n]*)`", README)
    assert len(found) == 1, f"README gives {found} as {start}"
    return str(found[0])


@dataclass
class Checkout:
    """A copy of the project where README's commands are run; its ports 8000 to 8002 are `ports` here."""

    folder: Path
    ports: dict[int, int]

    @property
    def environment(self) -> dict[str, str]:
        """What a user's shell has: nothing of the tests' own."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "TRITONPY", "VIRTUAL", "PIP_REQUIRE"))
        }
        return {
            **kept,
            "PATH": f"{self.folder / '.venv' / 'bin'}:{kept['PATH']}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COMPILE": "1",
        }

    def moved(self, text: str) -> str:
        """Return `text` with the ports of this checkout."""
        for ours, theirs in self.ports.items():
            text = re.sub(rf"\b{ours}\b", str(theirs), text)
        return text

    def shell(self, command: str) -> str:
        """Run a command of README and return what it prints; it must succeed."""
        done = subprocess.run(
            ["sh", "-ec", self.moved(command)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    @contextlib.contextmanager
    def serving(self, command: str) -> Iterator[None]:
        """Run a command that serves, until it is ready; it must end well on Ctrl-C's signal."""
        log = self.folder / f"serve-{self.ports[8000]}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["sh", "-ec", f"exec {self.moved(command)}"],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            try:
                _until(process, lambda: "ready: " in log.read_text(encoding="utf-8"), log)
                yield
                process.terminate()
                assert process.wait(60) == 0, log.read_text(encoding="utf-8")
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                    process.wait()


def _until(process: subprocess.Popen[bytes], condition: Callable[[], bool], log: Path) -> None:
    while not condition():
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(0.05)
            pytest.fail(f"it ended with {status} and printed:\n{log.read_text(encoding='utf-8')[-4000:]}")


@pytest.fixture(scope="module", autouse=True)
def curl() -> None:
    if shutil.which("curl") is None:
        pytest.skip("README asks with curl: install it")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, free_ports: Callable[[int], list[int]]) -> Checkout:
    """The project as it is after README's first command, up to the part that serves."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=LEFT_OUT)
    made = Checkout(folder, dict(zip((8000, 8001, 8002), free_ports(3), strict=True)))
    server_yaml = folder / "examples" / "server.yaml"
    server_yaml.write_text(made.moved(server_yaml.read_text(encoding="utf-8")), encoding="utf-8")
    set_up, _ = split_first_command()
    # the environment's python3 stands for a fresh machine's
    made.shell(set_up.replace("python3", sys.executable, 1))
    return made


@pytest.fixture(scope="module")
def elsewhere(checkout: Checkout, free_ports: Callable[[int], list[int]]) -> Checkout:
    """The same checkout with ports beside those of `examples_served`."""
    return Checkout(checkout.folder, dict(zip((8000, 8001, 8002), free_ports(3), strict=True)))


def split_first_command() -> tuple[str, str]:
    """Return what the first command does before it serves, and how it serves."""
    *set_up, serving = block("-m venv", "serve").strip().split(" && ")
    assert " serve " in serving
    return " && ".join(set_up), serving


@pytest.fixture(scope="module")
def examples_served(checkout: Checkout) -> Iterator[Checkout]:
    with checkout.serving(split_first_command()[1]):
        yield checkout


def test_the_environment_holds_the_server_with_both_protocols(checkout: Checkout) -> None:
    listed = checkout.shell(".venv/bin/tritonpy plugins")
    for name in ("http", "grpc", "metrics", "dynamic", "onnxruntime"):
        assert re.search(rf"\b{name}\b", listed), listed


def test_the_curl_call_gets_the_class_that_readme_names(examples_served: Checkout) -> None:
    promised = re.search(r"the answer's best class is `(\d)`", README)
    assert promised
    answer = json.loads(examples_served.shell(block("curl -s localhost", "examples/digit.json")))
    best = answer["outputs"][0]["data"][0].split(":")
    assert best[1] == promised[1]
    assert f"a\n{promised[1]} that the model" in README


def test_the_tritonclient_call_prints_what_readme_shows(examples_served: Checkout) -> None:
    examples_served.shell(inline(".venv/bin/pip install 'tritonclient"))
    snippet = block("import tritonclient.grpc")
    shown = re.search(r"print\(.*\)  # \[\[(b'[^']*')", snippet)
    assert shown
    (examples_served.folder / "ask.py").write_text(examples_served.moved(snippet), encoding="utf-8")
    assert examples_served.shell(".venv/bin/python ask.py").startswith(f"[[{shown[1]} ")


def test_tritonclient_http_works_alike(examples_served: Checkout) -> None:
    assert "`tritonclient.http` and port 8000 work alike" in README
    snippet = (
        block("import tritonclient.grpc").replace("tritonclient.grpc", "tritonclient.http").replace("8001", "8000")
    )
    (examples_served.folder / "ask_http.py").write_text(examples_served.moved(snippet), encoding="utf-8")
    examples_served.shell(inline(".venv/bin/pip install 'tritonclient"))
    assert ":2:two" in examples_served.shell(".venv/bin/python ask_http.py")


def test_a_backend_written_from_readme_alone_serves_over_both_protocols(elsewhere: Checkout) -> None:
    files = {
        "shout/pyproject.toml": block("[project.entry-points.tritonpy]"),
        "shout/tritonpy_backend_shout.py": block("class ShoutBackend"),
        "models/hello/config.pbtxt": block('backend: "shout"'),
    }
    for name, text in files.items():
        assert f"`{name}`" in README
        (elsewhere.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere.folder / name).write_text(text, encoding="utf-8")
    assert "`models/hello/1/`" in README
    (elsewhere.folder / "models" / "hello" / "1").mkdir()
    elsewhere.shell(f".venv/bin/{inline('pip install ./shout')}")
    ports = "--http-port=8000 --grpc-port=8001 --metrics-port=8002"
    with elsewhere.serving(f".venv/bin/tritonpy serve --model-repository models {ports}"):
        answer = json.loads(elsewhere.shell(block("curl", "hello/infer")))
        assert answer["outputs"][0]["data"] == ["HI!!", "THERE!!"]
        assert grpc_shout(f"127.0.0.1:{elsewhere.ports[8001]}") == [b"HI!!", b"THERE!!"]


def test_a_python_model_written_from_readme_alone_answers_and_is_debugged(elsewhere: Checkout) -> None:
    folder = elsewhere.folder / "python_models" / "reverse"
    assert "`models/reverse/1/`" in README
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(block("class TritonPythonModel"), encoding="utf-8")
    elsewhere.shell(block("pip install ./plugins/backend_python"))
    ask = block("curl", "reverse/infer")
    ports = "--http-port=8000 --grpc-port=8001 --metrics-port=8002"
    with elsewhere.serving(f".venv/bin/tritonpy serve --model-repository python_models {ports}"):
        assert json.loads(elsewhere.shell(ask))["outputs"][0]["data"] == ["desserts"]
        event = elsewhere.shell(block("curl", "reverse/generate_stream"))
        assert json.loads(event.removeprefix("data: "))["REVERSED"] == "desserts"
    (elsewhere.folder / "request.json").write_text(ask.partition(" -d '")[2].rstrip("'\n"), encoding="utf-8")
    debug = inline("tritonpy debug models/reverse").replace("--http-port 8000", "--request request.json")
    printed = elsewhere.shell(f".venv/bin/{debug.replace('models/', 'python_models/')}")
    assert "desserts" in printed


def grpc_shout(address: str) -> list[bytes]:
    import numpy as np
    import tritonclient.grpc

    text = tritonclient.grpc.InferInput("TEXT", [1, 2], "BYTES")
    text.set_data_from_numpy(np.array([[b"hi", b"there"]], object))
    with tritonclient.grpc.InferenceServerClient(address) as client:
        return list(client.infer("hello", [text]).as_numpy("LOUD")[0])


def test_the_examples_are_served_with_flags_alone(elsewhere: Checkout) -> None:
    ports = "--http-port=8000 --grpc-port=8001 --metrics-port=8002"
    with elsewhere.serving(f".venv/bin/tritonpy serve --model-repository examples/models {ports}"):
        assert json.loads(elsewhere.shell(block("curl -s localhost", "examples/digit.json")))["model_name"] == "digits"


def test_a_single_model_file_is_served(elsewhere: Checkout) -> None:
    ports = "--http-port=8000 --grpc-port=8001 --metrics-port=8002"
    with elsewhere.serving(f".venv/bin/tritonpy serve examples/models/add_sub/1/model.onnx {ports}"):
        index = json.loads(elsewhere.shell("curl -s -X POST localhost:8000/v2/repository/index"))
        assert [model["state"] for model in index] == ["READY"]


def test_a_server_with_keys_made_as_readme_says_asks_for_them(elsewhere: Checkout) -> None:
    elsewhere.shell(f"({block('tritonpy api-key new')}) 2> shown")
    key = re.findall(r"tpy_\S+", (elsewhere.folder / "shown").read_text(encoding="utf-8"))[-1]
    assert "api_keys: {file: keys.toml}" in block("jwks_url")
    (elsewhere.folder / "keys.yaml").write_text("auth: {api_keys: {file: keys.toml}}\n", encoding="utf-8")
    (elsewhere.folder / "models").mkdir(exist_ok=True)
    ports = "--http-port=8000 --grpc-port=8001 --metrics-port=8002"
    with elsewhere.serving(f".venv/bin/tritonpy serve --config keys.yaml --model-control-mode=explicit {ports}"):
        ask = "curl -s -o /dev/null -w '%{http_code}' localhost:8000/v2"
        assert elsewhere.shell(ask) == "401"
        assert elsewhere.shell(f"{ask} -H 'X-API-Key: {key}'") == "200"
