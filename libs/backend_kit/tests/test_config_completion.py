from __future__ import annotations

import logging
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from tritonpy import InvalidArgument
from tritonpy.config import read_config_text
from tritonpy_backend_kit.config_completion import (
    complete_config,
    log_batch_size,
    needs_completion,
    refuse_batching,
    server_inputs,
    server_outputs,
)


@dataclass(frozen=True)
class Info:
    datatype: str
    dims: tuple[int, ...] | None


INPUTS = {"IN": Info("FP32", (-1, 4)), "START": Info("INT32", (-1, 1))}
OUTPUTS = {"OUT": Info("INT64", (-1, 2))}
SEQUENCE = """
sequence_batching {
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
  state { input_name: "STATE" output_name: "NEXT" data_type: TYPE_FP32 dims: 1 }
}
"""


def config(text=""):
    return read_config_text(f'name: "m" {text}').checked("config.pbtxt")


def completed(text="", *, can_batch=True, size=4, inputs=INPUTS):
    return complete_config(config(text), inputs, OUTPUTS, can_batch=can_batch, max_batch_size=size)


def test_tensors_have_no_batch_dimension():
    result = completed()
    assert [(each.name, each.data_type, list(each.dims)) for each in result.input] == [
        ("IN", 11, [4]),
        ("START", 8, [1]),
    ]
    assert [(each.name, list(each.dims)) for each in result.output] == [("OUT", [2])]
    assert result.max_batch_size == 4
    assert result.HasField("dynamic_batching")


def test_a_model_without_batches_keeps_its_whole_shape():
    result = completed(can_batch=False)
    assert list(result.input[0].dims) == [-1, 4]
    assert (result.max_batch_size, result.WhichOneof("scheduling_choice")) == (0, None)


@pytest.mark.parametrize(("text", "size"), [("max_batch_size: 2", 2), ("", 1), ("", 0)])
def test_the_default_size_applies_only_to_models_that_set_none(text, size):
    result = completed(text, size=size)
    assert result.max_batch_size == size
    assert result.HasField("dynamic_batching") is (size > 1)


def test_another_scheduler_is_kept():
    result = completed(f"max_batch_size: 8 {SEQUENCE}")
    assert result.WhichOneof("scheduling_choice") == "sequence_batching"


def test_clients_do_not_see_the_tensors_of_the_server():
    text = SEQUENCE + 'batch_input { target_name: ["COUNT"] kind: BATCH_ELEMENT_COUNT }'
    assert server_inputs(config(text)) == {"START", "STATE", "COUNT"}
    assert server_outputs(config(text)) == {"NEXT"}
    assert [each.name for each in completed(SEQUENCE).input] == ["IN"]


def test_configured_tensors_are_unchanged():
    text = 'input { name: "OTHER" data_type: TYPE_FP32 dims: 1 }'
    assert [each.name for each in completed(text).input] == ["OTHER"]


def test_an_unknown_rank_must_be_configured():
    with pytest.raises(InvalidArgument, match="dimensions of 'IN' is dynamic"):
        completed(inputs={"IN": Info("FP32", None)})


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", True),
        ('input { name: "I" }', True),
        ('output { name: "O" }', True),
        ('input { name: "I" } output { name: "O" }', False),
        ('batch_input { target_name: "I" } output { name: "O" }', False),
    ],
)
def test_a_complete_configuration_needs_no_model_file(text, needed):
    assert needs_completion(config(text)) is needed


def test_a_batch_size_of_a_model_without_batches_is_refused():
    refuse_batching(config())
    with pytest.raises(InvalidArgument, match="does not support batching while non-zero"):
        refuse_batching(config("max_batch_size: 1"))


def test_a_chosen_batch_size_is_logged(caplog):
    model = SimpleNamespace(name="m", config=config(), log=logging.getLogger("toy"))
    with caplog.at_level("INFO"):
        log_batch_size(model, config("max_batch_size: 4"))
        log_batch_size(model, config())
    assert [record.getMessage().rpartition(":")[2] for record in caplog.records] == [" using 4"]
