from __future__ import annotations

import pytest

from tritonpy_analyzer.output_check import OutputCheck, relative_difference
from tritonpy_analyzer.servers import InvalidCandidate, ServerSlot
from tritonpy_analyzer.space import Limits, make_space
from tritonpy_config.tuning import DEFAULT_SETTING, SearchDimension
from tritonpy_load_generator.options import BadUsage, LoadOptions
from tritonpy_load_generator.target.metadata import ModelDescription, TensorDescription

MODEL = ModelDescription(
    "m", "", (TensorDescription("IN", "FP32", (2,)),), (TensorDescription("OUT", "FP32", (2,)),), 8
)
OFFERED = {"m": [SearchDimension("precision", (DEFAULT_SETTING, "bf16"), changes_output=True)]}
SPACE = make_space({"m": {"instance_group": [{"count": 1}]}}, OFFERED, Limits())
LOW = SPACE.present.with_setting("m", "precision", "bf16")


def slot_with(outputs, monkeypatch):
    """Return a server that responds with these outputs in order, and the list of its requests."""
    slot, requests = ServerSlot(LoadOptions(model="m", url="host:1")), []

    def infer(model, request):
        requests.append(request)
        return {"outputs": [{"name": "OUT", "data": outputs.pop(0)}]}

    monkeypatch.setattr(slot.control, "infer", infer)
    return slot, requests


def checked(slot, bound=0.01):
    return OutputCheck(slot, MODEL, frozenset({("m", "precision")}), SPACE.present, bound)


def test_outputs_within_the_bound_are_accepted_and_compared_once(monkeypatch):
    slot, requests = slot_with([[1.0, 2.0], [1.0, 2.01]], monkeypatch)
    check = checked(slot)
    for candidate in (SPACE.present, SPACE.present, LOW, LOW):
        check.check(slot, candidate)
    assert len(requests) == 2
    assert requests[0] == requests[1]
    assert requests[0]["inputs"][0]["shape"] == [1, 2]


def test_outputs_that_differ_too_much_are_refused_with_the_difference(monkeypatch):
    slot, _ = slot_with([[1.0, 2.0], [1.0, 2.1]], monkeypatch)
    check = checked(slot)
    for _ in range(2):
        with pytest.raises(InvalidCandidate, match=r"'OUT' differs by 5.00%, the limit is 1.00%"):
            check.check(slot, LOW)


def test_grpc_is_refused():
    slot = ServerSlot(LoadOptions(model="m", url="host:1", protocol="grpc"))
    with pytest.raises(BadUsage, match="use -i http"):
        checked(slot)
    slot.close()


@pytest.mark.parametrize(
    ("expected", "found", "difference"),
    [
        ([1.0, -4.0], [1.0, -4.0], 0.0),
        ([1.0, -4.0], [1.2, -4.0], 0.05),
        ([0.0], [0.0], 0.0),
        ([], [], 0.0),
        ([1.0], [1.0, 2.0], float("inf")),
        (["a"], ["a"], 0.0),
        (["a"], ["b"], float("inf")),
    ],
)
def test_a_difference_is_a_share_of_the_greatest_element(expected, found, difference):
    assert relative_difference(expected, found) == pytest.approx(difference)
