"""`tritonpy debug` as a user sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tritonpy_backend_python
from tritonpy_backend_python.debug.command import DebugCommand
from tritonpy_testing import CommandContract

from .models import CONFIG, DECOUPLED, STREAM, double, outputs, request_file
from .terminal import run


class TestDebugCommand(CommandContract):
    plugin_class = DebugCommand
    plugin = tritonpy_backend_python
    name = "debug"

    @pytest.fixture(autouse=True)
    def written(self, tmp_path: Path) -> Iterator[None]:
        folder, file = double(tmp_path), request_file(tmp_path, 1)
        type(self).arguments = [str(folder), "--request", file]
        yield
        type(self).arguments: ClassVar[Any] = ()


def test_a_request_from_a_file_is_executed(tmp_path: Path) -> None:
    folder = double(tmp_path)
    done = run(str(folder), "--request", request_file(tmp_path, 1, 2))
    assert (done.returncode, outputs(done.stdout)) == (0, [[2, 4]])
    assert "initialized in the main thread: True" in done.stdout
    assert "finalized in the main thread: True" in done.stdout


@pytest.mark.parametrize("path", ["double/1/model.py", "double"])
def test_the_model_can_be_named_by_its_file_or_folder(tmp_path: Path, path: str) -> None:
    double(tmp_path)
    assert run(str(tmp_path / path), "--request", request_file(tmp_path, 3)).returncode == 0


def test_only_the_models_part_of_a_traceback_is_printed(tmp_path: Path) -> None:
    folder = double(tmp_path)
    done = run(str(folder), "--request", request_file(tmp_path, 13))
    assert done.returncode == 1
    assert "Traceback (most recent call last):\n" in done.stderr
    assert "ValueError: thirteen cannot be doubled" in done.stderr
    assert "tritonpy" not in done.stderr
    (error,) = [
        json.loads(line)["error"]
        for line in done.stdout.splitlines()
        if line.startswith('{"error"')
    ]
    assert error.startswith(
        "Failed to process the request(s) for model 'double_0', message: ValueError: thirteen"
    )


def test_every_response_of_a_decoupled_model_is_printed(tmp_path: Path) -> None:
    folder = double(tmp_path, methods=STREAM, config=DECOUPLED)
    done = run(str(folder), "--request", request_file(tmp_path, 1, 2, 3))
    assert (done.returncode, outputs(done.stdout)) == (0, [[1], [2], [3]])
    done = run(str(folder), "--request", request_file(tmp_path, 1, 13))
    assert (done.returncode, outputs(done.stdout)) == (1, [[1], [13]])
    assert "ValueError: in the background" in done.stderr


CALLER = """


def execute(self, requests):
    made = pb_utils.InferenceRequest(model_name="double", inputs=requests[0].inputs(), requested_output_names=["OUT"])
    response = made.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return [response]
"""


def test_called_models_are_loaded_with_an_option(tmp_path: Path) -> None:
    double(tmp_path)
    folder = double(tmp_path, "caller", CALLER)
    alone = run(str(folder), "--request", request_file(tmp_path, 4))
    assert alone.returncode == 1
    assert (
        "'caller' called the model 'double', which is not loaded here: add --with double"
        in alone.stderr
    )
    done = run(str(folder), "--request", request_file(tmp_path, 4), "--with", "double")
    assert (done.returncode, outputs(done.stdout)) == (0, [[8]])
    missing = run(str(folder), "--request", request_file(tmp_path, 4), "--with", "missing")
    assert missing.returncode == 1
    assert "failed to load 'missing'" in missing.stderr


ASYNC_CALLER = """
async def execute(self, requests):
    inputs = requests[0].inputs()
    calls = [
        pb_utils.InferenceRequest(model_name="double", inputs=inputs, requested_output_names=["OUT"]).async_exec()
        for _ in range(2)
    ]
    found = [response.output_tensors()[0].as_numpy() for response in await asyncio.gather(*calls)]
    assert threading.current_thread() is threading.main_thread()
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", sum(found))])]
"""


def test_coroutines_await_other_models_in_the_main_thread(tmp_path: Path) -> None:
    double(tmp_path)
    folder = double(tmp_path, "caller", ASYNC_CALLER)
    file = folder / "1" / "model.py"
    file.write_text(f"import asyncio\n{file.read_text()}")
    done = run(str(folder), "--request", request_file(tmp_path, 4), "--with", "double")
    assert (done.returncode, outputs(done.stdout)) == (0, [[16]]), done.stderr


def test_a_recursive_call_is_rejected(tmp_path: Path) -> None:
    folder = double(
        tmp_path, methods=CALLER, config=CONFIG + "instance_group { count: 2 kind: KIND_CPU }"
    )
    done = run(str(folder), "--request", request_file(tmp_path, 4))
    assert done.returncode == 1
    assert "the call would deadlock" in done.stderr


def test_a_debugged_model_has_one_instance_and_no_limits(tmp_path: Path) -> None:
    more = 'instance_group { count: 3 kind: KIND_CPU } parameters { key: "isolation" value { string_value: "process" } } '
    more += 'parameters { key: "EXECUTION_LIMIT_SECONDS" value { string_value: "1" } }'
    folder = double(tmp_path, config=CONFIG + more)
    done = run(str(folder), "--request", request_file(tmp_path, 1))
    assert (done.returncode, done.stdout.count("initialized")) == (0, 1)


def test_a_model_with_its_own_environment_is_rejected_with_a_remedy(tmp_path: Path) -> None:
    folder = double(tmp_path)
    (folder / "requirements.txt").write_text("numpy\n")
    refused = run(str(folder), "--request", request_file(tmp_path, 1))
    assert refused.returncode == 1
    for part in (
        "its own environment",
        str(folder / "requirements.txt"),
        "--this-interpreter",
        "debugpy",
    ):
        assert part in refused.stderr
    assert (
        run(str(folder), "--request", request_file(tmp_path, 1), "--this-interpreter").returncode
        == 0
    )


def test_the_log_of_a_model_is_printed(tmp_path: Path) -> None:
    folder = double(
        tmp_path,
        methods="def execute(self, requests): pb_utils.Logger.log_info('hello') or pb_utils.Logger.log_verbose('psst')",
    )
    plain, verbose = (
        run(str(folder), "--request", request_file(tmp_path, 1), *more)
        for more in ((), ("--verbose",))
    )
    assert "hello" in plain.stderr
    assert "psst" not in plain.stderr
    assert "psst" in verbose.stderr


BAD = [
    (["nowhere", "--request", "FILE"], "does not exist"),
    (["MODEL"], "as the source of requests"),
    (["MODEL", "--request", "FILE", "--http-port", "0"], "as the source of requests"),
    (["MODEL", "--request", "nowhere.json"], "cannot be read: No such file"),
    (["MODEL", "--request", "MODEL/config.pbtxt"], "is not an inference request"),
    (["MODEL", "--http-port", "many"], "invalid int value: 'many'"),
    (["MODEL", "--prot", "1"], "unrecognized option '--prot'"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD, ids=lambda value: str(value)[:30])
def test_invalid_arguments_are_errors_without_traceback(
    tmp_path: Path, arguments: list[str], text: str
) -> None:
    known = {"MODEL": str(double(tmp_path)), "FILE": request_file(tmp_path, 1)}
    done = run(*[known.get(each, each.replace("MODEL", known["MODEL"])) for each in arguments])
    assert done.returncode == 1
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_of_another_backend_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "e" / "1").mkdir(parents=True)
    (tmp_path / "e" / "config.pbtxt").write_text('backend: "missing_backend"')
    done = run(str(tmp_path / "e"), "--request", request_file(tmp_path, 1))
    assert done.returncode == 1
    assert "missing_backend" in done.stderr


def test_a_rejected_request_prints_an_error(tmp_path: Path) -> None:
    folder, file = double(tmp_path), tmp_path / "request.json"
    file.write_text(
        '{"inputs": [{"name": "OTHER", "shape": [1], "datatype": "INT64", "data": [1]}]}'
    )
    done = run(str(folder), "--request", str(file))
    assert done.returncode == 1
    assert "OTHER" in json.loads(done.stdout.splitlines()[1])["error"]
