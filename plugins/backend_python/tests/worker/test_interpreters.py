"""The worker in other interpreters than the server's, including the oldest supported one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .peer import Peer, fp32

Start = Callable[..., Peer]
EVERYTHING = """
async def execute(self, requests):
    async def one(request):
        sender = request.get_response_sender()
        value = request.inputs()[0].as_numpy()
        if value[0] < 0:
            raise ValueError("negative")
        print("value", value[0])
        called = await pb_utils.InferenceRequest(
            model_name="other", requested_output_names=["OUT"], inputs=[pb_utils.Tensor("IN", value)]
        ).async_exec()
        words = np.array([called.output_tensors()[0].as_numpy().tolist(), "ä".encode(), "x"], dtype=object)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", words)], parameters={"a": 1}))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    await asyncio.gather(*[one(request) for request in requests])

def is_ready(self):
    return True
"""


def candidates(version: str) -> Iterator[Path]:
    for folder in os.get_exec_path():
        found = shutil.which(f"python{version}", path=folder)
        if found:
            yield Path(found)
    yield from sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))


@pytest.fixture(params=["3.9", "3.13"])
def python(request: pytest.FixtureRequest) -> str:
    fits = f"import sys, numpy; sys.exit('%d.%d' % sys.version_info[:2] != '{request.param}')"
    for path in candidates(request.param):
        if subprocess.run([path, "-c", fits], capture_output=True, check=False).returncode == 0:
            return str(path)
    pytest.skip(f"needs Python {request.param} with numpy")


def test_a_worker_runs_in_another_interpreter(worker: Start, python: str) -> None:
    peer = worker(EVERYTHING, python=python, decoupled=True)
    peer.send_batches([[fp32("A", 1)], [fp32("A", 2)]], [[fp32("A", -1)]], ids=["x", "y", "z"])
    for _ in range(2):
        call = peer.call()
        peer.answer_call(call, [fp32("OUT", 10 * call.inputs["IN"][0])])
    answers = peer.until_responses(5)
    assert sorted(each.request for each in answers if each.final) == [0, 1, 2]
    assert {each.request for each in answers if each.parameters == {"a": 1}} == {0, 1}
    (failed,) = [each for each in answers if each.error is not None]
    assert failed.message.startswith(
        "Failed to process the request(s) for model 'm_0_0', message: ValueError: negative\n\nAt:\n"
    )
    assert peer.until_logged("value 2")["requests"] == ["x", "y"]
    assert peer.query("is_ready") == {"value": True}
    assert peer.stop() == 0


def test_large_tensors_are_sent_in_another_interpreter(worker: Start, python: str) -> None:
    peer = worker(
        """
        def execute(self, requests):
            return [
                pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each.inputs()[0].as_numpy() * 2)]) for each in requests
            ]
        """,
        python=python,
    )
    for _ in range(3):
        (answer,) = peer.execute([fp32("A", *range(50_000))])
        assert answer.outputs["OUT"][-1] == 99_998


def test_a_template_forks_in_another_interpreter(start_worker: Start, python: str) -> None:
    peer = start_worker(EVERYTHING, python=python, role="template", kind="template", name="m")
    if peer.started()["unforkable"]:
        pytest.skip("needs pidfd_open in this interpreter")
    fork, descriptors = peer.prepare_worker(decoupled=True)
    peer.query("fork", descriptors)
    fork.started()
    assert fork.query("is_ready") == {"value": True}
