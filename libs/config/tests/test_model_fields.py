"""Every field of a model configuration is described."""

from __future__ import annotations

import pytest

from tritonpy.config import read_config_text
from tritonpy_config.model_fields import all_fields, describe_field


def test_every_field_has_a_description() -> None:
    found = {each.path: each.meaning.text for each in all_fields(recursive=True)}
    assert len(found) > 160
    assert [path for path, text in found.items() if not text.endswith(".")] == []


def test_every_example_is_valid() -> None:
    for each in all_fields():
        if each.meaning.example:
            assert read_config_text(each.meaning.example).problems == [], each.path


def test_a_field_inside_a_list_and_a_map_is_found() -> None:
    assert describe_field("input[0].dims").type_name == "list of integer"
    assert describe_field("parameters").type_name == "map from text to block"
    assert "KIND_CPU" in describe_field("instance_group.kind").choices


def test_an_unknown_field_has_a_suggestion() -> None:
    with pytest.raises(KeyError, match="did you mean 'dynamic_batching'"):
        describe_field("dynamic_baching")
    with pytest.raises(KeyError, match=r"'dynamic_batching': .*did you mean 'preserve_ordering'"):
        describe_field("dynamic_batching.preserve_order")
