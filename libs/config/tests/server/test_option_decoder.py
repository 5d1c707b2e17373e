from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Options
from tritonpy_config.server import ByteSize, InvalidServerConfig, decode_options


class Inner(Options, frozen=True):
    key_file: Path
    share: float = 0.5


class Example(Options, frozen=True):
    port: Annotated[int, msgspec.Meta(ge=1, le=65535, description="The port.")] = 8000
    max_size: Annotated[ByteSize, msgspec.Meta(ge=0, description="Largest body.")] = 1
    mode: Literal["on", "auto"] = "auto"
    reuse_port: bool = False
    host: str | None = None
    inner: Inner | None = None
    parts: list[Inner] = msgspec.field(default_factory=list)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    extra: dict[str, int] | bool = False

    def __post_init__(self):
        if self.port == 666:
            raise ValueError("port 666 is taken by tradition")


def problems(raw, path="frontends.http"):
    with pytest.raises(InvalidServerConfig) as caught:
        decode_options(Example, raw, path)
    return [str(problem) for problem in caught.value.problems]


def test_keys_may_be_written_with_dashes_or_underscores():
    assert decode_options(Example, {"max-size": 5, "reuse_port": True}, "x") == Example(
        max_size=5, reuse_port=True
    )


def test_none_means_the_defaults():
    assert decode_options(Example, None, "x") == decode_options(Example, {}, "x") == Example()


def test_texts_that_spell_a_value_are_converted():
    raw = {
        "port": "80",
        "reuse-port": "ON",
        "max_size": "64MiB",
        "counts": {"a": "3"},
        "extra": "off",
    }
    expected = Example(port=80, reuse_port=True, max_size=64 * 2**20, counts={"a": 3}, extra=False)
    assert decode_options(Example, raw, "x") == expected


def test_nested_structs_lists_and_paths_are_decoded():
    raw = {"inner": {"key-file": "a.pem"}, "parts": [{"key_file": "b"}], "extra": {"k": 1}}
    options = decode_options(Example, raw, "x")
    assert options.inner == Inner(Path("a.pem"))
    assert options.parts == [Inner(Path("b"))]
    assert options.extra == {"k": 1}


def test_every_problem_is_reported_with_path_value_and_expectation():
    raw = {
        "prot": 1,
        "port": 70000,
        "max_size": "64 parsecs",
        "mode": "off",
        "reuse_port": "maybe",
        "host": 12,
        "inner": {},
        "parts": [{"key_file": "a", "share": "half"}, 3],
        "counts": {"a": "b"},
    }
    assert problems(raw) == [
        "frontends.http.prot: unknown option 'prot'; did you mean 'port'?",
        "frontends.http.port: expected an integer, at least 1, at most 65535; got 70000",
        "frontends.http.max_size: expected a size such as 67108864 or \"64MiB\", at least 0; got '64 parsecs'",
        "frontends.http.mode: expected one of: on, auto; got 'off'",
        "frontends.http.reuse_port: expected true or false; got 'maybe'",
        'frontends.http.host: expected text; got 12; in quotes it is text: "12"',
        "frontends.http.inner: 'key-file' is missing: expected a path",
        "frontends.http.parts[0].share: expected a number; got 'half'",
        "frontends.http.parts[1]: expected a mapping with the keys key-file, share; got 3",
        "frontends.http.counts.a: expected an integer; got 'b'",
    ]


def test_a_key_given_in_both_spellings_is_refused():
    assert problems({"max_size": 1, "max-size": 2}) == [
        "frontends.http.max-size: given twice, as 'max_size' and as 'max-size'"
    ]


def test_a_value_that_is_not_a_mapping_is_refused():
    (problem,) = problems([1])
    assert problem.startswith(
        "frontends.http: expected a mapping with the keys port, max-size, mode"
    )


def test_a_rule_between_keys_has_its_own_text():
    assert problems({"port": 666}) == ["frontends.http: port 666 is taken by tradition"]


def test_a_null_value_is_called_nothing():
    assert problems({"port": None}) == [
        "frontends.http.port: expected an integer, at least 1, at most 65535; got nothing"
    ]


def test_a_long_value_is_truncated():
    (problem,) = problems({"port": "x" * 1000})
    assert len(problem) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(list("ab")) | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["port", "max-size", "mode", "host", "inner", "parts", "counts", "extra", "z"]
        ),
        JSON,
    )
)
def test_any_plain_data_is_decoded_or_refused_with_problems(raw):
    try:
        assert isinstance(decode_options(Example, raw, "x"), Example)
    except InvalidServerConfig as error:
        refused = error.problems
        assert refused


def test_the_suggestion_has_the_spelling_of_the_unknown_key():
    class Timeouts(Options, frozen=True):
        head_timeout_s: int = 1

    for unknown, nearest in {
        "headtimeout_s": "head_timeout_s",
        "head-timeout": "head-timeout-s",
    }.items():
        with pytest.raises(InvalidServerConfig, match=f"did you mean '{nearest}'"):
            decode_options(Timeouts, {unknown: 1}, "")
