from __future__ import annotations

from tritonpy.config.needed_steps import needed_steps
from tritonpy_testing.parse import model_config

STEPS = model_config(
    """
    name: "e" platform: "ensemble"
    ensemble_scheduling { step [
      { model_name: "d" input_map { key: "X" value: "b" } input_map { key: "Y" value: "c" } output_map { key: "Z" value: "OUT" } },
      { model_name: "b" input_map { key: "X" value: "IN" } output_map { key: "Z" value: "b" } output_map { key: "W" value: "MORE" } },
      { model_name: "c" input_map { key: "X" value: "IN" } output_map { key: "Z" value: "c" } },
      { model_name: "f" input_map { key: "X" value: "b" } output_map { key: "Z" value: "LAST" } }
    ] }
    """
).ensemble_scheduling.step


def test_a_step_is_needed_directly_or_indirectly():
    assert needed_steps(STEPS, ["OUT"]) == [0, 1, 2]
    assert needed_steps(STEPS, ["MORE"]) == [1]
    assert needed_steps(STEPS, ["LAST", "MORE"]) == [1, 3]


def test_unknown_tensors_need_no_step():
    assert needed_steps(STEPS, ["IN", "unknown"]) == []


def test_a_cycle_ends():
    circle = model_config(
        'name: "e" platform: "ensemble" ensemble_scheduling { step { model_name: "a" '
        'input_map { key: "X" value: "t" } output_map { key: "Y" value: "t" } } }'
    ).ensemble_scheduling.step
    assert needed_steps(circle, ["t"]) == [0]
