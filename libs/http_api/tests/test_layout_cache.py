"""Tests of the cache of JSON layouts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, InferRequest, Internal, InvalidArgument, SequenceInfo
from tritonpy_http_api import decode, layout_cache
from tritonpy_http_api.layout_cache import JsonLayoutCache

SINK = CallbackSink(lambda request, response: None)
INPUT = {"name": "X", "datatype": "INT32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
TAIL = np.arange(2, dtype=np.int32).tobytes()


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> JsonLayoutCache:
    known = JsonLayoutCache()
    monkeypatch.setattr(decode, "_LAYOUTS", known)
    return known


def raw_of(**members: Any) -> bytes:
    return json.dumps({**members, "inputs": [INPUT]}, separators=(",", ":")).encode()


def sequence_of(number: int | str, start: bool = False, end: bool = False) -> dict[str, Any]:
    return {"sequence_id": number, "sequence_start": start, "sequence_end": end}


def read(raw: bytes, tail: bytes = TAIL) -> tuple[InferRequest, bool]:
    return decode.decode_infer(raw + tail, len(raw), "m", -1, SINK, 1 << 26)


def learn(raw: bytes) -> None:
    for _ in range(2):
        read(raw)


def test_a_layout_is_cached_at_its_second_use(known: JsonLayoutCache) -> None:
    raw = raw_of()
    read(raw)
    assert known.find(raw)[0] is None
    read(raw)
    assert known.find(raw)[0] is not None


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=5), st.sampled_from(["INT32", "FP16", "BOOL", "BYTES"])
        ),
        max_size=4,
    ),
    st.text(max_size=5),
    st.sampled_from([None, True, False]),
    st.lists(st.tuples(st.booleans(), st.sampled_from([0, 2])), max_size=2),
    st.none()
    | st.tuples(st.integers(0, (1 << 64) - 1) | st.text(max_size=5), st.booleans(), st.booleans()),
)
def test_a_cached_layout_decodes_like_an_uncached_one(
    names: list[tuple[str, str]],
    identity: str,
    binary: bool | None,
    outputs: list[tuple[bool, int]],
    sequence: tuple[int | str, bool, bool] | None,
) -> None:
    header: dict[str, Any] = {"id": identity} if identity else {}
    size = {"INT32": 12, "FP16": 6, "BOOL": 3, "BYTES": 12}
    header["inputs"] = [
        {
            "name": name,
            "datatype": kind,
            "shape": [3],
            "parameters": {"binary_data_size": size[kind]},
        }
        for name, kind in dict(names).items()
    ]
    parameters: dict[str, Any] = sequence_of(*sequence) if sequence else {}
    if binary is not None:
        parameters["binary_data_output"] = binary
    if parameters:
        header["parameters"] = parameters
    if outputs:
        header["outputs"] = [
            {"name": str(number), "parameters": {"binary_data": each, "classification": classes}}
            for number, (each, classes) in enumerate(outputs)
        ]
    raw = json.dumps(header, separators=(",", ":")).encode()
    tail = bytes(sum(size[kind] for kind in dict(names).values()))
    first, *again = [read(raw, tail) for _ in range(4)]
    for request, as_binary in again:
        assert as_binary == first[1]
        assert (request.id, request.outputs, request.classifies) == (
            first[0].id,
            first[0].outputs,
            first[0].classifies,
        )
        assert request.sequence == first[0].sequence
        for tensor, expected in zip(request.inputs.values(), first[0].inputs.values(), strict=True):
            assert (tensor.name, tensor.datatype, tensor.shape) == (
                expected.name,
                expected.datatype,
                expected.shape,
            )
            assert tensor.data.dtype == expected.data.dtype
            assert tensor.data.tobytes() == expected.data.tobytes()


def test_requests_with_different_ids_share_a_layout(known: JsonLayoutCache) -> None:
    learn(raw_of(id="first"))
    raw = raw_of(id="another")
    layout, identity, sequence = known.find(raw)
    assert (layout is not None, identity, sequence) == (True, "another", None)
    assert read(raw)[0].id == "another"


@pytest.mark.parametrize("number", [7, 9_999_999_999_999_999_999, "seven"])
@pytest.mark.parametrize("more", [{}, {"binary_data_output": True}])
def test_requests_with_different_sequences_share_a_layout(
    known: JsonLayoutCache, number: int | str, more: dict[str, Any]
) -> None:
    learn(raw_of(id="first", parameters={**sequence_of(3, start=True), **more}))
    raw = raw_of(id="another", parameters={**sequence_of(number, end=True), **more})
    layout, identity, sequence = known.find(raw)
    assert (layout is not None, identity, sequence) == (
        True,
        "another",
        SequenceInfo(number, start=False, end=True),
    )
    assert read(raw)[0].sequence == sequence


@pytest.mark.parametrize(
    "number", [0, 10_000_000_000_000_000_000, (1 << 64) - 1, "", "sie\u00dfen", 'a"b', "a\\b"]
)
def test_an_escaped_or_large_sequence_id_is_decoded(number: int | str) -> None:
    learn(raw_of(parameters=sequence_of(3)))
    for _ in range(3):
        sequence = read(raw_of(parameters=sequence_of(number, start=True)))[0].sequence
        assert sequence == (SequenceInfo(number, start=True) if number else None)


@pytest.mark.parametrize("number", ["-1", "07", "1.0", "18446744073709551616"])
def test_an_invalid_sequence_id_is_refused(number: str) -> None:
    learn(raw_of(parameters=sequence_of(3)))
    with pytest.raises(Internal):
        read(raw_of(parameters=sequence_of(3)).replace(b":3,", f":{number},".encode()))


def test_sequence_keys_in_other_parameters_are_ignored() -> None:
    raw = raw_of(parameters={**sequence_of(3), "binary_data_output": True})
    learn(raw)
    inside = raw.replace(
        b'"parameters":{"binary_data_size":8}',
        b'"parameters":{"binary_data_size":8,%b}'
        % json.dumps(sequence_of(5), separators=(",", ":"))[1:-1].encode(),
    )
    outside = inside.replace(
        json.dumps(sequence_of(3), separators=(",", ":"))[1:-1].encode() + b",", b""
    )
    for _ in range(3):
        assert read(outside)[0].sequence is None
        assert read(inside)[0].sequence == SequenceInfo(3)


@pytest.mark.parametrize("key", ["sequence_start", "sequence_\\u0073tart"])
def test_a_duplicate_sequence_key_takes_precedence(key: str) -> None:
    found = json.dumps(sequence_of(3, start=True), separators=(",", ":")).encode()
    raw = raw_of(parameters=sequence_of(3, start=True)).replace(
        found, found[:-1] + b',"%b":true}' % key.encode()
    )
    learn(raw)
    other = raw.replace(b'"sequence_start":true,', b'"sequence_start":false,', 1)
    assert read(other)[0].sequence == SequenceInfo(3, start=True)


def test_a_key_without_the_sequence_is_not_a_request() -> None:
    found = json.dumps(sequence_of(3), separators=(",", ":"))[1:-1].encode()
    raw = raw_of(parameters={**sequence_of(3), "binary_data_output": True})
    learn(raw)
    with pytest.raises(Internal):
        read(raw.replace(found, b""))


def test_a_tensor_may_be_named_id(known: JsonLayoutCache) -> None:
    raw = raw_of(id="first").replace(b'"X"', b'"id"')
    learn(raw)
    assert known.find(raw.replace(b"first", b"other"))[0] is not None


@pytest.mark.parametrize("identity", ['a"b', "a\\b", "ä", "tab\t", "\u2028"])
def test_an_escaped_id_is_decoded(identity: str) -> None:
    learn(raw_of(id="plain"))
    for _ in range(3):
        assert read(raw_of(id=identity))[0].id == identity


def test_the_last_duplicate_id_wins() -> None:
    learn(raw_of(id="plain"))
    raw = b'{"id":"first","id":"last",' + raw_of()[1:]
    for _ in range(3):
        assert read(raw)[0].id == "last"


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ":")])
def test_a_key_without_the_id_is_not_a_request(separators: tuple[str, str]) -> None:
    raw = json.dumps({"id": "plain", "inputs": [INPUT]}, separators=separators).encode()
    learn(raw)
    for start in range(len(b'{"id":"plain'), raw.index(b'"inputs"') + 1):
        with pytest.raises(Internal):
            read(raw[start:])


def test_an_escaped_duplicate_id_key_takes_precedence() -> None:
    same = b'{"id":"last","\\u0069d":"last",' + raw_of()[1:]
    learn(same)
    assert read(same.replace(b"last", b"first", 1))[0].id == "last"


@pytest.mark.parametrize(
    "header",
    [
        {"inputs": [{"name": "X", "datatype": "INT32", "shape": [2], "data": [1, 2]}]},
        {"inputs": [INPUT], "parameters": {"priority": 2}},
        {
            "inputs": [
                {**INPUT, "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 8}}
            ]
        },
        {
            "inputs": [INPUT],
            "outputs": [{"name": "Y", "parameters": {"shared_memory_region": "r"}}],
        },
    ],
)
def test_requests_that_are_not_plain_are_not_cached(
    known: JsonLayoutCache, header: dict[str, Any]
) -> None:
    raw = json.dumps(header).encode()
    tail = TAIL if "binary_data_size" in raw.decode() else b""
    for _ in range(3):
        read(raw, tail)
    assert known.find(raw)[0] is None


@pytest.mark.parametrize("tail", [TAIL[:-1], TAIL + b"\0", b"\0"])
def test_a_body_of_the_wrong_size_is_refused(tail: bytes) -> None:
    learn(raw_of())
    with pytest.raises(InvalidArgument):
        read(raw_of(), tail)


def test_the_cache_size_is_bounded(known: JsonLayoutCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_cache, "MAX_LAYOUTS", 3)
    monkeypatch.setattr(layout_cache, "MAX_SEEN", 5)
    for number in range(20):
        learn(raw_of(parameters={"binary_data_output": bool(number % 2)}, more=number))
        assert len(known._layouts) <= 3
        assert len(known._seen) <= 5


def test_long_headers_are_not_cached(known: JsonLayoutCache) -> None:
    raw = raw_of() + b" " * layout_cache.MAX_JSON_BYTES
    learn(raw)
    assert known.find(raw)[0] is None
