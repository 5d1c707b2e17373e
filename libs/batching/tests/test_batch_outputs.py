from __future__ import annotations

import numpy as np
import pytest

from tritonpy_batching.batch_layout import BatchOutputRule, batch_output_rules, split_by_shape
from tritonpy_testing.parse import model_config
from tritonpy_types import Tensor
from tritonpy_types.errors import Internal

CONFIG = """
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
output { name: "PAIRS" data_type: TYPE_FP32 dims: [ -1, 2 ] }
output { name: "SHAPED" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 2 ] } }
batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUT" target_name: "PAIRS" target_name: "SHAPED" source_input: "IN" }
"""


def rules(config: str = CONFIG) -> dict[str, BatchOutputRule]:
    return batch_output_rules(model_config(config))


def flat(count: int, name: str = "OUT") -> Tensor:
    return Tensor.from_numpy(name, np.arange(count, dtype=np.float32))


def inputs(*shape: int) -> dict[str, Tensor]:
    return {"IN": Tensor.from_numpy("IN", np.zeros(shape, np.float32))}


def test_each_request_gets_the_shape_of_its_input() -> None:
    parts = rules()["OUT"].cut(flat(7), [(1, 2), (2, 1), (1, 3)])
    assert [part.numpy().tolist() for part in parts] == [[[0, 1]], [[2], [3]], [[4, 5, 6]]]
    assert {part.name for part in parts} == {"OUT"}


def test_parts_are_views() -> None:
    whole = flat(4)
    assert all(
        np.shares_memory(part.data, whole.data)
        for part in rules()["OUT"].cut(whole, [(1, 2), (1, 2)])
    )


def test_fixed_dimensions_are_those_of_the_output() -> None:
    (part,) = rules()["PAIRS"].cut(flat(6), [(1, 3)])
    assert part.shape == (1, 3, 2)


def test_the_shape_of_a_part_is_that_of_reshape() -> None:
    first, second = rules()["SHAPED"].cut(flat(12), [(1, 9), (2, 9)])
    assert (first.shape, second.shape) == ((1, 2, 2), (2, 2, 2))


def test_without_batching_there_is_no_batch_dimension() -> None:
    config = CONFIG.replace("max_batch_size: 8", "max_batch_size: 0")
    (part,) = rules(config)["OUT"].cut(flat(3), [(3,)])
    assert part.shape == (3,)


def test_bytes_tensors_are_cut_at_their_offsets() -> None:
    words = Tensor.from_numpy("OUT", np.array([b"a", b"bcd", b"", b"e"], object))
    parts = rules()["OUT"].cut(words, [(1, 1), (1, 3)])
    assert [part.strings() for part in parts] == [[b"a"], [b"bcd", b"", b"e"]]


def test_extra_elements_are_ignored() -> None:
    (part,) = rules()["OUT"].cut(flat(9), [(1, 2)])
    assert part.numpy().tolist() == [[0, 1]]


def test_too_few_elements_are_an_error() -> None:
    with pytest.raises(
        Internal, match="output 'OUT' has 3 elements, the requests of its batch expect 4"
    ):
        rules()["OUT"].cut(flat(3), [(1, 2), (1, 2)])


def test_a_source_of_too_few_dimensions_is_an_error() -> None:
    rule = BatchOutputRule("OUT", "IN", (-1, 2, -1))
    with pytest.raises(
        Internal,
        match="output 'OUT' takes the size of dimension 2 from input 'IN', which has no such",
    ):
        rule.cut(flat(3), [(1, 2)])


def test_a_slot_without_data_takes_a_row_and_gets_nothing() -> None:
    (part,) = split_by_shape(rules(), {"OUT": flat(6)}, [None, inputs(1, 2), None])["OUT"]
    assert part.numpy().tolist() == [[2, 3]]


def test_outputs_without_a_rule_are_not_touched() -> None:
    assert split_by_shape(rules(), {"OTHER": flat(2, "OTHER")}, [inputs(1, 2)]) == {}


def test_requests_without_the_source_are_refused() -> None:
    with pytest.raises(
        Internal, match="output 'OUT' has the shape of input 'IN', which the requests do not have"
    ):
        split_by_shape(rules(), {"OUT": flat(2)}, [{}])
