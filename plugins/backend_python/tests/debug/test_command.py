"""`tritonpy debug` as a user sees it."""

from __future__ import annotations

import json
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tritonpy_backend_python
from tritonpy.testing import CommandContract
from tritonpy_backend_python.debug.command import DebugCommand

from .models import CONFIG, double, request_file
from .terminal import PROMPT, Terminal, run


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


def outputs(printed: str) -> list[Any]:
    """Return the data of each answer among the lines that were printed."""
    return [json.loads(line)["outputs"][0]["data"] for line in printed.splitlines() if line.startswith('{"model_name"')]


def test_a_request_from_a_file_is_answered(tmp_path: Path) -> None:
    folder = double(tmp_path)
    done = run(str(folder), "--request", request_file(tmp_path, 1, 2))
    assert (done.returncode, outputs(done.stdout)) == (0, [[2, 4]])
    assert "initialized in the main thread: True" in done.stdout
    assert "finalized in the main thread: True" in done.stdout


@pytest.mark.parametrize("path", ["double/1/model.py", "double"])
def test_the_model_may_be_named_by_its_file_and_from_anywhere(tmp_path: Path, path: str) -> None:
    double(tmp_path)
    assert run(str(tmp_path / path), "--request", request_file(tmp_path, 3)).returncode == 0


def test_a_model_that_raises_shows_its_traceback_alone(tmp_path: Path) -> None:
    folder = double(tmp_path)
    done = run(str(folder), "--request", request_file(tmp_path, 13))
    assert done.returncode == 1
    assert "Traceback (most recent call last):\n" in done.stderr
    assert "ValueError: thirteen cannot be doubled" in done.stderr
    assert "tritonpy" not in done.stderr
    (error,) = [json.loads(line)["error"] for line in done.stdout.splitlines() if line.startswith('{"error"')]
    assert error.startswith("Failed to process the request(s) for model 'double_0', message: ValueError: thirteen")


def test_a_breakpoint_stops_in_the_model(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 7, 8)) as terminal:
        stopped = terminal.until(PROMPT)
        assert "model.py" in stopped
        assert "answer()" in stopped
        terminal.send("p values.tolist()")
        assert "[7, 8]" in terminal.until(PROMPT)
        terminal.send("n")
        terminal.until(PROMPT)
        terminal.send("values = values + 1")
        terminal.until(PROMPT)
        terminal.send("c")
        assert terminal.ended() == 0
        assert outputs(terminal.text) == [[16, 18]]
        assert "finalized in the main thread: True" in terminal.text


def test_quitting_the_debugger_ends_the_command(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        port = live_port(terminal)
        answer = InBackground(port, 7)
        terminal.until(PROMPT)
        terminal.send("q")
        assert terminal.ended() == 0
        assert "finalized" in terminal.text
        assert "BdbQuit" in answer.result()["error"]


def test_post_mortem_looks_at_the_frames_that_raised(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 13, 14), "--pdb") as terminal:
        assert "ValueError: thirteen" in terminal.until(PROMPT)
        terminal.send("p values.tolist()")
        assert "[13, 14]" in terminal.until(PROMPT)
        terminal.send("up")
        assert "execute()" in terminal.until(PROMPT)
        terminal.send("q")
        assert terminal.ended() == 1


@pytest.mark.parametrize("where", ["import", "initialize", "auto_complete_config"])
def test_a_model_that_does_not_load_can_be_looked_at_too(tmp_path: Path, where: str) -> None:
    methods = {
        "import": "pass",
        "initialize": "def initialize(self, args):\n    size = 3\n    raise ValueError('not today')",
        "auto_complete_config": "@staticmethod\ndef auto_complete_config(config):\n    size = 3\n    raise ValueError('not today')",
    }[where]
    folder = double(tmp_path, methods=methods)
    if where == "import":
        file = folder / "1" / "model.py"
        file.write_text(f"size = 3\nraise ValueError('not today')\n{file.read_text()}")
    with Terminal(str(folder), "--request", request_file(tmp_path, 1), "--pdb") as terminal:
        assert "ValueError: not today" in terminal.until(PROMPT)
        terminal.send("p size + 1")
        assert "4" in terminal.until(PROMPT)
        terminal.send("q")
        assert terminal.ended() == 1
    done = run(str(folder), "--request", request_file(tmp_path, 1))
    assert (done.returncode, done.stderr.count("not today")) == (1, 2)  # in its line of the source, and as the message


def test_ctrl_c_interrupts_a_model_that_does_not_end(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 99)) as terminal:
        terminal.until("in a loop")
        terminal.interrupt()
        assert terminal.ended() == 1
        assert "finalized" in terminal.text


def test_ctrl_c_at_the_prompt_is_the_debuggers(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 7)) as terminal:
        terminal.until(PROMPT)
        terminal.interrupt()
        assert "--KeyboardInterrupt--" in terminal.until(PROMPT)
        terminal.send("c")
        assert terminal.ended() == 0
        assert outputs(terminal.text) == [[14]]


def live_port(terminal: Terminal) -> int:
    """Wait for the server and return its HTTP port."""
    terminal.until("http on 127.0.0.1:")
    return int(terminal.until(";").rstrip(";").partition(",")[0])


def post(port: int, *values: int, model: str = "double") -> Any:
    """Send a request over HTTP and return the body of the answer."""
    body = {"inputs": [{"name": "IN", "shape": [len(values)], "datatype": "INT64", "data": list(values)}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/{model}/infer",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - it is the URL above
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


class InBackground:
    """A request that is on its way."""

    def __init__(self, port: int, *values: int) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._answer = self._pool.submit(post, port, *values)

    def result(self) -> Any:
        """Wait for the answer."""
        try:
            return self._answer.result(60)
        finally:
            self._pool.shutdown()


def test_clients_are_served_one_after_the_other_and_an_exception_does_not_end_it(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0", "--grpc-port", "0") as terminal:
        port = live_port(terminal)
        assert post(port, 1, 2)["outputs"][0]["data"] == [2, 4]
        assert "thirteen" in post(port, 13)["error"]
        terminal.until("ValueError: thirteen cannot be doubled")
        stopped = InBackground(port, 7)
        terminal.until(PROMPT)
        waiting = InBackground(port, 3)
        terminal.send("c")
        assert stopped.result()["outputs"][0]["data"] == [14]
        assert waiting.result()["outputs"][0]["data"] == [6]
        terminal.interrupt()
        assert terminal.ended() == 0
        assert "finalized" in terminal.text


def test_ctrl_c_interrupts_a_request_and_ends(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        answer = InBackground(live_port(terminal), 99)
        terminal.until("in a loop")
        terminal.interrupt()
        assert terminal.ended() == 0
        assert "KeyboardInterrupt" in answer.result()["error"]


def test_a_termination_is_as_good_as_ctrl_c(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        live_port(terminal)
        terminal.kill(signal.SIGTERM)
        assert terminal.ended() == 0
        assert "finalized" in terminal.text


def test_ctrl_c_after_the_debugger_went_on_ends_it_too(tmp_path: Path) -> None:
    """The debugger keeps Ctrl-C for itself when it is left to continue: that must not outlive the request."""
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        answer = InBackground(live_port(terminal), 7)
        terminal.until(PROMPT)
        terminal.send("c")
        assert answer.result()["outputs"][0]["data"] == [14]
        terminal.interrupt()
        assert terminal.ended() == 0


DECOUPLED = CONFIG + "model_transaction_policy { decoupled: true }"
STREAM = """
async def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for number in request.inputs()[0].as_numpy():
            if number == 7:
                breakpoint()
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([number]))]))
        if number == 13:
            raise ValueError("in the background")
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def test_every_answer_of_a_decoupled_model_is_printed(tmp_path: Path) -> None:
    folder = double(tmp_path, methods=STREAM, config=DECOUPLED)
    done = run(str(folder), "--request", request_file(tmp_path, 1, 2, 3))
    assert (done.returncode, outputs(done.stdout)) == (0, [[1], [2], [3]])
    done = run(str(folder), "--request", request_file(tmp_path, 1, 13))
    assert (done.returncode, outputs(done.stdout)) == (1, [[1], [13]])
    assert "ValueError: in the background" in done.stderr


def test_a_breakpoint_in_a_coroutine_stops_in_the_main_thread(tmp_path: Path) -> None:
    folder = double(tmp_path, methods=STREAM, config=DECOUPLED)
    with Terminal(str(folder), "--request", request_file(tmp_path, 7)) as terminal:
        terminal.until(PROMPT)
        terminal.send("import threading")
        terminal.until(PROMPT)
        terminal.send("p threading.current_thread().name")
        assert "MainThread" in terminal.until(PROMPT)
        terminal.send("c")
        assert terminal.ended() == 0
        assert outputs(terminal.text) == [[7]]


CALLER = """
def execute(self, requests):
    made = pb_utils.InferenceRequest(model_name="double", inputs=requests[0].inputs(), requested_output_names=["OUT"])
    response = made.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return [response]
"""


def test_models_that_are_called_are_loaded_when_asked_for(tmp_path: Path) -> None:
    double(tmp_path)
    folder = double(tmp_path, "caller", CALLER)
    alone = run(str(folder), "--request", request_file(tmp_path, 4))
    assert alone.returncode == 1
    assert "'caller' called the model 'double', which is not loaded here: add --with double" in alone.stderr
    done = run(str(folder), "--request", request_file(tmp_path, 4), "--with", "double")
    assert (done.returncode, outputs(done.stdout)) == (0, [[8]])
    missing = run(str(folder), "--request", request_file(tmp_path, 4), "--with", "nobody")
    assert missing.returncode == 1
    assert "failed to load 'nobody'" in missing.stderr


def test_a_model_has_one_instance_here_and_no_limits(tmp_path: Path) -> None:
    more = (
        'instance_group { count: 3 kind: KIND_CPU } parameters { key: "isolation" value { string_value: "process" } } '
    )
    more += 'parameters { key: "EXECUTION_LIMIT_SECONDS" value { string_value: "1" } }'
    folder = double(tmp_path, config=CONFIG + more)
    done = run(str(folder), "--request", request_file(tmp_path, 1))
    assert (done.returncode, done.stdout.count("initialized")) == (0, 1)


def test_a_model_with_an_environment_of_its_own_is_refused_with_a_way_out(tmp_path: Path) -> None:
    folder = double(tmp_path)
    (folder / "requirements.txt").write_text("numpy\n")
    refused = run(str(folder), "--request", request_file(tmp_path, 1))
    assert refused.returncode == 1
    for part in ("environment of its own", str(folder / "requirements.txt"), "--this-interpreter", "debugpy"):
        assert part in refused.stderr
    assert run(str(folder), "--request", request_file(tmp_path, 1), "--this-interpreter").returncode == 0


def test_what_a_model_logs_is_shown(tmp_path: Path) -> None:
    folder = double(
        tmp_path,
        methods="def execute(self, requests): pb_utils.Logger.log_info('hello') or pb_utils.Logger.log_verbose('psst')",
    )
    plain, verbose = (run(str(folder), "--request", request_file(tmp_path, 1), *more) for more in ((), ("--verbose",)))
    assert "hello" in plain.stderr
    assert "psst" not in plain.stderr
    assert "psst" in verbose.stderr


BAD = [
    (["nowhere", "--request", "FILE"], "there is no model"),
    (["MODEL"], "where do requests come from?"),
    (["MODEL", "--request", "FILE", "--http-port", "0"], "where do requests come from?"),
    (["MODEL", "--request", "nowhere.json"], "cannot be read: No such file"),
    (["MODEL", "--request", "MODEL/config.pbtxt"], "is no inference request"),
    (["MODEL", "--http-port", "many"], "invalid int value: 'many'"),
    (["MODEL", "--prot", "1"], "unrecognized option '--prot'"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD, ids=lambda value: str(value)[:30])
def test_wrong_arguments_are_told_in_one_line(tmp_path: Path, arguments: list[str], text: str) -> None:
    known = {"MODEL": str(double(tmp_path)), "FILE": request_file(tmp_path, 1)}
    done = run(*[known.get(each, each.replace("MODEL", known["MODEL"])) for each in arguments])
    assert done.returncode == 1
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_only_models_with_code_are_debugged(tmp_path: Path) -> None:
    (tmp_path / "e" / "1").mkdir(parents=True)
    (tmp_path / "e" / "config.pbtxt").write_text('backend: "nobody_has_this"')
    done = run(str(tmp_path / "e"), "--request", request_file(tmp_path, 1))
    assert done.returncode == 1
    assert "nobody_has_this" in done.stderr


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(str(folder), "--http-port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "error: " in done.stderr


def test_a_request_that_the_server_refuses_is_told(tmp_path: Path) -> None:
    folder, file = double(tmp_path), tmp_path / "request.json"
    file.write_text('{"inputs": [{"name": "OTHER", "shape": [1], "datatype": "INT64", "data": [1]}]}')
    done = run(str(folder), "--request", str(file))
    assert done.returncode == 1
    assert "OTHER" in json.loads(done.stdout.splitlines()[1])["error"]
