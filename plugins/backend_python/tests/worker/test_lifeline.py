from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import pytest

from .peer import Peer, fp32

Start = Callable[..., Peer]
BUSY = {
    "idle": "",
    "asleep": "time.sleep(1000)",
    "computing": "while True: pass",
    "waiting for a lock": "lock = threading.Lock()\nlock.acquire()\nlock.acquire()",
}


def run(worker: Start, body: str, **options: object) -> Peer:
    lines = "\n".join(f"    {line}" for line in ["print('running')", *body.split("\n")])
    peer = worker(
        f"def execute(self, requests):\n{lines}\n    return [pb_utils.InferenceResponse()]\n",
        **options,
    )
    peer.send_batches([[fp32("A", 1)]])
    peer.until_logged("running")
    return peer


@pytest.mark.parametrize("doing", BUSY)
def test_the_worker_ends_with_the_server(worker: Start, doing: str) -> None:
    peer = run(worker, BUSY[doing])
    peer.close_socket()
    assert peer.ended() == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_the_worker_ends_while_the_model_holds_the_interpreter(worker: Start) -> None:
    ours, theirs = os.pipe()
    peer = run(worker, "sum(range(10 ** 15))", descriptors=[ours])
    os.close(theirs)
    assert peer.ended() == -signal.SIGKILL


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_many_workers_share_one_pipe(worker: Start) -> None:
    ours, theirs = os.pipe()
    peers = [run(worker, "sum(range(10 ** 15))", descriptors=[os.dup(ours)]) for _ in range(2)]
    os.close(ours)
    os.close(theirs)
    assert [peer.ended() for peer in peers] == [-signal.SIGKILL] * 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_an_already_closed_pipe_ends_the_worker(start_worker: Start) -> None:
    ours, theirs = os.pipe()
    os.close(theirs)
    assert (
        start_worker("def initialize(self, args): sum(range(10 ** 15))", descriptors=[ours]).ended()
        == 1
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_the_process_group_do_not_end_the_worker(
    worker: Start, number: signal.Signals
) -> None:
    peer = run(worker, f"os.kill(os.getpid(), {int(number)})")
    peer.process.send_signal(number)
    assert peer.until_responses(1)[0].error is None
    assert peer.execute([fp32("A", 1)])


def test_processes_that_a_model_forks_can_be_terminated(worker: Start) -> None:
    peer = run(
        worker,
        "import multiprocessing\n"
        "child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,))\n"
        "child.start()\n"
        "child.terminate()\n"
        "child.join()\n"
        "print('child', child.exitcode)",
    )
    assert peer.until_logged("child -15")


def test_programs_that_a_model_starts_can_be_interrupted(worker: Start) -> None:
    peer = run(
        worker,
        "import signal, subprocess\n"
        "program = subprocess.Popen([sys.executable, '-c', "
        "'import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)'], stdout=subprocess.PIPE)\n"
        "print(program.communicate()[0])",
    )
    assert peer.until_logged("b'True\\n'")


@pytest.mark.parametrize("method", ["fork", "spawn", "subprocess"])
def test_processes_that_a_model_starts_do_not_inherit_the_socket(
    worker: Start, method: str
) -> None:
    start = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])"
        if method == "subprocess"
        else f"import multiprocessing\nchild = multiprocessing.get_context('{method}').Process(target=time.sleep, args=(1000,))\nchild.start()"
    )
    peer = run(worker, f"{start}\nprint('child', child.pid)\nos.kill(os.getpid(), 9)")
    child = int(peer.until_logged("child")["message"].split()[1])
    try:
        with pytest.raises(EOFError):
            peer.step()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_forked_process_cannot_reach_the_server(worker: Start) -> None:
    peer = run(
        worker,
        "child = os.fork()\n"
        "if child == 0:\n"
        "    pb_utils.Logger.log_info('logged')\n"
        "    try:\n"
        "        pb_utils.is_model_ready('other')\n"
        "    except pb_utils.TritonModelException as error:\n"
        "        os.write(1, str(error).encode())\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)",
    )
    peer.until_responses(1)
    peer.stop()
    first, second = peer.printed().split("\n")
    assert first == "logged"
    assert second.endswith("The server cannot be reached from a process that the model started.")


def test_invalid_data_from_the_server_ends_the_worker(worker: Start) -> None:
    peer = worker("def execute(self, requests): ...")
    peer.send(99)
    assert peer.ended() == 1
    assert "unexpected frame of kind 99" in peer.printed()
