from __future__ import annotations

import io

import pytest

from tritonpy import StartupError
from tritonpy_analyzer.config_edits import edit_config, write_settings
from tritonpy_analyzer.space import BATCH, BATCHING, DELAY, INSTANCES
from tritonpy_config.model_text import read_config_text
from tritonpy_config.tuning import DEFAULT_SETTING

from .studies import candidate, study

TEXT = """# A comment that stays.
backend: "python"
max_batch_size: 4   # rows
dynamic_batching { }
instance_group [{ count: 1 kind: KIND_CPU }]
"""
SETTINGS = {BATCH: 16, INSTANCES: 3, BATCHING: True, DELAY: 500}


def test_only_the_changed_settings_change():
    changed = edit_config(TEXT, SETTINGS, SETTINGS)
    assert changed == (
        TEXT.replace("4   # rows", "16   # rows")
        .replace("{ }", "{ max_queue_delay_microseconds: 500 }")
        .replace("count: 1", "count: 3")
    )
    same = {**SETTINGS, BATCH: 4}
    assert edit_config(TEXT, same, {INSTANCES: 3}) == TEXT.replace("count: 1", "count: 3")


@pytest.mark.parametrize(
    ("text", "changes", "check"),
    [
        ("", {INSTANCES: 2}, lambda config: config.instance_group[0].count == 2),
        (
            "instance_group { kind: KIND_CPU }",
            {INSTANCES: 2},
            lambda config: config.instance_group[0].count == 2,
        ),
        ("max_batch_size: 8", {BATCHING: True}, lambda config: config.HasField("dynamic_batching")),
        (
            "dynamic_batching {\n  max_queue_delay_microseconds: 7 # wait\n}",
            {DELAY: 500},
            lambda config: config.dynamic_batching.max_queue_delay_microseconds == 500,
        ),
        (
            "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 32 ] }",
            {BATCH: 16},
            lambda config: list(config.dynamic_batching.preferred_batch_size) == [4],
        ),
        (
            'parameters { key: "t" value { string_value: "1" } }',
            {"t": 4},
            lambda config: config.parameters["t"].string_value == "4",
        ),
        ("", {"t": 4}, lambda config: config.parameters["t"].string_value == "4"),
        (
            'parameters { key: "t" value { string_value: "1" } }',
            {"t": DEFAULT_SETTING},
            lambda config: not config.parameters,
        ),
    ],
)
def test_every_way_to_write_a_setting_is_changed(text, changes, check):
    changed = edit_config(text, {**SETTINGS, **changes}, changes)
    parsed = read_config_text(changed.encode())
    assert not parsed.problems, changed
    assert check(parsed.config), changed


def test_dynamic_batching_is_removed_with_its_settings():
    off = {**SETTINGS, BATCHING: False, DELAY: 0}
    assert "dynamic_batching" not in edit_config(TEXT, off, {BATCHING: False})


def test_an_invalid_configuration_is_not_changed():
    with pytest.raises(StartupError, match="the configuration cannot be read"):
        edit_config("max_batch_size {", SETTINGS, SETTINGS)


def test_the_changes_are_displayed_and_written(tmp_path):
    (tmp_path / "toy").mkdir()
    path = tmp_path / "toy" / "config.pbtxt"
    path.write_text(TEXT, encoding="utf-8")
    displayed = io.StringIO()
    write_settings(study(), tmp_path, tmp_path / "new", displayed)
    assert "-max_batch_size: 4   # rows" in displayed.getvalue()
    assert "+max_batch_size: 16   # rows" in displayed.getvalue()
    assert path.read_text(encoding="utf-8") == TEXT
    assert "16" in (tmp_path / "new" / "toy" / "config.pbtxt").read_text(encoding="utf-8")
    write_settings(study(), tmp_path, None, io.StringIO())
    assert "max_batch_size: 16   # rows" in path.read_text(encoding="utf-8")


def test_nothing_is_written_unless_a_better_configuration_was_found(tmp_path):
    displayed = io.StringIO()
    write_settings(study(status="keep", recommended=None), tmp_path, None, displayed)
    assert displayed.getvalue() == "nothing to write: no better configuration was found\n"
    assert candidate().changes
