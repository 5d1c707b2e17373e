"""The backend class, with instances in the server's process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tritonpy_backend_python
from tritonpy import Batch, InferRequest, Tensor
from tritonpy_backend_python.backend import PythonBackend
from tritonpy_testing import BackendContract, BackendHarness, model_config

from ..serving import model_py
from .modes import isolation

LOCAL = isolation("thread")
ADD = """
backend: "python" max_batch_size: 8
input { name: "A" data_type: TYPE_FP32 dims: 4 } input { name: "B" data_type: TYPE_FP32 dims: 4 }
output { name: "SUM" data_type: TYPE_FP32 dims: 4 } output { name: "DIFFERENCE" data_type: TYPE_FP32 dims: 4 }
"""
ADDING = """
def execute(self, requests):
    return [self.answer(*(tensor.as_numpy() for tensor in request.inputs())) for request in requests]

def answer(self, a, b):
    if (a == 4711).any():
        raise ValueError("no good number")
    return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", a + b), pb_utils.Tensor("DIFFERENCE", a - b)])
"""


class TestPythonBackend(BackendContract):
    plugin_class = PythonBackend
    plugin = tritonpy_backend_python
    name = "python"
    config = ADD + LOCAL

    def write_model(self, version_folder: Path) -> None:
        (version_folder / "model.py").write_text(model_py(ADDING))

    def bad_inputs(self, harness: BackendHarness, random: Random) -> Mapping[str, Any]:
        return {name: np.full((1, 4), 4711, np.float32) for name in "AB"}


def harness(folder: Path, methods: str, config: str) -> BackendHarness:
    (folder / "1").mkdir()
    (folder / "1" / "model.py").write_text(model_py(methods))
    return BackendHarness(PythonBackend, model_config(config + LOCAL), folder)


def test_rescheduled_requests_are_executed_again(tmp_path: Path) -> None:
    methods = """
def execute(self, requests):
    for request in requests:
        state = request.inputs()[0].as_numpy()[0]
        self.seen = getattr(self, "seen", 0) + 1
        sender = request.get_response_sender()
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([self.seen]))]))
        if self.seen < state:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        else:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    config = """
    backend: "python" model_transaction_policy { decoupled: true }
    input { name: "IN" data_type: TYPE_INT64 dims: 1 } output { name: "OUT" data_type: TYPE_INT64 dims: 1 }
    """
    with harness(tmp_path, methods, config) as loaded:
        (answers,) = loaded.execute(loaded.request({"IN": np.array([3])}))
        assert [answer.outputs[0].numpy().tolist() for answer in answers if not answer.empty] == [
            [1],
            [2],
            [3],
        ]


def test_tensors_of_a_scheduler_are_additional_inputs(tmp_path: Path) -> None:
    methods = """
def execute(self, requests):
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", self.values_of(request))]) for request in requests]

def values_of(self, request):
    given = {tensor.name(): tensor.as_numpy().ravel().tolist() for tensor in request.inputs()}
    return np.array([repr(given).encode()], object)
"""
    config = """
    backend: "python" max_batch_size: 4
    input { name: "IN" data_type: TYPE_INT64 dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }
    """
    with harness(tmp_path, methods, config) as loaded:
        requests = [loaded.request({"IN": np.array([[number]])}) for number in range(2)]
        batch = Batch(
            requests,
            slots=[requests[0], None, requests[1]],
            controls=[Tensor.from_numpy("START", np.array([[1], [0], [0]], np.int32))],
            states=[Tensor.from_numpy("STATE", np.array([[b"a"], [b"b"], [b"c"]], np.object_))],
        )
        _execute(loaded, batch)
        values_of = [
            answer.outputs[0].strings()[0].decode() for (answer,) in loaded.recorder.wait(*requests)
        ]
        assert values_of == [
            "{'IN': [0], 'START': [1], 'STATE': [b'a']}",
            "{'IN': [1], 'START': [0], 'STATE': [b'c']}",
        ]


def _execute(loaded: BackendHarness, batch: Batch) -> None:
    for request in batch.requests:
        request.batch = batch
    loaded._thread.submit(loaded.instance.execute, batch).result()


DOUBLE = """
def execute(self, requests):
    inputs = [request.inputs()[0].as_numpy() for request in requests]
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", self.computed(array))]) for array in inputs]
"""
NUMBERS = """
backend: "python"
input { name: "IN" data_type: TYPE_FP32 dims: -1 } output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
"""


def test_inputs_are_the_clients_memory_and_cannot_be_written_to(tmp_path: Path) -> None:
    methods = (
        DOUBLE
        + """
def computed(self, array):
    if array[0] == 1:
        array *= 2
    return np.array([array.__array_interface__["data"][0] % 1000], np.float32)
"""
    )
    with harness(tmp_path, methods, NUMBERS) as loaded:
        for writeable in (True, False):
            values = np.zeros(3, np.float32)
            values.flags.writeable = writeable
            ((answer,),) = loaded.execute(loaded.request({"IN": values}))
            assert answer.outputs[0].numpy()[0] == values.__array_interface__["data"][0] % 1000
            assert values.flags.writeable is writeable
        ((answer,),) = loaded.execute(loaded.request({"IN": np.ones(3, np.float32)}))
        assert "ValueError: output array is read-only" in str(answer.error)


def test_dlpack_exports_a_copy(tmp_path: Path) -> None:
    methods = (
        DOUBLE
        + """
def execute(self, requests):
    given = requests[0].inputs()[0]
    lent = np.from_dlpack(pb_utils.Tensor.from_dlpack("IN", given.to_dlpack()).as_numpy())
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", lent)])]
"""
    )
    with harness(tmp_path, methods, NUMBERS) as loaded:
        values = np.ones(3, np.float32)
        ((answer,),) = loaded.execute(loaded.request({"IN": values}))
        assert answer.outputs[0].numpy().tolist() == [1, 1, 1]
        assert not np.shares_memory(answer.outputs[0].numpy(), values)


def test_a_model_may_reuse_its_buffers(tmp_path: Path) -> None:
    methods = (
        DOUBLE
        + """
def computed(self, array):
    self.buffer = getattr(self, "buffer", np.empty(3, np.float32))
    np.multiply(array, 2, out=self.buffer)
    return self.buffer
"""
    )
    with harness(tmp_path, methods, NUMBERS) as loaded:
        ((first,),) = loaded.execute(loaded.request({"IN": np.ones(3, np.float32)}))
        ((second,),) = loaded.execute(loaded.request({"IN": np.full(3, 2, np.float32)}))
        assert (first.outputs[0].numpy().tolist(), second.outputs[0].numpy().tolist()) == (
            [2, 2, 2],
            [4, 4, 4],
        )


@pytest.mark.parametrize(("made", "copied"), [("array * 2", False), ("self.keep(array * 2)", True)])
def test_outputs_are_copied_only_if_the_model_could_change_them(
    tmp_path: Path, made: str, copied: bool
) -> None:
    methods = (
        DOUBLE
        + f"""
def computed(self, array):
    made = {made}
    self.where = made.__array_interface__["data"][0]
    return made

def keep(self, made):
    self.kept = made
    return made
"""
    )
    with harness(tmp_path, methods, NUMBERS) as loaded:
        ((answer,),) = loaded.execute(loaded.request({"IN": np.ones(3, np.float32)}))
        data = answer.outputs[0].numpy()
        assert data.tolist() == [2, 2, 2]
        model = loaded.instance._local._object
        assert (data.__array_interface__["data"][0] != model.where) is copied
        assert data.flags.writeable is copied


def test_an_input_that_becomes_an_output_is_not_copied(tmp_path: Path) -> None:
    methods = DOUBLE + "\ndef computed(self, array): return array\n"
    with harness(tmp_path, methods, NUMBERS) as loaded:
        values = np.ones(3, np.float32)
        ((answer,),) = loaded.execute(loaded.request({"IN": values}))
        assert np.shares_memory(answer.outputs[0].numpy(), values)


class DlpackArray:
    """The data of a tensor that is not a numpy array."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_tensors_of_other_frameworks_become_arrays(tmp_path: Path) -> None:
    methods = DOUBLE + "\ndef computed(self, array): return array * 2\n"
    with harness(tmp_path, methods, NUMBERS) as loaded:
        tensor = Tensor("IN", "FP32", (2,), DlpackArray(np.array([1, 2], np.float32)))
        request = InferRequest("m", {"IN": tensor}, loaded.recorder.sink, 1, owner=loaded.recorder)
        ((answer,),) = loaded.execute(request)
        assert answer.outputs[0].numpy().tolist() == [2, 4]


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_model_may_define_its_readiness(tmp_path: Path, ready: str) -> None:
    methods = DOUBLE + f"\ndef is_ready(self): return {ready}\n"
    with harness(tmp_path, methods, NUMBERS) as loaded:
        assert loaded.instance.is_ready() is (ready == "True")


def test_a_failed_readiness_check_is_an_error(tmp_path: Path) -> None:
    methods = DOUBLE + "\ndef is_ready(self): raise ValueError('cold')\n"
    with (
        harness(tmp_path, methods, NUMBERS) as loaded,
        pytest.raises(Exception, match=r"ValueError: cold\n\nAt:\n  .*is_ready\n$"),
    ):
        loaded.instance.is_ready()
