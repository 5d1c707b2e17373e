from __future__ import annotations

from urllib.parse import quote

import grpc
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Code
from tritonpy_frontend_grpc.status import NAMES, STATUS, status_text

OTHER_NAMES = {
    Code.INVALID_ARG: "INVALID_ARGUMENT",
    Code.UNSUPPORTED: "UNIMPLEMENTED",
    Code.CONFLICT: "ABORTED",
}


def test_every_code_has_the_number_of_its_status():
    numbers = {status.name: status.value[0] for status in grpc.StatusCode}
    assert {code: numbers[OTHER_NAMES.get(code, code.name)] for code in Code} == STATUS


def test_every_status_has_its_name():
    assert {status.value[0]: status.name for status in grpc.StatusCode} == NAMES


@given(st.text(max_size=300))
def test_a_short_text_is_unchanged(text):
    assert status_text(text) == text


@given(st.text(min_size=1, max_size=5))
def test_a_long_text_is_truncated_for_clients(repeated):
    text = repeated * 7000
    short = status_text(text)
    printable = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
    assert len(quote(short, safe=printable)) <= 6 * 1024 + len(" ...")
    assert short.endswith(" ...")
    assert text.startswith(short.removesuffix(" ..."))
