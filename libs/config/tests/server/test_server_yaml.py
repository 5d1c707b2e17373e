from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import StartupError
from tritonpy_config.server import InvalidServerConfig
from tritonpy_config.server.server_yaml import parse_server_yaml, read_server_yaml


def parse(text):
    return parse_server_yaml(text, "server.yaml")[0]


def refusal(text):
    with pytest.raises(InvalidServerConfig) as caught:
        parse(text)
    return str(caught.value)


def test_plain_values_are_those_of_yaml_1_2():
    text = "{a: off, b: on, c: 010, d: 1:30, e: 0x1F, f: 1e3, g: ~, h: True, i: 2026-01-02, j: -.inf, k: 0o17}"
    assert parse(text) == {
        "a": "off",
        "b": "on",
        "c": 10,
        "d": "1:30",
        "e": 31,
        "f": 1000.0,
        "g": None,
        "h": True,
        "i": "2026-01-02",
        "j": float("-inf"),
        "k": 15,
    }


def test_an_empty_text_is_none():
    assert parse("") is None
    assert parse("# only a comment\n") is None


def test_keys_and_list_items_have_positions():
    _, positions = parse_server_yaml(
        "frontends:\n  http: {port: 1}\nrepositories:\n  - url: a\n", "x"
    )
    assert positions["frontends.http.port"] == (2, 10)
    assert positions["repositories[0].url"] == (4, 5)


def test_anchors_and_merges_work():
    assert parse("a: &x {p: 1}\nb: *x\nc: {<<: *x, q: 2}") == {
        "a": {"p": 1},
        "b": {"p": 1},
        "c": {"p": 1, "q": 2},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1", "line 1, column 6: while parsing a flow sequence"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed here"),
        ("a: 1\na: 2", "line 2, column 1: a: given twice, first in line 1"),
        ("a: &x [*x]", "line 1, column 4: a[0]: this alias contains itself"),
        ("? [a]\n: 1", "line 1, column 3: a key must be a plain name"),
        ("--- 1\n--- 2", "line 2, column 1: expected a single document"),
        ("x: !!python/object:os.system 1", "line 1, column 4: could not determine a constructor"),
        ("x: \x01", "special characters are not allowed"),
    ],
)
def test_invalid_yaml_is_refused_with_its_position(text, expected):
    assert expected in refusal(text)


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(StartupError, match=r"cannot read .*nope\.yaml': No such file"):
        read_server_yaml(tmp_path / "nope.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"id: \xff")
    with pytest.raises(StartupError, match="byte 4 is not UTF-8"):
        read_server_yaml(tmp_path / "latin.yaml")


@given(st.text(alphabet="ab:-[]{}&*!\"'|>#%@`,? \n\t01.", max_size=40))
def test_any_text_is_parsed_or_refused(text):
    try:
        parse(text)
    except InvalidServerConfig as error:
        refused = error.problems
        assert refused
