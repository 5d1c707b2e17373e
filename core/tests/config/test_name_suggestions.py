from __future__ import annotations

from tritonpy.config.name_suggestions import unknown_name


def test_a_similar_name_is_suggested() -> None:
    assert unknown_name("field", "max_batchsize", ["name", "max_batch_size"]) == (
        "unknown field 'max_batchsize'; did you mean 'max_batch_size'?"
    )


def test_case_is_ignored() -> None:
    assert unknown_name("value", "kind_cpu", ["KIND_AUTO", "KIND_CPU"]).endswith("did you mean 'KIND_CPU'?")


def test_a_name_without_its_prefix_is_completed() -> None:
    assert unknown_name("value", "FP32", ["TYPE_FP16", "TYPE_FP32"]).endswith("did you mean 'TYPE_FP32'?")


def test_all_names_are_listed_if_none_is_similar() -> None:
    assert unknown_name("field", "zzz", ["a", "b"]) == "unknown field 'zzz'; valid here: a, b"


def test_a_message_without_fields_has_no_suggestion() -> None:
    assert unknown_name("field", "zzz", []) == "unknown field 'zzz'; no name is valid here"
