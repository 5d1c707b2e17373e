from __future__ import annotations

import json

import pytest

from tritonpy_worker.api.model_config import ModelConfig


def config(**fields):
    return ModelConfig(
        json.dumps({"name": "m", "max_batch_size": 0, "input": [], "output": [], **fields})
    )


def refusal(function, *arguments):
    with pytest.raises(ValueError) as caught:  # its text is compared
        function(*arguments)
    return str(caught.value)


def tensor(name="x", data_type="TYPE_FP32", dims=(-1,), **more):
    return {"name": name, "data_type": data_type, "dims": list(dims), **more}


def test_the_dictionary_is_the_configuration_itself():
    completed = config()
    completed.as_dict()["backend"] = "python"
    assert completed.as_dict()["backend"] == "python"
    assert completed._model_config is completed.as_dict()


def test_a_batch_size_is_set():
    completed = config()
    completed.set_max_batch_size(8)
    completed.set_max_batch_size(8)
    assert completed.as_dict()["max_batch_size"] == 8
    assert refusal(completed.set_max_batch_size, 4) == (
        "configuration specified max_batch_size 8, but in auto-complete-config function for model 'm' specified max_batch_size 4"
    )


def test_dynamic_batching_is_chosen():
    completed = config()
    completed.set_dynamic_batching()
    assert completed.as_dict()["dynamic_batching"] == {}


def test_existing_dynamic_batching_is_kept():
    completed = config(dynamic_batching={"max_queue_delay_microseconds": 5})
    completed.set_dynamic_batching()
    assert completed.as_dict()["dynamic_batching"] == {"max_queue_delay_microseconds": 5}


@pytest.mark.parametrize("other", ["sequence_batching", "ensemble_scheduling"])
def test_another_scheduler_is_not_replaced(other):
    assert refusal(config(**{other: {}}).set_dynamic_batching) == (
        f"Configuration specified scheduling_choice as '{other}', but auto-complete-config function for model 'm' "
        "tries to set scheduling_choice as 'dynamic_batching'"
    )


@pytest.mark.parametrize("kind", ["input", "output"])
def test_tensors_are_added(kind):
    completed = config()
    add = getattr(completed, f"add_{kind}")
    add(tensor("a"))
    add(tensor("b", dims=[]))
    assert completed.as_dict()[kind] == [tensor("a"), tensor("b", dims=[])]


@pytest.mark.parametrize("kind", ["input", "output"])
def test_unset_fields_are_completed_and_others_are_kept(kind):
    completed = config(
        **{kind: [{"name": "x", "data_type": "TYPE_INVALID", "dims": [], "is_shape_tensor": True}]}
    )
    getattr(completed, f"add_{kind}")(tensor(dims=[2, -1]))
    assert completed.as_dict()[kind] == [tensor(dims=[2, -1], is_shape_tensor=True)]


def test_an_input_may_be_optional():
    completed = config(input=[tensor("a", optional=True), tensor("b")])
    completed.add_input(tensor("a", optional=True))
    completed.add_input(tensor("b", optional=True))
    completed.add_input(tensor("a"))
    assert completed.as_dict()["input"] == [tensor("a", optional=True), tensor("b", optional=True)]
    assert refusal(completed.add_input, tensor("a", optional=False)) == (
        "model 'm', tensor 'a': the model expects optional False but the model configuration specifies optional True"
    )


@pytest.mark.parametrize("kind", ["input", "output"])
def test_contradictions_are_rejected(kind):
    completed = config(**{kind: [tensor()]})
    add = getattr(completed, f"add_{kind}")
    assert refusal(add, tensor(data_type="TYPE_INT32")) == (
        f"unable to load model 'm', configuration expects datatype TYPE_FP32 for {kind} 'x', model provides TYPE_INT32"
    )
    assert refusal(add, tensor(dims=[3, 4])) == (
        "model 'm', tensor 'x': the model expects dims [3, 4] but the model configuration specifies dims [-1]"
    )
    assert completed.as_dict()[kind] == [tensor()]


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        ("input", "'name', 'data_type', 'dims' and 'optional'"),
        ("output", "'name', 'data_type' and 'dims'"),
    ],
)
def test_other_properties_are_rejected(kind, allowed):
    assert refusal(getattr(config(), f"add_{kind}"), tensor(reshape={})) == (
        f"{kind} 'x' in auto-complete-config function for model 'm' contains property other than {allowed}."
    )


def test_an_output_is_never_optional():
    assert "property other than" in refusal(config().add_output, tensor(optional=True))


@pytest.mark.parametrize("kind", ["input", "output"])
def test_missing_properties_are_named(kind):
    add = getattr(config(), f"add_{kind}")
    where = "in auto-complete-config function for model 'm'"
    assert (
        refusal(add, {"data_type": "TYPE_FP32", "dims": [1]})
        == f"{kind} {where} is missing 'name' property."
    )
    assert (
        refusal(add, {"name": "x", "dims": [1]})
        == f"{kind} 'x' {where} is missing 'data_type' property."
    )
    assert (
        refusal(add, {"name": "x", "data_type": "TYPE_FP32"})
        == f"{kind} 'x' {where} is missing 'dims' property."
    )


@pytest.mark.parametrize("decoupled", [True, False])
def test_a_transaction_policy_can_be_set_once(decoupled):
    completed = config()
    completed.set_model_transaction_policy({"decoupled": decoupled})
    completed.set_model_transaction_policy({"decoupled": decoupled})
    assert completed.as_dict()["model_transaction_policy"] == {"decoupled": decoupled}
    assert refusal(completed.set_model_transaction_policy, {"decoupled": not decoupled}) == (
        "trying to change decoupled property in auto-complete-config for model 'm', "
        f"which is already set to '{decoupled}'."
    )


def test_a_transaction_policy_has_no_other_properties():
    completed = config()
    assert refusal(completed.set_model_transaction_policy, {"coupled": True}) == (
        "model transaction property in auto-complete-config function for model 'm' contains property other than 'decoupled'."
    )
    completed.set_model_transaction_policy({})
    assert completed.as_dict()["model_transaction_policy"] == {}
