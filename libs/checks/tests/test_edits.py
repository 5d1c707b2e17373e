"""Edits keep comments and layout, whatever form a field has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_checks import remove_field, rename_field, replace_value
from tritonpy_config.model_text import read_config_text

FILE = Path("config.pbtxt")
TEXT = """# the model
name: "other"  # wrong
max_batch_size: 8

input [
  {
    name: "IN"
    data_type: TYPE_FP32  # the type
    dims: [ -1, 3, 4 ]
  }
]
output { name: "OUT" data_type: TYPE_FP32 dims: 1 dims: 2 }
"""


def applied(text: str, edit) -> str:
    return text[: edit.start] + edit.text + text[edit.end :]


def changed(key: str, change, *arguments: str) -> str:
    """Return TEXT after a change at a key, which still is a valid configuration."""
    place = read_config_text(TEXT).positions[key]
    result = applied(TEXT, change(FILE, TEXT, place, *arguments))
    assert read_config_text(result).problems == []
    return result


def test_a_field_that_fills_its_line_is_removed_with_its_comment() -> None:
    assert changed("name", remove_field) == TEXT.replace('name: "other"  # wrong\n', "")


def test_a_value_of_a_list_is_removed_with_its_comma() -> None:
    assert changed("input[0].dims[0]", remove_field) == TEXT.replace("-1, 3", "3")
    assert changed("input[0].dims[2]", remove_field) == TEXT.replace("3, 4", "3")


def test_a_repeated_field_is_removed() -> None:
    assert read_config_text(changed("output[0].dims[1]", remove_field)).config.output[0].dims == [1]
    assert read_config_text(changed("output[0].dims", remove_field)).config.output[0].dims == [2]


def test_a_value_is_replaced_and_its_comment_stays() -> None:
    text = changed("input[0].data_type", replace_value, "TYPE_FP64")
    assert text == TEXT.replace("TYPE_FP32  # the type", "TYPE_FP64  # the type")
    text = changed("input[0].dims", replace_value, "[ 3, 4 ]")
    assert text == TEXT.replace("[ -1, 3, 4 ]", "[ 3, 4 ]")


def test_a_block_is_replaced_as_a_whole() -> None:
    place = read_config_text(TEXT).positions["output"]
    edit = replace_value(FILE, TEXT, place, '{ name: "Y" }')
    assert applied(TEXT, edit).endswith('output { name: "Y" }\n')


def test_a_field_is_renamed() -> None:
    text = "dynamic_baching { }\n"
    [problem] = read_config_text(text).problems
    place = type(read_config_text(TEXT).positions["name"])(problem.line, problem.column)
    assert applied(text, rename_field(FILE, text, place, "dynamic_batching")) == (
        "dynamic_batching { }\n"
    )


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_positions_count_characters_of_any_line_ending(ending: str) -> None:
    text = f'# ü{ending}name: "é"{ending}max_batch_size: 8{ending}'
    place = read_config_text(text).positions["max_batch_size"]
    result = applied(text, replace_value(FILE, text, place, "4"))
    assert result == text.replace("8", "4")
