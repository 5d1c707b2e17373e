from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.lenient_json import MAX_CHARACTERS, MAX_NESTING, parse_lenient_json
from tritonpy.config.model_json import read_config_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_standard_json_keeps_its_meaning(document, ascii_only) -> None:
    assert parse_lenient_json(json.dumps(document, ensure_ascii=ascii_only)) == document


@given(st.text(alphabet="{}[]'\",:\\aut1e.- \n"))
def test_any_text_is_parsed_or_refused_with_a_value_error(text) -> None:
    try:
        parse_lenient_json(text)
    except ValueError:
        return


# Texts that the real Triton accepts, with their values.
@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("{a: 1}", {"a": 1}),
        ("{ $a_1 : 1}", {"$a_1": 1}),
        ("{'a': 'b'}", {"a": "b"}),
        ("""{'a"': "b'"}""", {'a"': "b'"}),
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2,]", [1, 2]),
        ('["x\ny"]', ["x\ny"]),
        (r'["x\qy", "\'", "\v", "\x41", "\0"]', ["xqy", "'", "\v", "x41", "0"]),
        (r"['pyth\u006fn', '\ud83d\ude00']", ["python", "😀"]),
        ("{\v\f a: 1.}", {"a": 1.0}),
        ("[-0, 1e0, 1E2]", [0, 1.0, 100.0]),
    ],
)
def test_texts_that_protobuf_accepts_are_parsed(text, document) -> None:
    assert parse_lenient_json(text) == document


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1,,}', "[1,,]", "[,]", "{,}", "{,a: 1}", '{/* c */ "a": 1}', "{a: 1} // c", "{a: b}", "{a: 0x1}", "{a: 00}", "{a: +1}",
        "{a: .5}", "{a: --1}", "{a: 1x}", "{a: True}", "{a: falsex}", "{a: 1} x", "{}{}", "{a: 1},", "{1: 2}", "{a-b: 1}", "{a.b: 1}",
        "{é: 1}", "{null: 1}", "{true: 1}", "{\xa0a: 1}", "{'a' 1}", "{'a\": 1}", "['a' 'b']", "['a", "{a: 1", "[1", "{a", "foo", "", "  ",
        r"['\u12']", r"['\ud800']", r"['\ud83dx']", "\ufeff{a: 1}", "[NaN]", "[1 2]", "['\\",
    ],
)  # fmt: skip
def test_texts_that_protobuf_refuses_are_refused(text) -> None:
    with pytest.raises(ValueError):
        parse_lenient_json(text)


def test_nesting_and_size_are_limited() -> None:
    assert parse_lenient_json("[" * MAX_NESTING + "]" * MAX_NESTING)
    for text in ("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1), "[" * 100_000, "{a:" * 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_lenient_json(text)
    with pytest.raises(ValueError, match="too long"):
        parse_lenient_json("[" + " " * MAX_CHARACTERS + "]")
    with pytest.raises(ValueError):
        parse_lenient_json("[" + "1" * 10_000 + ",]")


def test_a_configuration_may_be_lenient_json() -> None:
    reading = read_config_json(
        "{backend: 'python', maxBatchSize: 4, input: [{name: 'IN', data_type: 'type_int32', dims: [1,]},],}"
    )
    assert reading.problems == []
    assert (reading.config.backend, reading.config.max_batch_size) == ("python", 4)
    assert (reading.config.input[0].data_type, list(reading.config.input[0].dims)) == (8, [1])
    assert read_config_json(b"{backend: 'python'}").config.backend == "python"


def test_a_problem_in_lenient_json_names_its_key() -> None:
    assert "unknown field 'max_batch_sise'" in str(read_config_json("{max_batch_sise: 4,}").problems[0])


def test_an_invalid_text_has_the_position_of_the_first_error() -> None:
    (problem,) = read_config_json("{backend: 'python' x}").problems
    assert (problem.line, problem.column) == (1, 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("T", True), ("Yes", True), ("1", True), ("FALSE", False), ("n", False), ("0", False)],
)
def test_a_boolean_may_be_a_word(text, value) -> None:
    reading = read_config_json(json.dumps({"model_transaction_policy": {"decoupled": text}}))
    assert (reading.problems, reading.config.model_transaction_policy.decoupled) == ([], value)


@pytest.mark.parametrize("text", ["type-int32", "Type_Int32", "8"])
def test_an_enum_value_may_have_another_spelling(text) -> None:
    reading = read_config_json(json.dumps({"input": [{"data_type": text}]}))
    assert (reading.problems, reading.config.input[0].data_type) == ([], 8)
