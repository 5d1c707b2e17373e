from __future__ import annotations

import json

import pytest

from tritonpy import DTYPES
from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.metadata import TensorDescription

from .metadata import INTS, TEXT, VARIED, model, options


def file(tmp_path, data, name="data.json"):
    path = tmp_path / name
    path.write_text(json.dumps({"data": data}))
    return str(path)


@pytest.mark.parametrize("kind", ["random", "zero"])
@pytest.mark.parametrize("datatype", DTYPES)
def test_inputs_of_every_type_are_generated(kind, datatype):
    description = model(TensorDescription("A", datatype, (2, 3)), batch=8)
    [[made]] = make_corpus(description, options(batch=4, input_data=(kind,), string_length=5)).steps
    assert (made.shape, made.datatype) == ((4, 2, 3), datatype)
    size = DTYPES[datatype].itemsize if datatype != "BYTES" else 4 + (5 if kind == "random" else 0)
    assert len(made.content) == 24 * size


def test_random_inputs_depend_on_the_seed():
    description = model(INTS, TEXT)
    assert make_corpus(description, options()) == make_corpus(description, options())
    assert make_corpus(description, options()) != make_corpus(description, options(seed=2))


def test_string_data_fills_every_string():
    [[made]] = make_corpus(model(TEXT), options(string_data="hi")).steps
    assert made.as_json() == ["hi", "hi"]


def test_optional_inputs_are_omitted_unless_named():
    optional = TensorDescription("O", "INT32", (-1,), optional=True)
    assert [
        [tensor.name for tensor in step]
        for step in make_corpus(model(INTS, optional), options()).steps
    ] == [["A"]]
    named = make_corpus(model(INTS, optional), options(shape=(("O", (2,)),)))
    assert [[tensor.name for tensor in step] for step in named.steps] == [["A", "O"]]


def test_a_batch_of_data_uses_the_following_steps(tmp_path):
    data = file(tmp_path, [{"A": [number] * 3} for number in range(3)])
    corpus = make_corpus(model(INTS, batch=8), options(batch=2, input_data=(data,)))
    assert [step[0].as_json()[::3] for step in corpus.steps] == [[0, 1], [1, 2], [2, 0]]
    sequence = make_corpus(
        model(INTS, batch=8, sequence=True), options(batch=2, input_data=(data,))
    )
    assert [step[0].as_json()[::3] for step in sequence.steps] == [[0, 0], [1, 1], [2, 2]]


def test_streams_of_several_files_are_appended(tmp_path):
    first = file(tmp_path, [[{"A": [1] * 3}], [{"A": [2] * 3}, {"A": [3] * 3}]])
    second = file(tmp_path, [{"A": [4] * 3}], "more.json")
    corpus = make_corpus(model(INTS), options(input_data=(first, second)))
    assert corpus.streams == ((0,), (1, 2), (3,))


@pytest.mark.parametrize(
    ("description", "more", "text"),
    [
        (model(INTS), {"batch": 2}, "does not support batching"),
        (model(INTS), {"input_data": ("/no/such",)}, "/no/such: no such file"),
        (model(VARIED), {}, "--shape V:8,2"),
        (model(TensorDescription("A", "FP8", (1,))), {}, "unknown type FP8"),
    ],
)
def test_impossible_inputs_raise_an_error_with_a_hint(description, more, text):
    with pytest.raises(BadUsage, match=text):
        make_corpus(description, options(**more))


def test_a_batch_of_different_shapes_is_rejected(tmp_path):
    data = file(
        tmp_path,
        [{"V": {"content": [1, 2], "shape": [1, 2]}}, {"V": {"content": [1] * 4, "shape": [2, 2]}}],
    )
    with pytest.raises(BadUsage, match="in one batch"):
        make_corpus(model(VARIED, batch=8), options(batch=2, input_data=(data,)))
