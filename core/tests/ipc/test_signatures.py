from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.ipc import ProtocolError
from tritonpy.ipc.signatures import Known, Written
from tritonpy.types import DTYPES

from .exchange import floats

MOST = 4096


def learn(known: Known, written: Written) -> dict[str, Any]:
    """Send the news as a frame does, as JSON."""
    news = json.loads(json.dumps(written.news()))
    known.learn(news)
    written.announced()
    return news


def test_a_signature_is_said_once() -> None:
    written, known = Written(), Known(DTYPES)
    number = written.number([floats(3)], ("OUT",))
    assert learn(known, written) != {}
    assert written.number([floats(3)], ("OUT",)) == number
    assert written.news() == {}
    signature = known.get(number)
    assert signature.wants == ("OUT",)
    (column,) = signature.columns
    assert (column.name, column.datatype, column.shape, column.dtype, column.nbytes) == (
        "T", "FP32", (3,), np.dtype(np.float32), 12,
    )  # fmt: skip


def test_names_types_shapes_and_wishes_tell_signatures_apart() -> None:
    written = Written()
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
    assert len({written.number(tensors, wants) for tensors, wants in variants}) == len(variants)


def test_strings_have_no_size_of_their_own() -> None:
    known = Known(DTYPES)
    known.learn({"signatures": [[0, None, [["S", "BYTES", [2]]]]]})
    assert known.get(0).columns[0].nbytes is None


def test_news_are_repeated_until_they_are_on_their_way() -> None:
    written = Written()
    written.number([floats(1)], None)
    assert written.news() == written.news() != {}
    written.announced()
    assert written.news() == {}


def test_signatures_that_never_repeat_do_not_fill_the_memory() -> None:
    written, known, resets = Written(), Known(DTYPES), 0
    for size in range(3 * MOST):
        written.begin()
        number = written.number([floats(size)], None)
        resets += "forget" in learn(known, written)
        assert known.get(number).columns[0].shape == (size,)
    assert resets == 2
    assert len(known._signatures) <= MOST
    assert len(written._numbers) <= MOST


def test_after_a_reset_an_old_signature_is_said_again_and_its_old_number_is_unknown() -> None:
    written, known = Written(), Known(DTYPES)
    old = written.number([floats(1)], None)
    learn(known, written)
    for size in range(2, MOST + 1):
        written.number([floats(size)], None)
    learn(known, written)
    written.begin()
    new = written.number([floats(1)], None)
    assert new != old
    assert learn(known, written)["forget"] is True
    assert known.get(new).columns[0].shape == (1,)
    with pytest.raises(ProtocolError, match=f"signature {old} was never announced"):
        known.get(old)


def test_one_frame_may_have_more_signatures_than_are_remembered() -> None:
    written, known = Written(), Known(DTYPES)
    written.begin()
    numbers = [written.number([floats(size)], None) for size in range(MOST + 10)]
    learn(known, written)
    assert [known.get(number).columns[0].shape for number in numbers] == [(size,) for size in range(MOST + 10)]


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
def test_what_is_no_signature_is_a_protocol_error(signatures: Any) -> None:
    with pytest.raises(ProtocolError, match="a signature is broken"):
        Known(DTYPES).learn({"signatures": signatures})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["FP32", "BYTES"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["signatures", "forget"]), JSON))
def test_any_json_is_news_or_a_protocol_error(extras: dict[str, Any]) -> None:
    with suppress(ProtocolError):
        Known(DTYPES).learn(extras)
