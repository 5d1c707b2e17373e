from __future__ import annotations

from tritonpy_ensemble.plan import make_plan

from .scripted_engine import DECOUPLED, ensemble, step

DIAMOND = ensemble(
    step("a", "X=IN", "L=left R=right")
    + step("b", "X=left", "Y=b")
    + step("c", "X=right", "Y=c")
    + step("d", "P=b Q=c", "Z=OUT"),
)
TWO_ENDS = ensemble(
    step("a", "X=IN", "Y=MID") + step("b", "X=MID", "Y=OUT") + step("c", "X=OTHER", "Y=THIRD"),
    inputs="IN OTHER",
    outputs="OUT MID THIRD",
)


def models(plan):
    return [each.model for each in plan.steps]


def test_a_step_waits_for_each_tensor_once_however_often_it_reads_it():
    plan = make_plan(ensemble(step("a", "X=IN Y=IN", "Z=OUT")))
    assert plan.missing == [1]
    assert plan.uses[plan.tensors.index("IN")] == 2
    assert [each.model for each in plan.waiting[plan.tensors.index("IN")]] == ["a"]


def test_the_steps_that_wait_for_a_tensor_are_known_by_it():
    plan = make_plan(DIAMOND)
    assert {
        name: [each.model for each in plan.waiting[number]]
        for number, name in enumerate(plan.tensors)
    } == {
        "IN": ["a"],
        "left": ["b"],
        "right": ["c"],
        "b": ["d"],
        "c": ["d"],
        "OUT": [],
    }
    assert plan.missing == [1, 1, 1, 2]


def test_a_step_has_a_higher_rank_than_those_before_it():
    assert [each.rank for each in make_plan(DIAMOND).steps] == [0, 1, 1, 2]


def test_the_order_of_the_configuration_does_not_matter_for_the_rank():
    turned = ensemble(step("b", "X=mid", "Y=OUT") + step("a", "X=IN", "Y=mid"))
    assert [(each.model, each.rank) for each in make_plan(turned).steps] == [("b", 1), ("a", 0)]


def test_steps_that_no_requested_output_needs_are_left_out():
    plan = make_plan(TWO_ENDS, {"OUT"})
    assert models(plan) == ["a", "b"]
    assert [name for name, _ in plan.inputs] == ["IN"]
    assert [output.name for output in plan.outputs] == ["OUT"]
    assert [each.place for each in make_plan(TWO_ENDS, {"THIRD"}).steps] == [2]
    assert models(make_plan(TWO_ENDS, {"MID"})) == ["a"]


def test_an_output_may_also_be_read_by_a_step():
    plan = make_plan(TWO_ENDS)
    number = plan.tensors.index("MID")
    assert plan.is_output[number]
    assert plan.uses[number] == 1


def test_only_mapped_and_needed_outputs_of_a_member_are_requested():
    steps = step("a", "X=IN", "Y=OUT Z=MORE")
    assert list(make_plan(ensemble(steps, outputs="OUT MORE")).steps[0].requested_outputs) == [
        "Y",
        "Z",
    ]
    assert list(
        make_plan(ensemble(steps, outputs="OUT MORE"), {"MORE"}).steps[0].requested_outputs
    ) == ["Z"]


def test_a_step_description_has_its_place_model_and_tensors():
    config = ensemble(step("a", "X=IN", "Y=mid") + step("b", "X=mid", "Y=OUT", version=3))
    assert [each.description for each in make_plan(config).steps] == [
        "step 0, model 'a': 'mid' from 'IN'",
        "step 1, model 'b' version 3: 'OUT' from 'mid'",
    ]


def test_a_step_uses_the_engine_s_model_name():
    config = ensemble(step("a", "X=IN", "Y=OUT"))
    config.ensemble_scheduling.step[0].model_namespace = "repository"
    assert models(make_plan(config)) == ["repository::a"]


def test_output_dimensions_are_those_before_the_reshape():
    config = ensemble(step("a", "X=IN", "Y=OUT"))
    config.output[0].reshape.shape.extend([2, 3])
    assert [output.dims for output in make_plan(config).outputs] == [(2, 3)]


def test_a_plan_is_decoupled_if_its_ensemble_is():
    assert not make_plan(DIAMOND).decoupled
    assert make_plan(ensemble(step("a", "X=IN", "Y=OUT"), more=DECOUPLED)).decoupled


def test_a_thousand_steps_need_no_deep_stack():
    chain = "".join(step("a", f"X=t{number}", f"Y=t{number + 1}") for number in range(1000))
    plan = make_plan(ensemble(chain, inputs="t0", outputs="t1000"))
    assert plan.steps[-1].rank == 999
