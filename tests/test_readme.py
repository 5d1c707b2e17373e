"""The README and the user pages run as shown, in an empty environment on a copy of the project."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pages import PORTS, Block, Checkout, assert_prints, blocks

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PARTS = ("core", "protos", "libs", "plugins", "examples", "tools")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "tests", ".*", "*.egg-info")
PAGES = (
    "docs/getting_started.md",
    "docs/writing_plugins.md",
    "docs/logs_and_traces.md",
    "docs/in_process.md",
    "docs/testing.md",
    "docs/access.md",
    "docs/streams.md",
    "docs/c_backends.md",
    "plugins/traffic/README.md",
)
TEST_COMMAND = "```sh\npython3 tests/run.py\n```\n"
FreePorts = Callable[[int], list[int]]


def page_text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def curl() -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl, with which the pages ask")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, free_ports: FreePorts) -> Checkout:
    """The project after the README's first command, up to the part that serves."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=LEFT_OUT)
    made = Checkout(folder, dict(zip(PORTS, free_ports(3), strict=True)))
    server_yaml = folder / "examples" / "server.yaml"
    server_yaml.write_text(made.moved(server_yaml.read_text(encoding="utf-8")), encoding="utf-8")
    *set_up, serve = next(block.code for block in blocks(README)).split(" && ")
    assert " serve " in serve
    made.shell(" && ".join(set_up).replace("python3", sys.executable, 1))
    return made


@pytest.fixture
def folder(base: Checkout, tmp_path: Path, free_ports: FreePorts) -> Checkout:
    """A folder for one page, with the checkout and its environment."""
    for part in (*PARTS, ".venv"):
        if part != "examples":
            (tmp_path / part).symlink_to(base.folder / part)
    shutil.copytree(base.folder / "examples", tmp_path / "examples")
    return Checkout(tmp_path, dict(zip(PORTS, free_ports(3), strict=True)))


def test_every_snippet_of_the_readme_runs_with_the_printed_output(base: Checkout) -> None:
    assert README.count(TEST_COMMAND) == 1
    base.run_page(README.replace(TEST_COMMAND, ""))  # that command runs this test
    listed = base.shell(".venv/bin/tritonpy plugins")
    for name in ("http", "grpc", "metrics", "dynamic", "onnxruntime", "python", "api_keys"):
        assert re.search(rf"\b{name}\b", listed), listed


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_of_a_page_runs_with_the_printed_output(folder: Checkout, page: str) -> None:
    folder.run_page(page_text(page))


def test_the_performance_figure_of_the_readme_is_in_the_results() -> None:
    figure = re.search(
        r"answers ([\d.]+) times .* \(([\d,]+) against\s+([\d,]+)\)\.\s+A request costs (\d+)\s+instead of\s+(\d+) µs",
        README,
    )
    interval = re.search(r"interval ([\d.]+) to ([\d.]+)\.", README)
    assert figure
    assert interval
    rows = [
        line
        for line in page_text("bench/RESULTS.md").splitlines()
        if "dynamic batching, 32 in flight, h2load |" in line
    ]
    ratio, ours, theirs, our_cpu, their_cpu = figure.groups()
    row = f"| {ours} /s | {theirs} /s | {ratio} [{interval[1]}, {interval[2]}] met |"
    assert any(row in line and line.endswith(f"| {our_cpu} / {their_cpu} |") for line in rows), row


def test_the_install_size_of_the_readme_is_in_the_results() -> None:
    size = re.search(r"ONNX Runtime takes (\d+ MiB) of disk and (\d+ MiB) of memory", README)
    assert size
    assert re.search(
        rf"\| onnxruntime \| {size[1]} \| [^|]* \| [^|]* \| {size[2]} \|",
        page_text("bench/RESULTS.md"),
    )


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 120


def test_installing_another_plugin_builds_only_that_plugin(folder: Checkout) -> None:
    folder.shell("python3 tools/install.py python")
    assert "building" not in folder.shell("python3 tools/install.py python")
    assert "building tritonpy-queueing-fair\n" in folder.shell("python3 tools/install.py fair")
    log = folder.shell("pip install ./plugins/auth_jwt")
    assert "Building wheel for tritonpy-auth-jwt" in log
    assert "Building wheel for tritonpy-frontend-http" not in log


def test_errors_for_missing_plugins_include_an_install_command(folder: Checkout) -> None:
    hint = re.search(
        r"not installed: (.*)$", folder.shell("tritonpy seal 2>&1 || true"), re.MULTILINE
    )
    assert hint
    folder.shell(hint[1])
    assert "usage: tritonpy seal" in folder.shell("tritonpy seal --help")


def test_the_grpc_client_example_works_over_http(folder: Checkout) -> None:
    page = blocks(page_text("docs/getting_started.md"))
    [example] = [block for block in page if "import tritonclient.grpc" in block.code]
    output = page[page.index(example) + 1]
    folder.shell("pip install 'tritonclient[http]'")
    with folder.serving("tritonpy serve --model-repository examples/models"):
        folder.write(
            "ask.py",
            example.code.replace("tritonclient.grpc", "tritonclient.http").replace("8001", "8000"),
        )
        assert_prints(folder.shell("python ask.py"), output)


def test_the_debugging_example_works(folder: Checkout) -> None:
    page = blocks(page_text("docs/getting_started.md"))
    [model] = [block for block in page if "class TritonPythonModel" in block.code]
    [example] = [block.code for block in page if "reverse/infer" in block.code]
    folder.shell("python3 tools/install.py python")
    folder.write(model.file, model.code)
    folder.write("request.json", example.partition(" -d '")[2].rstrip("'\n"))
    assert "desserts" in folder.shell("tritonpy debug python_models/reverse --request request.json")


def test_the_backend_example_serves_over_grpc(folder: Checkout) -> None:
    import numpy as np
    import tritonclient.grpc

    for block in blocks(page_text("docs/writing_plugins.md")):
        if block.file:
            folder.write(block.file, block.code)
    folder.shell("pip install --no-deps ./shout && mkdir -p models/hello/1")
    text = tritonclient.grpc.InferInput("TEXT", [1, 2], "BYTES")
    text.set_data_from_numpy(np.array([[b"hi", b"there"]], object))
    with (
        folder.serving("tritonpy serve --model-repository models"),
        tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{folder.ports[8001]}") as client,
    ):
        assert list(client.infer("hello", [text]).as_numpy("LOUD")[0]) == [b"HI!!", b"THERE!!"]


def test_a_block_with_other_output_fails() -> None:
    with pytest.raises(AssertionError):
        assert_prints("5\n", Block("text", "4\n"))
    with pytest.raises(AssertionError):
        assert_prints('{"a": 1}', Block("json", '{"a": 2}'))
