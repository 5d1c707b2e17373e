from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .peer import Peer, fp32

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open")
Start = Callable[..., Peer]
REPORT_PID = """
def execute(self, requests):
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([os.getpid()]))]) for _ in requests]
"""


@pytest.fixture
def template(start_worker: Start) -> Start:
    return lambda *args, **options: start_worker(
        *args, role="template", kind="template", name="m", **options
    )


def value(peer: Peer, verb: str, descriptors: tuple[int, ...] = (), **arguments: Any) -> Any:
    return peer.query(verb, descriptors, **arguments)["value"]


def make_worker(peer: Peer, verb: str = "fork", **options: Any) -> tuple[Peer, Any]:
    """Have a worker make_worker; return it, and what the template replied."""
    worker, descriptors = peer.prepare_worker(**options)
    reply = value(peer, verb, descriptors)
    worker.started()
    return worker, reply


def test_a_template_imports_the_model_without_creating_it(template: Start) -> None:
    peer = template("print('imported')\ndef __init__(self): print('make_worker')\n")
    assert peer.started()["unforkable"] == ""
    assert [log["message"] for log in peer.logs] == ["imported"]


def test_a_failed_import_is_reported(template: Start) -> None:
    peer = template("1 / 0")
    text = peer.failed()
    assert text.startswith("ZeroDivisionError: division by zero\n\nAt:\n  ")
    assert "tritonpy" not in text
    assert peer.ended() == 0


def test_forks_are_independent_workers(template: Start) -> None:
    peer = template(REPORT_PID)
    peer.started()
    forks = [make_worker(peer) for _ in range(3)]
    pids = [fork.execute([fp32("A", 1)])[0].outputs["OUT"][0] for fork, _ in forks]
    assert pids == [reply["pid"] for _, reply in forks]
    assert len({*pids, peer.process.pid}) == 4
    for fork, _ in forks:
        fork.send(fork.STOP)
        fork.frame(fork.STOPPED)
    assert exits(peer, 3) == dict.fromkeys(pids, 0)
    for fork, _ in forks:
        fork.wait_for(fork._socket)
        assert fork._socket.recv(1) == b"", "another process still holds the worker's end"


def exits(peer: Peer, count: int) -> dict[int, int]:
    while len(peer.exited) < count:
        peer.step()
    return peer.exited


def test_the_end_of_a_fork_is_reported(template: Start) -> None:
    peer = template(REPORT_PID)
    peer.started()
    _, reply = make_worker(peer)
    os.kill(reply["pid"], signal.SIGKILL)
    assert exits(peer, 1) == {reply["pid"]: -signal.SIGKILL}


def test_a_fork_outlives_its_template(template: Start) -> None:
    peer = template(REPORT_PID)
    peer.started()
    fork, reply = make_worker(peer)
    os.killpg(peer.process.pid, signal.SIGKILL)
    peer.process.wait()
    assert fork.execute([fp32("A", 1)])[0].outputs["OUT"][0] == reply["pid"]


def test_a_template_becomes_the_only_worker(template: Start) -> None:
    ours, theirs = os.pipe()
    peer = template(REPORT_PID, descriptors=[ours])
    peer.started()
    worker, _ = make_worker(peer, "become")
    os.close(theirs)
    peer.close_socket()
    assert worker.execute([fp32("A", 1)])[0].outputs["OUT"][0] == peer.process.pid
    worker.send(worker.STOP)
    worker.frame(worker.STOPPED)
    assert peer.ended() == 0


def test_a_template_stops(template: Start) -> None:
    peer = template(REPORT_PID)
    peer.started()
    peer.send(peer.STOP)
    assert peer.ended() == 0


def test_a_template_ends_with_the_server(template: Start) -> None:
    peer = template(REPORT_PID)
    peer.started()
    peer.close_socket()
    assert peer.ended() == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_a_template_ends_with_the_server_while_it_imports(template: Start) -> None:
    ours, theirs = os.pipe()
    peer = template("print('importing')\nsum(range(10 ** 15))", descriptors=[ours])
    peer.until_logged("importing")
    os.close(theirs)
    assert peer.ended() == -signal.SIGKILL


def test_imports_start_no_thread_in_a_fork(template: Start) -> None:
    peer = template(
        f"threading.Thread(target=threading.Event().wait, daemon=True).start()\n{REPORT_PID}"
    )
    assert peer.started()["unforkable"] == "importing it started 1 threads"


def test_an_open_gpu_cannot_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritonpy_worker import fork_safety

    monkeypatch.setattr(os, "readlink", lambda _: "/dev/nvidia0")
    assert fork_safety.fork_obstacle(fork_safety.threads()) == "importing it opened a GPU"


def test_forks_share_the_log_handlers_of_the_import(template: Start) -> None:
    peer = template(
        """
import logging
logging.basicConfig(format="%(message)s")
def execute(self, requests):
    import logging
    logging.warning("from a fork")
    return [pb_utils.InferenceResponse() for _ in requests]
"""
    )
    peer.started()
    fork, _ = make_worker(peer)
    fork.execute([fp32("A", 1)], ids=["x"])
    assert fork.logs == [{"level": "INFO", "message": "from a fork", "requests": ["x"]}]


@pytest.mark.parametrize(
    ("seed", "equal"),
    [
        ("", {"random": False, "numpy": False}),
        ("import random\nrandom.seed(1)\nnp.random.seed(1)\n", {"random": True, "numpy": True}),
    ],
)
def test_forks_have_equal_random_numbers_only_if_the_model_seeds(
    template: Start, seed: str, equal: dict
) -> None:
    peer = template(
        f"""{seed}
def initialize(self, args):
    import json, random
    print(json.dumps({{"random": random.random(), "numpy": np.random.random()}}))
"""
    )
    peer.started()
    one, other = (json.loads(make_worker(peer)[0].logs[0]["message"]) for _ in range(2))
    assert {name: one[name] == other[name] for name in one} == equal


CONFIG = {"name": "m", "max_batch_size": 0, "input": [], "output": []}


def test_the_configuration_is_completed_by_the_models_class(template: Start) -> None:
    peer = template(
        """
@staticmethod
def auto_complete_config(config):
    print("completing", end="")
    pb_utils.Logger.log_info("logged")
    config.add_input({"name": "A", "data_type": "TYPE_FP32", "dims": [1]})
    config.set_max_batch_size(8)
    return config
"""
    )
    peer.started()
    completed = json.loads(value(peer, "auto_complete", name="m", config=json.dumps(CONFIG)))
    assert completed["max_batch_size"] == 8
    assert [each["name"] for each in completed["input"]] == ["A"]
    peer.send(peer.STOP)
    assert sorted(peer.printed().split()) == ["completing", "logged"]


def test_a_configuration_without_completion_is_unchanged(template: Start) -> None:
    peer = template(REPORT_PID)
    peer.started()
    assert json.loads(value(peer, "auto_complete", name="m", config=json.dumps(CONFIG))) == CONFIG


@pytest.mark.parametrize(
    ("body", "beginning"),
    [
        (
            "return 3",
            "auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.",
        ),
        ("raise ValueError('no')", "ValueError: no\n\nAt:\n  "),
        ("sys.exit(4)", "SystemExit: 4\n\nAt:\n  "),
        ("os._exit(4)", "auto_complete_config ended its process with status 4"),
        ("os.kill(os.getpid(), 9)", "auto_complete_config ended its process with status -9"),
    ],
)
def test_a_failed_completion_is_reported(template: Start, body: str, beginning: str) -> None:
    peer = template(f"@staticmethod\ndef auto_complete_config(config):\n    {body}\n")
    peer.started()
    for _ in range(2):
        code, text = peer.query("auto_complete", name="m", config=json.dumps(CONFIG))["error"]
        assert code == 1
        assert text.startswith(beginning)
        assert "tritonpy" not in text


@pytest.mark.parametrize(
    ("thread", "seen"),
    [("", "0"), ("threading.Thread(target=threading.Event().wait, daemon=True).start()\n", "1")],
)
def test_the_completion_does_not_affect_instances_if_it_can_be_forked(
    template: Start, thread: str, seen: str
) -> None:
    peer = template(
        thread
        + """
count = 0
@classmethod
def auto_complete_config(cls, config):
    cls.count += 1
    return config
def initialize(self, args):
    print(self.count)
"""
    )
    peer.started()
    value(peer, "auto_complete", name="m", config=json.dumps(CONFIG))
    worker, _ = make_worker(peer, "become")
    assert worker.logs[0]["message"] == seen


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_a_completion_ends_with_its_template(template: Start) -> None:
    peer = template(
        "@staticmethod\ndef auto_complete_config(config):\n    os.write(1, str(os.getpid()).encode())\n    sum(range(10 ** 15))\n"
    )
    peer.started()
    peer.send(
        peer.QUERY,
        [1],
        extras={"verb": "auto_complete", "arguments": {"name": "m", "config": json.dumps(CONFIG)}},
    )
    pid = int(peer.next_printed())
    completion = os.pidfd_open(pid)
    peer.process.kill()
    peer.wait_for(completion)
