from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_ipc import ProtocolError
from tritonpy_ipc.signatures import SignatureReader, SignatureWriter
from tritonpy_types import DTYPES

from .exchange import floats

MOST = 4096


def learn(reader: SignatureReader, writer: SignatureWriter) -> dict[str, Any]:
    """Transfer new signatures as a frame does, as JSON."""
    new_signatures = json.loads(json.dumps(writer.new_signatures()))
    reader.learn(new_signatures)
    writer.mark_sent()
    return new_signatures


def test_a_signature_is_announced_once() -> None:
    writer, reader = SignatureWriter(), SignatureReader(DTYPES)
    number = writer.number([floats(3)], ("OUT",))
    assert learn(reader, writer) != {}
    assert writer.number([floats(3)], ("OUT",)) == number
    assert writer.new_signatures() == {}
    signature = reader.get(number)
    assert signature.requested == ("OUT",)
    (column,) = signature.columns
    assert (column.name, column.datatype, column.shape, column.dtype, column.nbytes) == (
        "T", "FP32", (3,), np.dtype(np.float32), 12,
    )  # fmt: skip


def test_names_types_shapes_and_requested_outputs_distinguish_signatures() -> None:
    writer = SignatureWriter()
    one = floats(3)
    variants = [
        ([one], None),
        ([one], ()),
        ([one], ("OUT",)),
        ([one, one], None),
        ([one._replace(name="U")], None),
        ([one._replace(datatype="INT32")], None),
        ([floats(4)], None),
        ([], None),
    ]
    assert len({writer.number(tensors, requested) for tensors, requested in variants}) == len(
        variants
    )


def test_string_columns_have_no_size() -> None:
    reader = SignatureReader(DTYPES)
    reader.learn({"signatures": [[0, None, [["S", "BYTES", [2]]]]]})
    assert reader.get(0).columns[0].nbytes is None


def test_new_signatures_are_repeated_until_they_are_sent() -> None:
    writer = SignatureWriter()
    writer.number([floats(1)], None)
    assert writer.new_signatures() == writer.new_signatures() != {}
    writer.mark_sent()
    assert writer.new_signatures() == {}


def test_signatures_that_never_repeat_do_not_fill_the_memory() -> None:
    writer, reader, resets = SignatureWriter(), SignatureReader(DTYPES), 0
    for size in range(3 * MOST):
        writer.begin()
        number = writer.number([floats(size)], None)
        resets += "forget" in learn(reader, writer)
        assert reader.get(number).columns[0].shape == (size,)
    assert resets == 2
    assert len(reader._signatures) <= MOST
    assert len(writer._numbers) <= MOST


def test_after_a_reset_an_old_signature_gets_a_new_number() -> None:
    writer, reader = SignatureWriter(), SignatureReader(DTYPES)
    old = writer.number([floats(1)], None)
    learn(reader, writer)
    for size in range(2, MOST + 1):
        writer.number([floats(size)], None)
    learn(reader, writer)
    writer.begin()
    new = writer.number([floats(1)], None)
    assert new != old
    assert learn(reader, writer)["forget"] is True
    assert reader.get(new).columns[0].shape == (1,)
    with pytest.raises(ProtocolError, match=f"signature {old} was never announced"):
        reader.get(old)


def test_one_frame_may_have_more_signatures_than_are_remembered() -> None:
    writer, reader = SignatureWriter(), SignatureReader(DTYPES)
    writer.begin()
    numbers = [writer.number([floats(size)], None) for size in range(MOST + 10)]
    learn(reader, writer)
    assert [reader.get(number).columns[0].shape for number in numbers] == [
        (size,) for size in range(MOST + 10)
    ]


@pytest.mark.parametrize(
    "signatures",
    [
        1,
        [1],
        [[0, None]],
        [[0, None, [["T", "FP32"]]]],
        [[0, None, [["T", "COMPLEX", [1]]]]],
        [[0, None, [["T", ["FP32"], [1]]]]],
        [[0, None, [["T", "FP32", [-1]]]]],
        [[0, None, [["T", "FP32", [1.5]]]]],
        [[0, None, [["T", "FP32", "12"]]]],
        [[0, None, [["T", "FP32", None]]]],
        [[0, None, [[7, "FP32", [1]]]]],
        [[0, 3, []]],
        [[0, [3], []]],
        [[[], None, []]],
        [[{}, None, []]],
    ],
    ids=json.dumps,
)
def test_an_invalid_signature_is_a_protocol_error(signatures: Any) -> None:
    with pytest.raises(ProtocolError, match="invalid signature"):
        SignatureReader(DTYPES).learn({"signatures": signatures})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["FP32", "BYTES"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
)


@given(st.dictionaries(st.sampled_from(["signatures", "forget"]), JSON))
def test_any_json_is_a_signature_or_a_protocol_error(extras: dict[str, Any]) -> None:
    with suppress(ProtocolError):
        SignatureReader(DTYPES).learn(extras)
