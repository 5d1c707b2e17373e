from __future__ import annotations

import json

import pytest

from tritonpy import DTYPES
from tritonpy_bench.inputs.corpus import make_corpus
from tritonpy_bench.options import BadUsage
from tritonpy_bench.target.facts import TensorFacts

from .facts import INTS, TEXT, VARIED, model, options


def file(tmp_path, data, name="data.json"):
    path = tmp_path / name
    path.write_text(json.dumps({"data": data}))
    return str(path)


@pytest.mark.parametrize("kind", ["random", "zero"])
@pytest.mark.parametrize("datatype", DTYPES)
def test_inputs_of_every_type_make_themselves(kind, datatype):
    facts = model(TensorFacts("A", datatype, (2, 3)), batch=8)
    [[made]] = make_corpus(facts, options(batch=4, input_data=(kind,), string_length=5)).steps
    assert (made.shape, made.datatype) == ((4, 2, 3), datatype)
    size = DTYPES[datatype].itemsize if datatype != "BYTES" else 4 + (5 if kind == "random" else 0)
    assert len(made.content) == 24 * size


def test_random_inputs_are_the_same_for_the_same_seed_alone():
    facts = model(INTS, TEXT)
    assert make_corpus(facts, options()) == make_corpus(facts, options())
    assert make_corpus(facts, options()) != make_corpus(facts, options(seed=2))


def test_a_text_of_the_user_fills_every_string():
    [[made]] = make_corpus(model(TEXT), options(string_data="hi")).steps
    assert made.as_json() == ["hi", "hi"]


def test_optional_inputs_are_left_out_unless_they_are_named():
    optional = TensorFacts("O", "INT32", (-1,), optional=True)
    assert [[tensor.name for tensor in step] for step in make_corpus(model(INTS, optional), options()).steps] == [["A"]]
    named = make_corpus(model(INTS, optional), options(shape=(("O", (2,)),)))
    assert [[tensor.name for tensor in step] for step in named.steps] == [["A", "O"]]


def test_a_batch_of_data_takes_the_steps_that_follow(tmp_path):
    data = file(tmp_path, [{"A": [number] * 3} for number in range(3)])
    corpus = make_corpus(model(INTS, batch=8), options(batch=2, input_data=(data,)))
    assert [step[0].as_json()[::3] for step in corpus.steps] == [[0, 1], [1, 2], [2, 0]]
    sequence = make_corpus(model(INTS, batch=8, sequence=True), options(batch=2, input_data=(data,)))
    assert [step[0].as_json()[::3] for step in sequence.steps] == [[0, 0], [1, 1], [2, 2]]


def test_streams_of_several_files_are_appended(tmp_path):
    first = file(tmp_path, [[{"A": [1] * 3}], [{"A": [2] * 3}, {"A": [3] * 3}]])
    second = file(tmp_path, [{"A": [4] * 3}], "more.json")
    corpus = make_corpus(model(INTS), options(input_data=(first, second)))
    assert corpus.streams == ((0,), (1, 2), (3,))


@pytest.mark.parametrize(
    ("facts", "more", "text"),
    [
        (model(INTS), {"batch": 2}, "takes no batches"),
        (model(INTS), {"input_data": ("/no/such",)}, "/no/such: there is no such file"),
        (model(VARIED), {}, "--shape V:8,2"),
        (model(TensorFacts("A", "FP8", (1,))), {}, "FP8, which is not known"),
    ],
)
def test_what_cannot_be_made_says_what_to_do(facts, more, text):
    with pytest.raises(BadUsage, match=text):
        make_corpus(facts, options(**more))


def test_a_batch_of_uneven_data_is_refused(tmp_path):
    data = file(tmp_path, [{"V": {"content": [1, 2], "shape": [1, 2]}}, {"V": {"content": [1] * 4, "shape": [2, 2]}}])
    with pytest.raises(BadUsage, match="in one batch"):
        make_corpus(model(VARIED, batch=8), options(batch=2, input_data=(data,)))
