from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.shared_arrays import place, view

from .peer import Peer

Start = Callable[..., Peer]
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "strided": np.arange(20, dtype=np.uint8)[::3],
    "scalar": np.array(7, np.int64),
    "nothing": np.empty((0, 5)),
    "truth": np.array([True, False]),
    "complex": np.array([1 + 2j]),
    "text": np.array(["a", "bc"]),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "other order": np.array([1, 2], ">i4"),
}


def test_arrays_survive_a_round_trip() -> None:
    arrays = view(*place(ARRAYS))
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(arrays[name], array)


def test_arrays_may_be_yielded() -> None:
    arrays = view(*place((str(index), np.full(3, index)) for index in range(3)))
    assert [array.tolist() for array in arrays.values()] == [[0] * 3, [1] * 3, [2] * 3]


def test_there_may_be_no_arrays() -> None:
    assert view(*place({})) == {}


def test_shared_arrays_are_read_only() -> None:
    descriptor, layout = place({"a": np.zeros(3)})
    with pytest.raises(OSError, match="Operation not permitted"):
        os.pwrite(descriptor, b"x", 0)
    array = view(descriptor, layout)["a"]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        array.flags.writeable = True


def test_shared_arrays_are_aligned() -> None:
    arrays = view(*place({str(size): np.zeros(size, np.uint8) for size in range(5)}))
    assert {
        array.__array_interface__["data"][0] % 64 for array in arrays.values() if array.size
    } == {0}


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (
            {"a": np.array([object()])},
            "Shared array 'a' has elements of type object, which cannot be shared.",
        ),
        ({"a": np.zeros(1, [("x", "i4")])}, "which cannot be shared"),
        (
            {"a": [1, 2]},
            "Shared arrays must be numpy arrays with names, found list with the name 'a'.",
        ),
        (
            {1: np.zeros(1)},
            "Shared arrays must be numpy arrays with names, found ndarray with the name 1.",
        ),
    ],
)
def test_arrays_that_cannot_be_shared_are_rejected(bad: Any, text: str) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(TritonModelException) as caught:
        place(bad)
    assert text in str(caught.value)
    assert set(os.listdir("/proc/self/fd")) <= before  # other descriptors may be closed meanwhile


SHARES = """
def initialize(self, args):
    self.arrays = pb_utils.shared_arrays("weights", self.build)
    print(self.arrays["w"].tolist(), self.arrays["w"].flags.writeable)

def build(self):
    print("building")
    return {"w": np.arange(3)}

def execute(self, requests): ...
"""


def test_the_first_instance_builds_and_the_others_map(start_worker: Start) -> None:
    first, second = start_worker(SHARES), start_worker(SHARES)
    question = first.frame(first.QUERY)
    assert question.extras == {"verb": "share", "arguments": {"key": "weights"}}
    first.send(first.QUERY_RESULT, question.words, extras={"value": None})
    notification = first.frame(first.NOTIFY) if first.until_logged("building") else None
    assert notification.extras["verb"] == "shared"
    assert notification.extras["arguments"]["key"] == "weights"
    layout, descriptors = (
        notification.extras["arguments"]["layout"],
        notification.take_descriptors(),
    )
    question = second.frame(second.QUERY)
    second.send(
        second.QUERY_RESULT,
        question.words,
        extras={"value": {"layout": layout}},
        descriptors=descriptors,
    )
    for peer in (first, second):
        peer.started()
        assert peer.logs[-1]["message"] == "[0, 1, 2] False"
    assert [log["message"] for log in second.logs] == ["[0, 1, 2] False"]


def test_after_a_failed_build_the_next_instance_builds(start_worker: Start) -> None:
    peer = start_worker(
        SHARES.replace('return {"w": np.arange(3)}', "raise ValueError('no weights')")
    )
    question = peer.frame(peer.QUERY)
    peer.send(peer.QUERY_RESULT, question.words, extras={"value": None})
    peer.until_logged("building")
    notification = peer.frame(peer.NOTIFY)
    assert notification.extras == {"verb": "shared", "arguments": {"key": "weights"}}
    assert notification.descriptors == ()
    assert peer.failed().startswith("ValueError: no weights\n")


def test_errors_of_the_server_are_exceptions(start_worker: Start) -> None:
    peer = start_worker(SHARES)
    question = peer.frame(peer.QUERY)
    peer.send(peer.QUERY_RESULT, question.words, extras={"error": [5, "not here"]})
    assert peer.failed().startswith("TritonModelException: not here\n")
