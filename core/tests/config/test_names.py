from __future__ import annotations

from tritonpy.config.names import unknown_name


def test_a_near_name_is_suggested() -> None:
    assert unknown_name("field", "max_batchsize", ["name", "max_batch_size"]) == (
        "unknown field 'max_batchsize'; did you mean 'max_batch_size'?"
    )


def test_case_does_not_matter_for_nearness() -> None:
    assert unknown_name("value", "kind_cpu", ["KIND_AUTO", "KIND_CPU"]).endswith("did you mean 'KIND_CPU'?")


def test_a_name_without_its_prefix_is_completed() -> None:
    assert unknown_name("value", "FP32", ["TYPE_FP16", "TYPE_FP32"]).endswith("did you mean 'TYPE_FP32'?")


def test_all_names_are_listed_when_none_is_near() -> None:
    assert unknown_name("field", "zzz", ["a", "b"]) == "unknown field 'zzz'; valid here: a, b"


def test_a_message_without_fields_says_so() -> None:
    assert unknown_name("field", "zzz", []) == "unknown field 'zzz'; there is none to set here"
